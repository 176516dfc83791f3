# SPDX-License-Identifier: Apache-2.0
"""Pass tests as files: a program, the passes to run on it, and lines that must stand in what comes out.

    # RUN: dead_code_elimination
    # CHECK: a: f32[8] = add(x, y)
    # CHECK-NEXT: store_global(
    # CHECK-NOT: mul(
    @kernel(
        ...

Each `CHECK` is a part of a later line than the one before it, `CHECK-NEXT` of the very next one; no line from there to
the next match, or to the end, has a `CHECK-NOT` in it. Several passes are separated by commas. A file holds several
cases, each begun by a `RUN` line.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tilekit.ir.prog import Program
from tilekit.ir.text import parser
from tilekit.ir.tools import verify

_DIRECTIVE = re.compile(r"\s*# (CHECK(?:-NEXT|-NOT)?|RUN): ?(.*)")


@dataclass(frozen=True)
class Case:
    name: str
    passes: tuple[str, ...]
    text: str
    checks: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return self.name

    def run(self, passes: Mapping[str, Callable[[Program], Program]]) -> None:
        """Run the passes and compare; the program must verify before, between and after."""
        prog = parser.parse_program(self.text)
        verify(prog)
        for name in self.passes:
            prog = passes[name](prog)
            verify(prog)
        check(str(prog), self.checks)


def cases(folder: Path) -> list[Case]:
    """The cases in the `.tile` files of a folder."""
    return [case for path in sorted(folder.glob("*.tile")) for case in _cases_of(path)]


def _cases_of(path: Path) -> Iterable[Case]:
    lines = path.read_text().splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("# RUN:")]
    for number, (start, end) in enumerate(itertools.pairwise([*starts, len(lines)]), start=1):
        directives = [match.groups() for line in lines[start:end] if (match := _DIRECTIVE.match(line))]
        names = tuple(name.strip() for kind, text in directives if kind == "RUN" for name in text.split(","))
        checks = tuple((kind, text.strip()) for kind, text in directives if kind != "RUN")
        assert checks, f"{path}: the case in line {start + 1} checks nothing"
        # blank lines keep the line numbers of errors those of the file
        yield Case(f"{path.stem}-{number}", names, "\n" * start + "\n".join(lines[start:end]), checks)


def check(text: str, expected: Iterable[tuple[str, str] | str]) -> None:
    """Compare `text` with directives, `("CHECK-NOT", part)` and so on; a lone string is a CHECK."""
    lines = text.splitlines()
    at, forbidden = -1, list[str]()
    for directive in expected:
        kind, part = ("CHECK", directive) if isinstance(directive, str) else directive
        if kind == "CHECK-NOT":
            forbidden.append(part)
            continue
        later = range(at + 1, len(lines) if kind == "CHECK" else min(at + 2, len(lines)))
        found = next((number for number in later if part in lines[number]), None)
        assert found is not None, f"{kind}: {part}\nis not in what comes after line {at + 1}:\n\n{text}"
        _refuse(forbidden, lines, range(at + 1, found), text)
        at, forbidden = found, []
    _refuse(forbidden, lines, range(at + 1, len(lines)), text)


def _refuse(forbidden: Iterable[str], lines: list[str], where: range, text: str) -> None:
    for part, number in itertools.product(forbidden, where):
        assert part not in lines[number], f"CHECK-NOT: {part}\nbut it is in line {number + 1}:\n\n{text}"
