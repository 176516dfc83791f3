# SPDX-License-Identifier: Apache-2.0
"""A step of a compile as a test: a `.tile` file with the program before it, and checks of the lines that came out.

Each change is one stretch of whole lines: the one above it, those that came, and the one below it, so that nothing
else may stand between them; below the last line, `CHECK-NOT` says what went. A `CHECK-LINE` is the first later line
that is its text, so where an earlier one is, too, the stretch begins further up.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilekit import textdiff


def text(name: str, before: str, after: str) -> str:
    """The case for a pass of this name, from the program that it was given to the one that it made."""
    old, new = before.split("\n"), after.split("\n")
    checks = _Checks(new)
    changes = textdiff.hunks(old, new)
    if not changes:  # it must be left alone
        checks.every(range(len(new)))
    for change in changes:
        checks.lead_to(change.added.start - 1)
        checks.every(range(change.added.start, min(change.added.stop + 1, len(new))))
        if not any(map(str.strip, new[change.added.stop :])):
            checks.refuse([old[line] for line in change.removed])
    return "\n".join([f"# RUN: {name}", *(f"# {kind}: {part}" for kind, part in checks.found), before, ""])


class _Checks:
    """Directives that hold of these lines; `at` is the line that the last one is of. Blank lines cannot be checked."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = [line.strip() for line in lines]
        self.at = -1
        self.found: list[tuple[str, str]] = []

    def lead_to(self, line: int) -> None:
        """Check a line: the first that is like it is found, so it may have to begin at one further up."""
        there = [number for number in range(self.at + 1, line + 1) if self.lines[number]]
        if there:
            begin = next(number for number in reversed(there) if self._first(self.lines[number]) == number)
            self._add("CHECK-LINE", begin)
            self.every(range(begin + 1, line + 1))

    def every(self, lines: range) -> None:
        """Check these lines, of which the first is the next one."""
        for line in lines:
            if line > self.at and self.lines[line]:
                self._add("CHECK-NEXT-LINE" if 0 < line == self.at + 1 else "CHECK-LINE", line)

    def refuse(self, gone: Sequence[str]) -> None:
        """Check that these lines do not stand below all others."""
        self.found += [("CHECK-NOT", part) for line in gone if (part := line.strip())]

    def _add(self, kind: str, line: int) -> None:
        self.found.append((kind, self.lines[line]))
        self.at = line

    def _first(self, part: str) -> int:
        return next(line for line in range(self.at + 1, len(self.lines)) if part == self.lines[line])
