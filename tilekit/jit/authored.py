# SPDX-License-Identifier: Apache-2.0
"""A program as its author sees it: lines of a cell or a file, and what a name means behind one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilekit.diag import errors, suggest
from tilekit.diag.span import Span
from tilekit.dtypes import DataType
from tilekit.ir import stmt as stmts
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.copy_async import (
    CopyAsyncGenericInst,
    CopyAsyncInst,
    CopyAsyncWaitAllInst,
    CopyAsyncWaitGroupInst,
)
from tilekit.ir.instructions.shared import FreeSharedInst
from tilekit.ir.prog import Program
from tilekit.ir.stmt import Stmt
from tilekit.ir.tensor import GlobalTensor, SharedTensor, Tensor
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Var

if TYPE_CHECKING:
    from tilekit.jit.kernel import Kernel

# what a name can stand for
Subject = Tensor | Var
COMPOUND = (stmts.ForStmt, stmts.WhileStmt, stmts.IfStmt)
_COPIES = (CopyAsyncInst, CopyAsyncGenericInst)
_WAITS = (CopyAsyncWaitGroupInst, CopyAsyncWaitAllInst)
_LINES_NAMED = 12


@dataclass(frozen=True)
class Line:
    """A statement of a person's: lines of a function, counted from its `def`."""

    function: str
    first: int
    last: int

    def overlaps(self, other: Line) -> bool:
        return self.function == other.function and self.first <= other.last and other.first <= self.last

    def covers(self, span: Span) -> bool:
        """Whether what stands at a span belongs to it: itself, or as part of a method that is called there."""
        return any(
            place.function == self.function and self.first <= place.line <= self.last
            for place in (span, *span.callers())
        )


class Text:
    """The program as its author sees it: lines of a cell, and names."""

    def __init__(self, program: Program, kernel: Kernel) -> None:
        self.kernel = kernel
        self.bindings = program.bindings
        self.statements = collect(program.function, Stmt)
        header = program.function.span
        self.main = header.function if header is not None else ""
        compound = {stmt.span for stmt in self.statements if isinstance(stmt, COMPOUND)}
        # a loop or a branch is its first line; what it holds has lines of its own
        self.lines = [
            Line(span.function, span.line, span.line if span in compound else span.end_line)
            for stmt in self.statements
            if (place := _span(stmt)) is not None
            for span in (place, *place.callers())
        ]
        self.roots = _roots(self.statements)

    # ------------------------------------------------------------------------------------------------------- lines

    def line_at(self, line: int) -> Line:
        """The statement at a line of the file in which the kernel stands."""
        file = self._locate(self.main, 0)
        functions = {each.function for each in self.lines}
        starts = {name: at for name in functions if (at := self._locate(name, 0)) is not None}
        for name, start in starts.items():
            if file is not None and start.filename != file.filename:
                continue
            found = self._statement(Line(name, line - start.line, line - start.line))
            if found is not None:
                return found
        known = sorted({starts[each.function].line + each.first for each in self.lines if each.function == self.main})
        near = sorted(known, key=lambda each: abs(each - line))[:_LINES_NAMED]
        raise errors.ArgumentError(
            "TK641",
            f"{self.kernel.script} does nothing at line {line}",
            help=f"lines that do: {', '.join(map(str, sorted(near)))}" + (", …" if len(known) > len(near) else ""),
        )

    def _statement(self, part: Line) -> Line | None:
        """The lines around a part of them that belong together."""
        overlapping = [each for each in self.lines if each.overlaps(part)]
        if not overlapping:
            return None
        first, last = min(each.first for each in overlapping), max(each.last for each in overlapping)
        whole = Line(part.function, min(first, part.first), max(last, part.last))
        return whole if whole == part else self._statement(whole)

    def _locate(self, function: str, line: int) -> Any:
        return self.kernel.sources.locate(Span(function, line, 0, line, 0))

    def place(self, at: Line | None) -> tuple[int | None, str, str]:
        """The line of the file, what stands there, and what a person calls the file."""
        found = None if at is None else self._locate(at.function, at.first)
        return (None, "", "") if found is None else (found.line, found.text_line.strip(), found.display_name)

    # ------------------------------------------------------------------------------------------------------- names

    def subjects(self, name: str, at: Line | None) -> tuple[Subject, ...]:
        """What a name means behind a line, or at last: one tensor or variable, or several of which one was written."""
        bound = [each for each in self.bindings if each.name == name and _has_value(each.value)]
        functions = [each.function for each in bound]
        function = at.function if at is not None else self.main if self.main in functions else (functions or [""])[-1]
        here = [each for each in bound if each.function == function]
        known = [each for each in here if at is None or each.line <= at.last]
        if known:
            latest = max(each.line for each in known)
            return tuple(dict.fromkeys(each.value for each in known if each.line == latest))
        if here and at is not None:
            raise self._too_early(name, at, min(each.line for each in here))
        attributes = tuple(each for each in self._made() if _name_of(each) == name)
        if attributes:
            return attributes
        raise self._unknown(name)

    def _made(self) -> list[Subject]:
        """Every tensor and variable of the program that has a name of its author's."""
        made = dict.fromkeys(subject for stmt in self.statements for subject in writes(stmt))
        return [subject for subject in made if _name_of(subject) and _has_value(subject)]

    def _too_early(self, name: str, at: Line, first: int) -> errors.ArgumentError:
        line = self.place(Line(at.function, first, first))[0]
        return errors.ArgumentError(
            "TK642", f"{name} does not exist yet at line {self.place(at)[0]}: it is first assigned at line {line}"
        )

    def _unknown(self, name: str) -> errors.ArgumentError:
        named = [each.name for each in self.bindings if _has_value(each.value)]
        known = list(dict.fromkeys([*named, *map(_name_of, self._made())]))
        near = suggest(name, known)
        pointers = {each.name for each in self.bindings if not _has_value(each.value)}
        why = "is a pointer: watch a view of it" if name in pointers else "is no tensor or scalar of the running kernel"
        return errors.ArgumentError(
            "TK640",
            f"{name} {why}",
            notes=[f"{self.kernel.script} has {', '.join(sorted(known))}"],
            help=f"did you mean {near}?" if near else None,
        )

    def assignments(self, name: str, subjects: Sequence[Subject]) -> list[Line]:
        """The statements that give one of these a value, in their order; of copies, also those that wait for them."""
        meant = set(subjects)
        functions = [each.function for each in self.bindings if each.name == name and each.value in meant]
        function = self.main if self.main in functions else (functions or [""])[-1]
        found: list[Line | None] = []
        assigning = {stmt for stmt in self.statements if self._assigns(stmt, meant)}
        if any(_is(stmt, _COPIES) for stmt in assigning):
            assigning |= {stmt for stmt in self.statements if _is(stmt, _WAITS)}
        for stmt in self.statements:
            place = _span(stmt)
            if place is None or stmt not in assigning:
                continue
            span = next((each for each in (place, *place.callers()) if each.function == function), place)
            found.append(self._statement(Line(span.function, span.line, span.line)))
        return list(dict.fromkeys(line for line in found if line is not None))

    def _assigns(self, stmt: Stmt, subjects: Set[Subject]) -> bool:
        """Whether a statement makes one of these, or writes its elements by any name; a view of it does neither."""
        made = stmt.inst.output if isinstance(stmt, stmts.InstStmt) else None
        shown = {self.roots.get(each, each) for each in subjects}
        return any(
            each in subjects or (each is not made and self.roots.get(each, each) in shown) for each in writes(stmt)
        )


