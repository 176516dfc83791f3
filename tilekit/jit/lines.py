# SPDX-License-Identifier: Apache-2.0
"""Which line comes from which, on the whole way from the lines of the person to machine code.

A compile is a chain of texts; a map says for each line of one from which line of the text before it comes. Lines are
followed by what they show: passes hand on the statements that they leave alone, and what they make anew has the place
of what it was made from. The compilers' line tables lead on from there.
"""

from __future__ import annotations

import inspect
import linecache
import re
import textwrap
import tokenize
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from tilekit import textdiff
from tilekit.backends.codegen import LoweredModule
from tilekit.diag.errors import ArgumentError, TilekitError
from tilekit.diag.sources import Sources, def_line, display_name
from tilekit.diag.span import Span
from tilekit.events import Stage
from tilekit.ir.prog import Program
from tilekit.ir.stmt import DeclareStmt, ForStmt, InstStmt, LetStmt
from tilekit.ir.text import printer
from tilekit.ir.text.blocks import Let
from tilekit.lowir import module_text, scalar, statements
from tilekit.lowir.nodes import DeclareStmt as LoweredDeclareStmt
from tilekit.lowir.nodes import IRModule, Var
from tilekit.lowir.printer import Source
from tilekit.toolchain import messages
from tilekit.toolchain.nvdisasm import Sass
from tilekit.transforms.recorder import text_of

if TYPE_CHECKING:
    from tilekit.jit.kernel import Kernel

# for each line of a text the line of the one before it, counted from 0
Map: TypeAlias = "list[int | None]"


@dataclass(frozen=True, slots=True)
class Row:
    """A line by what it shows: objects that stay the same where nothing changes, and the place it comes from.

    The place is one of the person's source, the number of an instruction, or, of a line that has neither, its text.
    """

    text: str
    objects: tuple[object, ...]
    place: Hashable


def rows_of(subject: Program | IRModule) -> list[Row]:
    """The lines of a program, or of a Hidet module with the empty one behind its last."""
    if isinstance(subject, Program):
        return [Row(text, _objects(shown), printer.span_of(shown) or text) for text, shown in subject.lines()]
    lines = module_text.to_lines(subject)
    serves = _first_users(lines)

    def place(line: module_text.Line) -> Hashable:
        return serves.get(id(line.stmt), line.text) if line.origin is None else line.origin

    return [*(Row(x.text, () if x.stmt is None else (x.stmt,), place(x)) for x in lines), Row("", (), None)]


def _first_users(lines: Sequence[module_text.Line]) -> dict[int, int]:
    """The number of the instruction for which each value is computed that stands at the top of a kernel, by statement.

    It is the first that uses the value; nobody's is the index of the thread.
    """
    users: dict[Var, int] = {}
    found: dict[int, int] = {}
    for line in reversed([line for line in lines if line.stmt is not None]):
        stmt, user = line.stmt, line.origin
        assert stmt is not None
        values = statements.expressions(stmt)
        if user is None and isinstance(stmt, LoweredDeclareStmt) and not any(isinstance(e, Var) for e in values):
            user = users.get(stmt.var)
            found |= {} if user is None else {id(stmt): user}
        if user is not None:
            users |= {part: user for e in values for part in scalar.walk(e) if isinstance(part, Var)}
    return found


def _objects(shown: Any) -> tuple[object, ...]:
    match shown:
        case None:
            return ()
        case InstStmt(inst=inst):
            return shown, inst
        case Let(var=var):
            return (var,)
        case ForStmt(iter_var=var) | DeclareStmt(var=var):
            return shown, var
        case _:
            return (shown,)


