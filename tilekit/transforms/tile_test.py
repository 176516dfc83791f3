# SPDX-License-Identifier: Apache-2.0
"""A step of a compile as a test: a `.tile` file with the program before it, and CHECK lines for what came out.

Each change is one stretch of checks: the line above it, `CHECK-NOT` for the lines that went, the lines that came. A
`CHECK` is the first later line that holds its text, so where an earlier line holds it too, the check begins further up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilekit import textdiff


def text(name: str, before: str, after: str) -> str:
    """The case for a pass of this name, from the program that it was given to the one that it made."""
    run, checks = f"# RUN: {name}", _checks(before.split("\n"), after.split("\n"))
    return "\n".join([run, *(f"# {kind}: {part}" for kind, part in checks), before, ""])


def _checks(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str, str]]:
    changes = textdiff.hunks(before, after)
    at = -1
    if not changes:  # the pass must leave it alone
        yield from _path(after, 0, len(after) - 1)
    for change in changes:
        begin, end = change.added.start, change.added.stop
        if begin - 1 > at:
            yield from _path(after, _start(after, at, begin - 1), begin - 1, at)
            at = begin - 1
        gone = [part for line in change.removed if (part := before[line].strip())]
        yield from (("CHECK-NOT", part) for part in gone)
        if begin == end < len(after):  # nothing came: the next line shows what is not in between
            end += 1
        first = next((line for line in range(begin, end) if after[line].strip()), None)
        if first is None:
            continue
        # not CHECK-NEXT, which would leave no line in which to look for what is gone
        yield "CHECK", after[first].strip()
        yield from _path(after, first + 1, end - 1, first)
        at = end - 1


def _start(lines: Sequence[str], at: int, to: int) -> int:
    """The last line from which checks lead to `to`: no earlier one behind `at` has its text."""
    return next((line for line in range(to, at, -1) if _first(lines, at, line) == line), at + 1)


def _path(lines: Sequence[str], start: int, to: int, at: int = -1) -> Iterator[tuple[str, str]]:
    """Checks of every line from one to another, where the last check was of the line `at`."""
    for line in range(start, to + 1):
        if part := lines[line].strip():
            yield "CHECK-NEXT" if at >= 0 and at == line - 1 else "CHECK", part
            at = line


def _first(lines: Sequence[str], at: int, wanted: int) -> int | None:
    """The first line after one that has the text of another; none for a blank one."""
    part = lines[wanted].strip()
    return next((line for line in range(at + 1, len(lines)) if part in lines[line]), None) if part else None
