# SPDX-License-Identifier: Apache-2.0
"""Reads of shared memory that cannot find their data: nobody wrote it, or its copy was started and not waited for.

A read is refused only where that holds on every path that leads to it. A copy is *pending* on such a path until a wait
finishes it for certain; its *age* is how many groups were committed since it started, at most: it is in one of so many
youngest groups, or at age 0 in none, which no wait for groups counts. Two views are known to meet where they are one
tensor, where one of them is the whole memory, or where the constants that they begin at say so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilekit.diag import errors
from tilekit.diag.span import Span
from tilekit.ir import stmt as stmts
from tilekit.ir.func import Function
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.copy_async import (
    CopyAsyncCommitGroupInst,
    CopyAsyncGenericInst,
    CopyAsyncInst,
    CopyAsyncWaitAllInst,
    CopyAsyncWaitGroupInst,
)
from tilekit.ir.instructions.shared import (
    AllocateSharedInst,
    FreeSharedInst,
    PermuteSharedInst,
    ReshapeSharedInst,
    SliceSharedInst,
)
from tilekit.ir.stmt import Stmt
from tilekit.ir.tensor import SharedTensor, Tensor
from tilekit.ir.text.names import Names
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar

_COMMIT = "call self.copy_async_commit_group() after the copies, or wait with self.copy_async_wait_all()"


def check(func: Function) -> None:
    """Raise a `VerificationError` at the first read that cannot find its data, or wait that never waits for any."""
    if collect(func, AllocateSharedInst):
        _Reads(func).run()


@dataclass(frozen=True)
class _Part:
    """What a tensor shows of the memory `root`: the indices along each of its dimensions, where they are known.

    Dimension `d` of the tensor runs along dimension `axes[d]` of the memory.
    """

    root: SharedTensor
    box: tuple[range, ...] | None
    axes: tuple[int, ...]

    @property
    def is_whole(self) -> bool:
        return self.box == _all_of(self.root)

    def meets(self, other: _Part) -> bool:
        """Whether the two have an element in common for certain."""
        if self.root is not other.root:
            return False
        return self.is_whole or other.is_whole or self._overlap(other) is True

    def may_meet(self, other: _Part) -> bool:
        """Whether the two may have an element in common."""
        return self.root is other.root and self._overlap(other) is not False

    def _overlap(self, other: _Part) -> bool | None:
        """Whether the two boxes have an index in common; None where one of them is not known."""
        if self.box is None or other.box is None:
            return None
        return all(a.start < b.stop and b.start < a.stop for a, b in zip(self.box, other.box, strict=True))


def _all_of(root: SharedTensor) -> tuple[range, ...]:
    return tuple(map(range, root.shape))


@dataclass(frozen=True)
class _Pending:
    """A copy that is under way, and the last wait that left it so."""

    dst: SharedTensor
    age: int = 0
    left_by: CopyAsyncWaitGroupInst | None = None

    def meet(self, other: _Pending) -> _Pending:
        return _Pending(self.dst, max(self.age, other.age), self.left_by if self.left_by is other.left_by else None)


@dataclass(frozen=True)
class _State:
    """The parts that something wrote on some path to here, and the copies that are pending on every one."""

    written: frozenset[_Part] = frozenset()
    pending: Mapping[Instruction, _Pending] = field(default_factory=dict[Instruction, _Pending])

    def meet(self, other: _State) -> _State:
        both = self.pending.keys() & other.pending.keys()
        pending = {copy: self.pending[copy].meet(other.pending[copy]) for copy in self.pending if copy in both}
        return _State(self.written | other.written, pending)

    def with_pending(self, changed: Callable[[_Pending], _Pending | None]) -> _State:
        after = {copy: changed(held) for copy, held in self.pending.items()}
        return replace(self, pending={copy: held for copy, held in after.items() if held is not None})


def _meet(states: Iterable[_State | None]) -> _State | None:
    """What holds where paths come together; None for a path that never gets there."""
    result: _State | None = None
    for state in states:
        result = state if result is None else result if state is None else result.meet(state)
    return result


class _Reads:
    """Walks a function in the order in which it runs."""

    def __init__(self, func: Function) -> None:
        self.func = func
        self.names = Names.of_function(func)
        self.parts: dict[SharedTensor, _Part] = {}
        self.state: _State | None = _State()
        self.breaks: list[list[_State | None]] = []
        waits = collect(func, CopyAsyncWaitGroupInst)
        # an age that every wait for groups finishes
        self.oldest = max((wait.n for wait in waits), default=0) + 1
        self.commits = _most_commits(func.body)
        self.somebody_waits = bool(collect(func, CopyAsyncWaitAllInst)) or any(wait.n < self.commits for wait in waits)
        # above 0 while the rounds of a loop are tried out
        self.silent = 0

    def run(self) -> None:
        self.statement(self.func.body)

    # ------------------------------------------------------------------------------------------------- statements

    def statement(self, stmt: Stmt) -> None:
        match stmt:
            case stmts.SeqStmt(seq=seq):
                for child in seq:
                    self.statement(child)
            case stmts.LetStmt(body=body):
                self.statement(body)
            case stmts.InstStmt(inst=inst):
                self.instruction(inst, inst.span or stmt.span)
            case stmts.TensorItemValueStmt(tensor=SharedTensor() as tensor):
                self.read(tensor, stmt.span)
            case stmts.TensorItemPtrStmt(tensor=SharedTensor() as tensor):
                self.write(tensor)  # whoever has the address may do so
            case stmts.IfStmt():
                before, holds = self.state, scalar.constant_value(stmt.cond)
                self.state = None if holds is False else before
                self.statement(stmt.then_body)
                then, self.state = self.state, None if holds is True else before
                if stmt.else_body is not None:
                    self.statement(stmt.else_body)
                self.state = _meet([then, self.state])
            case stmts.ForStmt(extent=extent, body=body):
                count = scalar.constant_value(extent)
                if count is None or count > 0:
                    self.loop(body, certain=count is not None, endless=False)
            case stmts.WhileStmt(cond=cond, body=body):
                holds = scalar.constant_value(cond)
                if holds is not False:
                    self.loop(body, certain=holds is True, endless=holds is True)
            case stmts.BreakStmt():
                self.breaks[-1].append(self.state)
                self.state = None
            case stmts.ReturnStmt():
                self.state = None
            case _:
                pass

    def loop(self, body: Stmt, *, certain: bool, endless: bool) -> None:
        """A loop: at the head of a round holds what holds before the loop and after every round."""
        head = self.state
        if head is None:
            return
        self.silent += 1
        while (again := _meet([head, self.round(body, head)[0]])) != head:
            assert again is not None
            head = again
        self.silent -= 1
        after, breaks = self.round(body, head)
        ends = [*breaks] if endless else [*breaks, after] if certain else [*breaks, after, head]
        self.state = _meet(ends)

    def round(self, body: Stmt, head: _State) -> tuple[_State | None, list[_State | None]]:
        """What holds after a round that begins so, and at its breaks."""
        self.state = head
        self.breaks.append([])
        self.statement(body)
        return self.state, self.breaks.pop()

    # ----------------------------------------------------------------------------------------------- instructions

    def instruction(self, inst: Instruction, span: Span | None) -> None:
        match inst:
            case AllocateSharedInst(shared_output=made):
                self.parts[made] = _Part(made, _all_of(made), tuple(range(len(made.shape))))
            case SliceSharedInst() | PermuteSharedInst() | ReshapeSharedInst():
                self.parts[inst.shared_output] = part = self.seen(inst)
                if part.box is None and self.state is not None:
                    # it may begin elsewhere than the view that this instruction made before
                    view = inst.shared_output
                    self.state = self.state.with_pending(lambda held: None if held.dst is view else held)
            case CopyAsyncInst(dst=dst) | CopyAsyncGenericInst(dst=dst):
                self.write(dst)
                if self.state is not None:
                    self.state = replace(self.state, pending={**self.state.pending, inst: _Pending(dst)})
            case CopyAsyncCommitGroupInst() if self.state is not None:
                oldest = self.oldest
                self.state = self.state.with_pending(lambda held: replace(held, age=min(held.age + 1, oldest)))
            case CopyAsyncWaitGroupInst() if self.state is not None:
                self.useful(inst, span)
                self.state = self.state.with_pending(
                    lambda held: replace(held, left_by=inst) if held.age <= inst.n else None
                )
            case CopyAsyncWaitAllInst() if self.state is not None:
                self.state = replace(self.state, pending={})
            case FreeSharedInst():
                pass
            case _:
                self.uses(inst, span)

    def uses(self, inst: Instruction, span: Span | None) -> None:
        """Reads of an instruction, and then its writes."""
        for tensor in _shared(inst.reads):
            self.read(tensor, span)
        for tensor in _shared(inst.writes):
            self.write(tensor)

    def seen(self, view: SliceSharedInst | PermuteSharedInst | ReshapeSharedInst) -> _Part:
        """What a new view shows."""
        whole, shape = self.parts[view.x], view.shared_output.shape
        match view:
            case PermuteSharedInst(dims=dims):
                return replace(whole, axes=tuple(whole.axes[d] for d in dims) if whole.axes else ())
            case ReshapeSharedInst():
                # it has no axes that a slice of it could be found by
                return _Part(whole.root, whole.box if whole.is_whole else None, ())
            case SliceSharedInst(offsets=offsets, dims=dims):
                first = [scalar.constant_value(offset) for offset in offsets]
                if whole.box is None or len(whole.axes) != len(first) or None in first:
                    return _Part(whole.root, None, ())
                box, extents = list(whole.box), dict(zip(dims, shape, strict=True))
                for dim, axis in enumerate(whole.axes):
                    begin = box[axis].start + first[dim]
                    box[axis] = range(begin, begin + extents.get(dim, 1))
                return _Part(whole.root, tuple(box), tuple(whole.axes[d] for d in dims))

    def write(self, tensor: SharedTensor) -> None:
        if self.state is not None:
            self.state = replace(self.state, written=self.state.written | {self.parts[tensor]})

    def read(self, tensor: SharedTensor, span: Span | None) -> None:
        if self.state is None or self.silent:
            return
        part = self.parts[tensor]
        name = self.names.name(tensor if tensor.name or tensor is part.root else part.root)
        if not any(map(part.may_meet, self.state.written)):
            is_named = tensor.name or all(part.root is not each.root for each in self.state.written)
            what = name if is_named else f"this part of {name}"
            error = errors.VerificationError(
                "TK193",
                f"{what} is read before anything is stored in it or copied to it",
                at=span,
                help="fill it with self.store_shared or self.copy_async, and call self.sync() before it is read",
            )
            raise error.noted("its memory is made here, and holds nothing", self.made_at(part.root))
        for copy, held in self.state.pending.items():
            if held.dst is tensor or self.parts[held.dst].meets(part):
                raise _in_flight(name, copy, held, span)

    def made_at(self, root: SharedTensor) -> Span | None:
        return next(inst.span for inst in collect(self.func, AllocateSharedInst) if inst.output is root)

    def useful(self, wait: CopyAsyncWaitGroupInst, span: Span | None) -> None:
        """Refuse a wait that never waits for the copies that are pending, in a kernel where no other one does."""
        assert self.state is not None
        if self.silent or self.somebody_waits or not self.state.pending:
            return
        groups = (
            "no group" if self.commits == 0 else "only 1 group" if self.commits == 1 else f"only {self.commits} groups"
        )
        message = f"copy_async_wait_group({wait.n}) never waits: the kernel commits {groups}"
        help = _COMMIT if self.commits == 0 else "copy_async_wait_group(0) waits for all of them"
        error = errors.VerificationError("TK196", message, at=span, help=help)
        for copy in self.state.pending:
            error.noted("this copy is not waited for", copy.span)
        raise error


def _in_flight(name: str, copy: Instruction, held: _Pending, span: Span | None) -> errors.VerificationError:
    wait = held.left_by
    if wait is None:
        left, help = "nothing waits for it", "call self.copy_async_wait_all(), and then self.sync()"
    elif held.age == 0:
        left, help = "it is in no group, which the wait does not count", _COMMIT
    else:
        left = f"the wait leaves {'a group' if wait.n == 1 else f'{wait.n} groups'} under way"
        help = "let the wait leave fewer: copy_async_wait_group(0) waits for all"
    error = errors.VerificationError(
        "TK721", f"{name} is read while the copy to it may be under way: {left}", at=span, help=help
    ).noted("the copy starts here", copy.span)
    return error if wait is None else error.noted("the wait is here", wait.span)


def _shared(tensors: Sequence[Tensor]) -> list[SharedTensor]:
    return [tensor for tensor in tensors if isinstance(tensor, SharedTensor)]


def _most_commits(stmt: Stmt | None) -> float:
    """How many groups a run of a statement commits at most."""
    match stmt:
        case stmts.SeqStmt(seq=seq):
            return sum(map(_most_commits, seq))
        case stmts.LetStmt(body=body):
            return _most_commits(body)
        case stmts.IfStmt():
            return max(_most_commits(stmt.then_body), _most_commits(stmt.else_body))
        case stmts.ForStmt(extent=extent, body=body):
            each, count = _most_commits(body), scalar.constant_value(extent)
            return each if each == 0 else math.inf if count is None else each * max(count, 0)
        case stmts.WhileStmt(body=body):
            return math.inf if _most_commits(body) else 0
        case stmts.InstStmt(inst=CopyAsyncCommitGroupInst()):
            return 1
        case _:
            return 0
