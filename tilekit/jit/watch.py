# SPDX-License-Identifier: Apache-2.0
"""Watching a kernel: the NumPy evaluator runs one block of it until a line has run, and a name is looked up there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilekit.diag import errors, suggest
from tilekit.diag.span import Span
from tilekit.dtypes import DataType, PointerType
from tilekit.ir import evaluator
from tilekit.ir import stmt as stmts
from tilekit.ir.evaluator import Group
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.copy_async import (
    CopyAsyncGenericInst,
    CopyAsyncInst,
    CopyAsyncWaitAllInst,
    CopyAsyncWaitGroupInst,
)
from tilekit.ir.instructions.semaphore import LockSemaphoreInst
from tilekit.ir.instructions.shared import FreeSharedInst
from tilekit.ir.machine import Array, Mask, Steps
from tilekit.ir.prog import Program
from tilekit.ir.stmt import Stmt
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.ir.tools.instruction_collector import collect
from tilekit.jit import evaluated, held
from tilekit.jit.watched import Place, Watched
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Var

if TYPE_CHECKING:
    from tilekit.jit.kernel import Kernel

Subject = Tensor | Var
_COMPOUND = (stmts.ForStmt, stmts.WhileStmt, stmts.IfStmt)
_COPIES = (CopyAsyncInst, CopyAsyncGenericInst)
_WAITS = (CopyAsyncWaitGroupInst, CopyAsyncWaitAllInst)
_LINES_NAMED = 12


def watch(
    kernel: Kernel,
    arguments: Sequence[Any],
    name: str,
    *,
    block: int | Sequence[int] = (0, 0, 0),
    line: int | None = None,
    step: int | None = None,
) -> Watched:
    """The value of a name of the kernel's program; see `Kernel.watch`."""
    if not kernel.program.bindings:
        raise errors.ArgumentError(
            "TK640",
            f"the source of {kernel.script} has changed since it was compiled, so its names are not known any more",
            help="run the cell that defines it again, and call the kernel",
        )
    text = _Text(kernel.program, kernel)
    at = None if line is None else text.line_at(line)
    subjects = text.subjects(name, at)
    lines = text.assignments(name, subjects) if at is None else [at]
    copied = held.copies(arguments, on_cpu=True)
    values = [evaluated.as_memory(argument) for argument in copied]
    grid = evaluator.grid(kernel.program, values)
    where = _block(kernel, block, grid)
    if step is not None and step < 0:
        raise errors.ArgumentError("TK641", f"step counts from 0, as range does, and is {step}")
    look = _Look(subjects, lines if step is None else lines[-1:], step)
    waits = bool(collect(kernel.program.function, LockSemaphoreInst))

    def group(launch: Any, index: Any, scalars: Any, barrier: Any) -> Group:
        made = Group if index != where else look.group
        return made(launch, index, scalars, barrier)

    try:
        evaluator.run(kernel.program, values, blocks="all" if waits else [where], group=group)
    except _Found:
        pass
    except errors.KernelError as error:
        if look.last is not None:
            step, line = look.counts[look.last] - 1, text.place(look.last)[0]
            error.noted(
                f"before that, line {line} had run {_times(step + 1)}: watch {name} with line={line}, step={step}"
            )
        raise error.with_sources(kernel.sources) from error.__cause__
    if look.value is None:
        raise text.absent(name, look, where)
    count = 1 if look.last is None else look.counts[look.last]
    place = Place(*text.place(look.last), count - 1, where)
    return Watched(name, *look.value, place, count, kernel.patched, look.notes)


def _block(kernel: Kernel, block: int | Sequence[int], grid: tuple[int, int, int]) -> tuple[int, int, int]:
    given = (block,) if isinstance(block, int) else tuple(block)
    x, y, z = (*given, 0, 0, 0)[:3]
    if len(given) > 3 or not all(0 <= at < extent for at, extent in zip((x, y, z), grid, strict=True)):
        raise errors.ArgumentError("TK641", f"{kernel.script} has no block {block}: its grid is {grid}")
    return x, y, z


# ------------------------------------------------------------------------------------------------------------ the text


@dataclass(frozen=True)
class _Line:
    """A statement of a person's: lines of a function, counted from its `def`."""

    function: str
    first: int
    last: int

    def overlaps(self, other: _Line) -> bool:
        return self.function == other.function and self.first <= other.last and other.first <= self.last

    def covers(self, span: Span) -> bool:
        """Whether what stands at a span belongs to it: itself, or as part of a method that is called there."""
        return any(
            place.function == self.function and self.first <= place.line <= self.last
            for place in (span, *span.callers())
        )