def follow(old: Sequence[Row], new: Sequence[Row]) -> Map:
    """From which of the old lines each of the new ones comes."""
    at = _index(old)
    found: Map = [next((at[id(shown)] for shown in row.objects if id(shown) in at), None) for row in new]
    taken = set(found)
    left: dict[Hashable, list[int]] = defaultdict(list)
    for number, row in enumerate(new):
        if found[number] is None:
            left[row.place].append(number)
    there: dict[Hashable, list[int]] = defaultdict(list)
    for number, row in enumerate(old):
        there[row.place].append(number)
    for place, numbers in left.items():
        candidates = [number for number in there[place] if number not in taken] or there[place]
        for k, number in enumerate(numbers if candidates else ()):
            # as many lines are the same ones in order; where there are more, each has become several
            found[number] = candidates[k * len(candidates) // len(numbers)]
    return found


def _index(rows: Iterable[Row]) -> dict[int, int]:
    """The first line that shows each object."""
    at: dict[int, int] = {}
    for number, row in enumerate(rows):
        for shown in row.objects:
            at.setdefault(id(shown), number)
    return at


def through_lowering(program: Sequence[Row], module: Sequence[Row], lowered: LoweredModule) -> Map:
    """From which lines of a program those of the Hidet module come that it was lowered to."""
    at = _index(program)
    head = next((k for k, row in enumerate(program) if row.text.startswith(_HEAD)), None)

    def comes_from(row: Row) -> int | None:
        if row.text.startswith(_HEAD):
            return head
        if not isinstance(row.place, int):
            return None
        made_from = lowered.statements[row.place]
        if isinstance(made_from, LetStmt):
            (stmt,) = row.objects
            shown = stmt.var if isinstance(stmt, LoweredDeclareStmt) else None
            return at.get(id(shown), at.get(id(made_from.bind_vars[0])))
        return at.get(id(made_from))

    return list(map(comes_from, module))


def through_printing(module: Sequence[Row], source: Source) -> Map:
    """From which lines of a Hidet module those of the source come that it is printed as."""
    at = _index(module)
    first = {row.place: number for number, row in reversed(list(enumerate(module)))}
    heads = {row.text.removeprefix(_HEAD): k for k, row in enumerate(module) if row.text.startswith(_HEAD)}

    def comes_from(text: str, origin: int | None, stmt: object) -> int | None:
        if stmt is None:
            return next((number for head, number in heads.items() if text.startswith(head)), None)
        return at.get(id(stmt), None if origin is None else first.get(origin))

    rows = zip(source.text.splitlines(), source.lines, source.statements, strict=True)
    return [*(comes_from(*row) for row in rows), None]


_HEAD = "def "
# also where it stands in a block of its own, as that of inline assembly
_PTX_CODE = re.compile(r"\s*\{?\s*(?:@|[a-z_])")


def through_ptx(ptx: str) -> Map:
    """From which lines of the source the instructions of its PTX come."""
    lines = zip(ptx.split("\n"), messages.ptx_source_lines(ptx), strict=True)
    return [line - 1 if line and _PTX_CODE.match(text) else None for text, line in lines]


def through_edit(generated: str, edited: str) -> Map:
    """From which lines of the generated source those of an edited one come."""
    lines = generated.split("\n")
    return textdiff.carried(range(len(lines)), lines, edited.split("\n"))


# ------------------------------------------------------------------------------------------------------------- the cell


@dataclass(frozen=True)
class Cell:
    """The functions of the person that a program was made from, as they are now.

    `numbers` are the lines that an editor counts in `names`, None between two functions; `map` leads from the lines of
    the program to those of `text`.
    """

    text: str
    names: tuple[str, ...]
    numbers: tuple[int | None, ...]
    map: Map


def cell_of(prog: Program, sources: Sources) -> Cell | None:
    """What the person wrote of a program; None where nobody knows it any more."""
    places = [printer.span_of(shown) for _, shown in prog.lines()]
    lines: list[str] = []
    names: list[str] = []
    numbers: list[int | None] = []
    begins: dict[str, int] = {}
    for function in dict.fromkeys(place.function for place in places if place is not None):
        code = sources.code(function)
        block = [] if code is None else _block(code.co_filename, def_line(code))
        if code is None or not block:
            continue
        if lines:
            lines.append("")
            numbers.append(None)
        begins[function] = len(lines)
        lines += block
        numbers += range(def_line(code), def_line(code) + len(block))
        names.append((sources.display or display_name)(code.co_filename))
    if not lines:
        return None

    def comes_from(place: Span | None) -> int | None:
        return None if place is None or place.function not in begins else begins[place.function] + place.line

    return Cell("\n".join(lines), tuple(dict.fromkeys(names)), tuple(numbers), list(map(comes_from, places)))


def _block(filename: str, line: int) -> list[str]:
    """The lines of the function that begins at this line, without what they are all indented by."""
    try:
        block = inspect.getblock(linecache.getlines(filename)[line - 1 :])
    except (SyntaxError, tokenize.TokenError):
        return []
    return textwrap.dedent("".join(block)).rstrip("\n").split("\n") if block else []


# ---------------------------------------------------------------------------------------------------------- a compile


class LineMaps:
    """Follows the steps of one compile. What it must know beside the texts comes as notes of the compile."""

    def __init__(self) -> None:
        self.sources: Sources | None = None
        self._lowered: LoweredModule | None = None
        self._source: Source | None = None
        self._sass: Sass | None = None
        self._printed: list[tuple[Program | IRModule, list[Row]]] = []

    def take(self, value: object) -> bool:
        """Whether a note was meant for this."""
        match value:
            case Sources():
                self.sources = value
            case LoweredModule():
                self._lowered = value
            case Source():
                self._source = value
            case Sass():
                self._sass = value
            case _:
                return False
        return True

    def text_of(self, subject: object) -> str:
        """What is a program, a module or a source, as text; it is printed once for its text and its lines."""
        if isinstance(subject, (Program, IRModule)):
            return "\n".join(row.text for row in self._rows(subject))
        return text_of(subject)

    def of_step(self, stage: Stage, before: object, after: object) -> Map | None:
        """For each line of what a step made, the line that it comes from of what the step was given."""
        match before, after:
            case (Program(), Program()) | (IRModule(), IRModule()):
                return follow(self._rows(before), self._rows(after))
            case Program(), IRModule() if self._lowered is not None and self._lowered.module is after:
                return through_lowering(self._rows(before), self._rows(after), self._lowered)
            case IRModule(), str() if self._source is not None and self._source.text == after:
                return through_printing(self._rows(before), self._source)
            case str(), str() if stage is Stage.PTX:
                return through_ptx(after)
            case str(), str() if stage is Stage.SASS and self._sass is not None:
                return list(self._sass.lines)
            case _:
                return None

    def _rows(self, subject: Program | IRModule) -> list[Row]:
        for printed, rows in self._printed:
            if printed is subject:
                return rows
        rows = rows_of(subject)
        self._printed = [*self._printed[1 - _REMEMBERED :], (subject, rows)]
        return rows


# a step looks at two, and the one after it at one of these
_REMEMBERED = 3


# ------------------------------------------------------------------------------------------------------------ a kernel

MACHINE = ("ptx", "sass")
LANGUAGES = ("cell", "tile", "hidet", "cuda", *MACHINE)


@dataclass(frozen=True)
class Layer:
    """The lines of one language: the numbers that people give them, and which of the layer before they come from."""

    numbers: Sequence[int | None]
    map: Map


class Chain:
    """All languages of a kernel, in the order in which they are made."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def related(self, language: str, line: int) -> dict[str, list[int]]:
        """The lines of every language that belong with one line, all counted from 1; see `Kernel.lines`."""
        if language not in LANGUAGES:
            raise ArgumentError("TK646", f"there are no lines of {language!r}", help=f"one of {', '.join(LANGUAGES)}")
        layers = {**self.written, **self._machine(language)}
        numbers = layers[language].numbers if language in layers else ()
        if line not in numbers:
            known = f"its lines are {numbers[0]} to {numbers[-1]}" if numbers else "nobody knows them any more"
            raise ArgumentError("TK646", f"{self.kernel.name} has no line {line} of {language}: {known}")
        names = list(layers)
        at = names.index(language)
        found = {language: {numbers.index(line)}}
        for k in range(at, 0, -1):
            map = layers[names[k]].map
            found[names[k - 1]] = {came for number in found[names[k]] if (came := map[number]) is not None}
        for k in range(at + 1, len(names)):
            map = layers[names[k]].map
            found[names[k]] = {number for number, came in enumerate(map) if came in found[names[k - 1]]}
        return {name: sorted(n for k in found[name] if (n := layers[name].numbers[k]) is not None) for name in names}

    @cached_property
    def written(self) -> dict[str, Layer]:
        """Those that the compiler writes, and before them the person's, if somebody still knows it."""
        kernel, maps = self.kernel, LineMaps()
        for value in kernel.trace.notes.values():
            maps.take(value)
        steps = kernel.trace.steps
        program = next(step.before for step in steps if isinstance(step.before, Program))
        cell = cell_of(program, kernel.sources)
        way: Map = list(range(len(program.lines())))
        found = {"tile": _layer([None] * len(way) if cell is None else cell.map)}
        for step in steps:
            made = None if step.after is step.before else maps.of_step(step.stage, step.before, step.after)
            if made is None or not isinstance(step.before, (Program, IRModule)):
                continue
            if isinstance(step.after, str):
                found["hidet"], way = _layer(way), made
                if step.after != kernel.source:
                    way = _through(through_edit(step.after, kernel.source), way)
            else:
                way = _through(made, way)
        found["cuda"] = _layer(way)
        return found if cell is None else {"cell": Layer(cell.numbers, []), **found}

    def _machine(self, wanted: str) -> dict[str, Layer]:
        """Those of the machine, as far as there are tools for them; why there is no `wanted` is raised."""
        found: dict[str, Layer] = {}
        try:
            found["ptx"] = self._ptx
            found["sass"] = self._sass
        except TilekitError:
            if wanted in MACHINE[len(found) :]:
                raise
        return found

    @cached_property
    def _ptx(self) -> Layer:
        return _layer(through_ptx(self.kernel.ptx))

    @cached_property
    def _sass(self) -> Layer:
        return _layer(list(self.kernel.machine_code.sass.lines))


def _layer(map: Map) -> Layer:
    return Layer(range(1, len(map) + 1), map)


def _through(later: Map, earlier: Map) -> Map:
    """Both ways, one after the other."""
    return [None if line is None else earlier[line] for line in later]
