# SPDX-License-Identifier: Apache-2.0
"""Watching a kernel: the NumPy evaluator runs one block of it until a line has run, and a name is looked up there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilekit.diag import errors
from tilekit.diag.span import Span
from tilekit.dtypes import DataType, PointerType
from tilekit.ir import evaluator
from tilekit.ir.evaluator import Group
from tilekit.ir.instructions.semaphore import LockSemaphoreInst
from tilekit.ir.machine import Array, Mask, Steps
from tilekit.ir.stmt import Stmt
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor
from tilekit.ir.tools.instruction_collector import collect
from tilekit.jit import evaluated, held
from tilekit.jit.authored import COMPOUND, Line, Subject, Text, writes
from tilekit.jit.watched import Place, Watched
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Var

if TYPE_CHECKING:
    from tilekit.jit.kernel import Kernel


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
    for what, given in (("line", line), ("step", step)):
        if given is not None and not isinstance(given, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise errors.ArgumentError("TK641", f"{kernel.script}: {what} is a whole number, not {given!r}")
    text = Text(kernel.program, kernel)
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
        raise _absent(name, text, look, where)
    count = 1 if look.last is None else look.counts[look.last]
    place = Place(*text.place(look.last), count - 1, where)
    return Watched(name, *look.value, place, count, kernel.patched, look.notes)


def _block(kernel: Kernel, block: int | Sequence[int], grid: tuple[int, int, int]) -> tuple[int, int, int]:
    given = (block,) if isinstance(block, int) else tuple(block)
    if len(given) > 3 or not all(isinstance(at, int) for at in given):
        raise errors.ArgumentError("TK641", f"{kernel.script}: block is up to three whole numbers, not {block!r}")
    x, y, z = (*given, 0, 0, 0)[:3]
    if not all(0 <= at < extent for at, extent in zip((x, y, z), grid, strict=True)):
        raise errors.ArgumentError("TK641", f"{kernel.script} has no block {block}: its grid is {grid}")
    return x, y, z


def _absent(name: str, text: Text, look: _Look, block: tuple[int, int, int]) -> errors.ArgumentError:
    """Why there is no value."""
    if not look.lines:
        return errors.ArgumentError("TK642", f"{name} is never assigned in {text.kernel.script}")
    at = look.lines[-1]
    line, count = text.place(at)[0], look.counts[at]
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


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


class _Found(Exception):
    """The value is there: nothing more needs to run."""


# the type, the elements, and which of them are defined
Value = tuple[DataType, Array, Mask]


@dataclass
class _Look:
    """What is looked for behind which lines, how often each has run, and what was found behind the last that did."""

    subjects: tuple[Subject, ...]
    lines: Sequence[Line]
    step: int | None
    counts: Counter[Line] = field(default_factory=Counter[Line])
    last: Line | None = None
    value: Value | None = None
    notes: tuple[str, ...] = ()

    def group(self, launch: Any, index: Any, scalars: Any, barrier: Any) -> Group:
        return _Looking(self, launch, index, scalars, barrier)


class _Looking(Group):
    """The thread group that is looked at: each time that control leaves a line, the line has run."""

    def __init__(self, look: _Look, *given: Any) -> None:
        super().__init__(*given)
        self.look = look
        self.line: Line | None = None
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
        if not isinstance(stmt, COMPOUND):
            self.written.update(dict.fromkeys(set(writes(stmt)).intersection(self.look.subjects), self.steps))
        return flow

    def _go_to(self, line: Line | None) -> None:
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
