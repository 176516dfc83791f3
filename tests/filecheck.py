# SPDX-License-Identifier: Apache-2.0
"""Pass tests as files: a program, the passes to run on it, and lines that must stand in what comes out.

    # RUN: copy_elimination, dead_code_elimination
    # CHECK: a: f32[8] = add(x, y)
    # CHECK-NEXT: store_global(
    # CHECK-NOT: mul(
    @kernel(grid=[i32(1), i32(1), i32(1)], warps=1)
    def example(p: ~f32):
        ...

Each `CHECK` is a part of a later line than the one before it, `CHECK-NEXT` of the very next one; no line from there to
the next match, or to the end, has a `CHECK-NOT` in it. `CHECK-LINE` and `CHECK-NEXT-LINE` are a whole line, but for
its indentation. Several passes are separated by commas, and `default` is the
whole pipeline. A file holds several cases, each begun by a `RUN` line; a case may have several functions.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tilekit import diag
from tilekit.ir.prog import Program
from tilekit.ir.text import parser
from tilekit.ir.tools import verify

DIRECTIVES = ("RUN", "CHECK", "CHECK-NEXT", "CHECK-NOT", "CHECK-LINE", "CHECK-NEXT-LINE")
_EXACT = re.compile(rf"\s*# ({'|'.join(DIRECTIVES)}): +(\S.*)")
# the first word of a comment, and its colon
_COMMENT = re.compile(r"\s*#+\s*([A-Za-z][\w-]*)(\s*:)?")


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
        for name in self.passes:
            assert name in passes, f"{self.name}: there is no pass {name!r}{_hint(name, passes)}"
        prog = parser.parse_program(self.text)
        verify(prog)
        for name in self.passes:
            prog = passes[name](prog)
            verify(prog)
        check(str(prog), self.checks)


def cases(folder: Path) -> list[Case]:
    """The cases in the `.tile` files of a folder."""
    return [case for path in sorted(folder.glob("*.tile")) for case in cases_of(path.stem, path.read_text())]


def cases_of(name: str, text: str) -> Iterable[Case]:
    """The cases in one text, named after it and numbered."""
    lines = text.splitlines()
    found = [(number, *directive) for number, line in enumerate(lines) if (directive := _directive(name, number, line))]
    assert found and found[0][1] == "RUN", f"{name}: a file begins with a line `# RUN: pass, pass`"
    starts = [number for number, kind, _ in found if kind == "RUN"]
    for count, (start, end) in enumerate(itertools.pairwise([*starts, len(lines)]), start=1):
        inside = [(kind, rest) for number, kind, rest in found if start <= number < end]
        passes = tuple(part.strip() for part in inside[0][1].split(","))
        assert len(inside) > 1, f"{name}: the case in line {start + 1} checks nothing"
        # blank lines keep the line numbers of errors those of the file
        yield Case(f"{name}-{count}", passes, "\n" * start + "\n".join(lines[start:end]), tuple(inside[1:]))


def _directive(name: str, number: int, line: str) -> tuple[str, str] | None:
    """The directive in a line, if there is one; a comment that looks like one and is none is an error."""
    if match := _EXACT.fullmatch(line):
        return match[1], match[2].strip()
    if not (comment := _COMMENT.match(line)):
        return None
    word, colon = comment[1], comment[2]
    is_near = diag.suggest(word.upper(), DIRECTIVES) is not None
    meant = (colon and (word.isupper() or is_near)) or word in DIRECTIVES
    assert not meant, f"{name}: line {number + 1} is no directive, write `# {_nearest(word)}: text`: {line.strip()}"
    return None


def _nearest(word: str) -> str:
    return diag.suggest(word.upper(), DIRECTIVES) or "CHECK"


def _hint(name: str, known: Iterable[str]) -> str:
    near = diag.suggest(name, known)
    return f", did you mean {near!r}?" if near else f"; there are {', '.join(known)}"


def check(text: str, expected: Iterable[tuple[str, str] | str]) -> None:
    """Compare `text` with directives, `("CHECK-NOT", part)` and so on; a lone string is a CHECK."""
    lines = text.splitlines()
    at, forbidden = -1, list[str]()
    for directive in expected:
        kind, part = ("CHECK", directive) if isinstance(directive, str) else directive
        if kind == "CHECK-NOT":
            forbidden.append(part)
            continue
        later = range(at + 1, min(at + 2, len(lines)) if "NEXT" in kind else len(lines))
        is_whole = kind.endswith("LINE")
        found = next((n for n in later if (part == lines[n].strip() if is_whole else part in lines[n])), None)
        assert found is not None, f"{kind}: {part}\nis not in what comes after line {at + 1}:\n\n{text}"
        _refuse(forbidden, lines, range(at + 1, found), text)
        at, forbidden = found, []
    _refuse(forbidden, lines, range(at + 1, len(lines)), text)


def _refuse(forbidden: Iterable[str], lines: list[str], where: range, text: str) -> None:
    for part, number in itertools.product(forbidden, where):
        assert part not in lines[number], f"CHECK-NOT: {part}\nbut it is in line {number + 1}:\n\n{text}"