class _Text:
    """The program as its author sees it: lines of a cell, and names."""

    def __init__(self, program: Program, kernel: Kernel) -> None:
        self.kernel = kernel
        self.bindings = program.bindings
        self.statements = collect(program.function, Stmt)
        header = program.function.span
        self.main = header.function if header is not None else ""
        compound = {stmt.span for stmt in self.statements if isinstance(stmt, _COMPOUND)}
        # a loop or a branch is its first line; what it holds has lines of its own
        self.lines = [
            _Line(span.function, span.line, span.line if span in compound else span.end_line)
            for stmt in self.statements
            if (place := _span(stmt)) is not None
            for span in (place, *place.callers())
        ]
        self.roots = _roots(self.statements)

    # ------------------------------------------------------------------------------------------------------- lines

    def line_at(self, line: int) -> _Line:
        """The statement at a line of the file in which the kernel stands."""
        file = self._locate(self.main, 0)
        functions = {each.function for each in self.lines}
        starts = {name: at for name in functions if (at := self._locate(name, 0)) is not None}
        for name, start in starts.items():
            if file is not None and start.filename != file.filename:
                continue
            found = self._statement(_Line(name, line - start.line, line - start.line))
            if found is not None:
                return found
        known = sorted({starts[each.function].line + each.first for each in self.lines if each.function == self.main})
        near = sorted(known, key=lambda each: abs(each - line))[:_LINES_NAMED]
        raise errors.ArgumentError(
            "TK641",
            f"{self.kernel.script} does nothing at line {line}",
            help=f"lines that do: {', '.join(map(str, sorted(near)))}" + (", …" if len(known) > len(near) else ""),
        )

    def _statement(self, part: _Line) -> _Line | None:
        """The lines around a part of them that belong together."""
        overlapping = [each for each in self.lines if each.overlaps(part)]
        if not overlapping:
            return None
        first, last = min(each.first for each in overlapping), max(each.last for each in overlapping)
        whole = _Line(part.function, min(first, part.first), max(last, part.last))
        return whole if whole == part else self._statement(whole)

    def _locate(self, function: str, line: int) -> Any:
        return self.kernel.sources.locate(Span(function, line, 0, line, 0))

    def place(self, at: _Line | None) -> tuple[int | None, str, str]:
        """The line of the file, what stands there, and what a person calls the file."""
        found = None if at is None else self._locate(at.function, at.first)
        return (None, "", "") if found is None else (found.line, found.text_line.strip(), found.display_name)

    # ------------------------------------------------------------------------------------------------------- names

    def subjects(self, name: str, at: _Line | None) -> tuple[Subject, ...]:
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
        made = dict.fromkeys(subject for stmt in self.statements for subject in _writes(stmt))
        return [subject for subject in made if _name_of(subject) and _has_value(subject)]

    def _too_early(self, name: str, at: _Line, first: int) -> errors.ArgumentError:
        line = self.place(_Line(at.function, first, first))[0]
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

    def assignments(self, name: str, subjects: Sequence[Subject]) -> list[_Line]:
        """The statements that give one of these a value, in their order; of copies, also those that wait for them."""
        meant = set(subjects)
        functions = [each.function for each in self.bindings if each.name == name and each.value in meant]
        function = self.main if self.main in functions else (functions or [""])[-1]
        found: list[_Line | None] = []
        assigning = {stmt for stmt in self.statements if self._assigns(stmt, meant)}
        if any(_is(stmt, _COPIES) for stmt in assigning):
            assigning |= {stmt for stmt in self.statements if _is(stmt, _WAITS)}
        for stmt in self.statements:
            place = _span(stmt)
            if place is None or stmt not in assigning:
                continue
            span = next((each for each in (place, *place.callers()) if each.function == function), place)
            found.append(self._statement(_Line(span.function, span.line, span.line)))
        return list(dict.fromkeys(line for line in found if line is not None))

    def _assigns(self, stmt: Stmt, subjects: Set[Subject]) -> bool:
        """Whether a statement makes one of these, or writes its elements by any name; a view of it does neither."""
        made = stmt.inst.output if isinstance(stmt, stmts.InstStmt) else None
        shown = {self.roots.get(each, each) for each in subjects}
        return any(
            each in subjects or (each is not made and self.roots.get(each, each) in shown) for each in _writes(stmt)
        )

    def absent(self, name: str, look: _Look, block: tuple[int, int, int]) -> errors.ArgumentError:
        """Why there is no value."""
        if not look.lines:
            return errors.ArgumentError("TK642", f"{name} is never assigned in {self.kernel.script}")
        at = look.lines[-1]
        line, count = self.place(at)[0], look.counts[at]
        if not count:
            return errors.ArgumentError("TK642", f"line {line} does not run in block {block}")
        if look.step is not None and look.step >= count:
            return errors.ArgumentError(
                "TK641",
                f"line {line} ran {_times(count)} in block {block}, so its last step is {count - 1}: there is no step "
                f"{look.step}",
            )
        return errors.ArgumentError(
            "TK642", f"{name} has no value after line {line}: it was freed, or is assigned elsewhere"
        )