def _is(stmt: Stmt, kinds: tuple[type[Instruction], ...]) -> bool:
    return isinstance(stmt, stmts.InstStmt) and isinstance(stmt.inst, kinds)


def _span(stmt: Stmt) -> Span | None:
    return stmt.inst.span or stmt.span if isinstance(stmt, stmts.InstStmt) else stmt.span


def _has_value(subject: Subject) -> bool:
    """Whether it is more than an address."""
    return not isinstance(subject, Var) or isinstance(scalar.dtype_of(subject), DataType)


def _name_of(subject: Subject) -> str:
    return scalar.name_hint(subject) if isinstance(subject, Var) else subject.name


def writes(stmt: Stmt) -> tuple[Subject, ...]:
    """The tensors and variables that a statement itself gives a value."""
    match stmt:
        case stmts.InstStmt(inst=inst):
            return () if isinstance(inst, FreeSharedInst) else inst.writes
        case stmts.ForStmt(iter_var=var) | stmts.AssignStmt(var=var) | stmts.TensorItemValueStmt(var=var):
            return (var,)
        case stmts.DeclareStmt(var=var, init=init) if init is not None:
            return (var,)
        case stmts.LetStmt(bind_vars=variables):
            return variables
        case _:
            return ()


def _roots(statements: Sequence[Stmt]) -> Mapping[Subject, Subject]:
    """What each view of a tensor in memory shows the elements of."""
    roots: dict[Subject, Subject] = {}
    for inst in (stmt.inst for stmt in statements if isinstance(stmt, stmts.InstStmt)):
        if isinstance(inst.output, (SharedTensor, GlobalTensor)):
            shown = next((each for each in inst.inputs if type(each) is type(inst.output)), None)
            if shown is not None:
                roots[inst.output] = roots.get(shown, shown)
    return roots