def _is(stmt: Stmt, kinds: tuple[type[Instruction], ...]) -> bool:
    return isinstance(stmt, stmts.InstStmt) and isinstance(stmt.inst, kinds)


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _span(stmt: Stmt) -> Span | None:
    return stmt.inst.span or stmt.span if isinstance(stmt, stmts.InstStmt) else stmt.span


def _has_value(subject: Subject) -> bool:
    """Whether it is more than an address."""
    return not isinstance(subject, Var) or isinstance(scalar.dtype_of(subject), DataType)


def _name_of(subject: Subject) -> str:
    return scalar.name_hint(subject) if isinstance(subject, Var) else subject.name


def _writes(stmt: Stmt) -> tuple[Subject, ...]:
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


# ------------------------------------------------------------------------------------------------------------- the run


class _Found(Exception):
    """The value is there: nothing more needs to run."""


# the type, the elements, and which of them are defined
Value = tuple[DataType, Array, Mask]


@dataclass
class _Look:
    """What is looked for behind which lines, how often each has run, and what was found behind the last that did."""

    subjects: tuple[Subject, ...]
    lines: Sequence[_Line]
    step: int | None
    counts: Counter[_Line] = field(default_factory=Counter[_Line])
    last: _Line | None = None
    value: Value | None = None
    notes: tuple[str, ...] = ()

    def group(self, launch: Any, index: Any, scalars: Any, barrier: Any) -> Group:
        return _Looking(self, launch, index, scalars, barrier)


class _Looking(Group):
    """The thread group that is looked at: each time that control leaves a line, the line has run."""

    def __init__(self, look: _Look, *given: Any) -> None:
        super().__init__(*given)
        self.look = look
        self.line: _Line | None = None
        # when each subject was written last, in steps
        self.written: dict[Subject, int] = {}

    def run(self) -> Steps:
        if not self.look.lines:  # a parameter
            self._take()
        yield from super().run()
        self._go_to(None)

    def step(self, span: Span | None) -> None:
        if span is not None:
            self._go_to(next((line for line in self.look.lines if line.covers(span)), None))
        super().step(span)

    def stmt(self, stmt: Stmt) -> Any:
        flow = yield from super().stmt(stmt)
        if not isinstance(stmt, _COMPOUND):
            self.written.update(dict.fromkeys(set(_writes(stmt)).intersection(self.look.subjects), self.steps))
        return flow

    def _go_to(self, line: _Line | None) -> None:
        left, self.line = self.line, line
        if left is None or left == line:
            return
        look = self.look
        look.counts[left] += 1
        if look.step in (None, look.counts[left] - 1) and self._take():
            look.last = left
            if look.step is not None:
                raise _Found

    def _take(self) -> bool:
        """Take what is there; of several subjects the one that was written last."""
        by_age = sorted(self.look.subjects, key=lambda each: self.written.get(each, -1))
        found = next((found for subject in reversed(by_age) if (found := self._read(subject)) is not None), None)
        if found is not None:
            self.look.value, self.look.notes = found
        return found is not None

    def _read(self, subject: Subject) -> tuple[Value, tuple[str, ...]] | None:
        state = self.state
        match subject:
            case Var() if subject in state.env:
                array = np.array(state.env[subject])
                dtype = scalar.dtype_of(subject)
                assert not isinstance(dtype, PointerType)
                return (dtype, array, np.ones((), np.bool_)), ()
            case RegisterTensor() if subject in state.tiles or subject in self.written:
                value = state.read(subject)
                return (subject.dtype, value.data.copy(), value.defined.copy()), ()
            case SharedTensor() if subject in state.shared and not state.shared[subject].buffer.is_free:
                view = state.shared[subject]
                value = view.load()
                count = int(view.buffer.on_its_way[view.where].sum())
                notes = (f"a copy into {count:,} of its elements is on its way",) if count else ()
                return (subject.dtype, value.data, value.defined), notes
            case GlobalTensor() if subject in state.views:
                value = state.global_value(subject)
                return (subject.dtype, value.data, value.defined), ()
            case _:
                return None
