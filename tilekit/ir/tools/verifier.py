# SPDX-License-Identifier: Apache-2.0
"""The rules that every program keeps, between any two passes: what is wrong is said with its place in the source."""

from __future__ import annotations

import enum
import math
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.diag.span import Span
from tilekit.dtypes import DataType, PointerType
from tilekit.ir import stmt as stmts
from tilekit.ir.func import Function
from tilekit.ir.inst import REGISTRY, Instruction
from tilekit.ir.instructions.semaphore import LockSemaphoreInst, ReleaseSemaphoreInst
from tilekit.ir.instructions.shared import (
    AllocateSharedInst,
    FreeSharedInst,
    PermuteSharedInst,
    ReshapeSharedInst,
    SliceSharedInst,
)
from tilekit.ir.instructions.transform import AnnotateLayoutInst
from tilekit.ir.instructions.workspace import AllocateGlobalInst
from tilekit.ir.layout import RegisterLayout
from tilekit.ir.prog import Program
from tilekit.ir.stmt import Stmt
from tilekit.ir.surface import check_offsets
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.ir.text.names import Names, is_special
from tilekit.ir.tools import bounds, invariants, shared_contents
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var
from tilekit.target import LOCAL_MEMORY_PER_THREAD, MAX_CLUSTER, MAX_GRID


def verify(prog: Program) -> None:
    """Raise a `VerificationError` where a program breaks a rule of the IR."""
    for name, func in prog.functions.items():
        if name != func.name:
            raise _error("TK191", f"the program knows function {func.name} by another name, {name}", func.span)
        _FunctionVerifier(func).verify()
        bounds.check(func)
        shared_contents.check(func)


class _Kind(enum.Enum):
    """What a variable in scope is, in the words of an error."""

    PARAM = "a parameter"
    INDEX = "an index of the block"
    LOOP = "the variable of a loop"
    LET = "a name for one value"
    MUTABLE = "a mutable variable"
    ITEM = "the value of an element"


@dataclass(frozen=True)
class _Facts:
    """What has happened on every path that leads here, and what memory was freed on some of them."""

    defined: frozenset[Tensor] = frozenset()
    written: frozenset[Tensor | Var] = frozenset()
    freed: frozenset[SharedTensor] = frozenset()

    def meet(self, other: _Facts) -> _Facts:
        return _Facts(self.defined & other.defined, self.written & other.written, self.freed | other.freed)


# None: no path leads here, so everything has happened
_Reached: TypeAlias = "_Facts | None"


def _meet(facts: Iterable[_Reached]) -> _Reached:
    result: _Reached = None
    for each in facts:
        result = each if result is None else result if each is None else result.meet(each)
    return result


class _FunctionVerifier:
    """Walks a function in the order in which it runs.

    A loop is walked a second time only where it frees shared memory that its next round may use: all other facts grow.
    """

    def __init__(self, func: Function) -> None:
        self.func = func
        self.scope: dict[Var, _Kind] = {}
        self.facts: _Reached = _Facts()
        # what holds at each `break` of the loops around, innermost last
        self.breaks: list[list[_Reached]] = []
        self.made_at: dict[Tensor, Span | None] = {}
        # whose memory a shared tensor shows, and where memory was freed
        self.memory_of: dict[SharedTensor, SharedTensor] = {}
        self.freed_at: dict[SharedTensor, Span | None] = {}
        # pointers into shared memory
        self.inside: set[Var] = set()

    # ------------------------------------------------------------------------------------------------- functions

    def verify(self) -> None:
        func, metadata = self.func, self.func.metadata
        if not func.name.isidentifier():
            raise _error("TK191", f"{func.name!r} cannot be the name of a function", func.span)
        for var in func.params:
            self._declare(var, _Kind.PARAM, func.span)
        self._check_launch()
        for var in metadata.block_indices:
            if not is_special(var):
                self._declare(var, _Kind.INDEX, func.span)
        self.stmt(func.body)

    def _check_launch(self) -> None:
        func, metadata = self.func, self.func.metadata
        for axis, extent, cluster in zip("xyz", metadata.grid_blocks, metadata.cluster_blocks, strict=True):
            if not scalar.is_integer(dtype := scalar.dtype_of(extent)):
                raise _error("TK191", f"the grid along {axis} must be an integer, got {dtype}", func.span)
            for var in scalar.free_vars(extent):
                if var not in func.params:
                    raise _error("TK191", f"the grid along {axis} uses {_name(var)}, which is no parameter", func.span)
            blocks = scalar.constant_value(extent)
            if blocks is not None and not 0 <= blocks <= (limit := MAX_GRID["xyz".index(axis)]):
                raise _error("TK191", f"the grid along {axis} has {blocks} blocks, not 0 to {limit}", func.span)
            if cluster < 1:
                raise _error("TK191", f"the cluster along {axis} must be a positive number, got {cluster}", func.span)
        if (blocks := math.prod(metadata.cluster_blocks)) > MAX_CLUSTER:
            raise _error("TK191", f"a cluster has at most {MAX_CLUSTER} blocks, not {blocks}", func.span)
        if not 1 <= metadata.num_warps <= 32:
            raise _error("TK191", f"a kernel has 1 to 32 warps, not {metadata.num_warps}", func.span)
        for var, divisor in metadata.param2divisibility.items():
            if var not in func.params:
                raise _error("TK191", f"a divisor is given for {_name(var)}, which is no parameter", func.span)
            if divisor < 1:
                raise _error("TK191", f"the divisor of {_name(var)} must be positive, got {divisor}", func.span)

    # ------------------------------------------------------------------------------------------------ statements

    def stmt(self, stmt: Stmt) -> None:
        match stmt:
            case stmts.SeqStmt(seq=seq):
                for child in seq:
                    self.stmt(child)
            case stmts.InstStmt(inst=inst):
                self.instruction(inst, inst.span or stmt.span)
            case stmts.ForStmt():
                self._for(stmt)
            case stmts.WhileStmt(cond=cond, body=body):
                self._condition(cond, stmt.span)
                self._ends(cond, body, stmt.span)
                self._loop(body, certain=_is_true(cond), endless=_is_true(cond))
            case stmts.IfStmt():
                self._if(stmt)
            case stmts.LetStmt():
                with self._block():
                    for var, value in zip(stmt.bind_vars, stmt.bind_values, strict=True):
                        self._value(var, value, stmt.span)
                        self._declare(var, _Kind.LET, stmt.span)
                    self.stmt(stmt.body)
            case stmts.DeclareStmt(var=var, init=init):
                if init is not None:
                    self._value(var, init, stmt.span)
                self._declare(var, _Kind.MUTABLE, stmt.span, written=init is not None)
            case stmts.AssignStmt(var=var, value=value):
                self._assign(var, value, stmt.span)
            case stmts.TensorItemValueStmt(var=var, tensor=tensor, offsets=offsets):
                self._item(tensor, offsets, stmt.span)
                self._item_type(var, tensor.dtype, stmt.span)
            case stmts.TensorItemPtrStmt(ptr_var=var, tensor=tensor, offsets=offsets):
                if isinstance(tensor, RegisterTensor):
                    raise _error(
                        "TK191", f"{self._names.name(tensor)} lies in registers, which have no address", stmt.span
                    )
                self._item(tensor, offsets, stmt.span)
                self._item_type(var, PointerType(tensor.dtype), stmt.span)
                if isinstance(tensor, SharedTensor):
                    self.inside.add(var)
            case stmts.BreakStmt():
                if not self.breaks:
                    raise _error("TK191", "break stands outside of a loop", stmt.span)
                self.breaks[-1].append(self.facts)
                self.facts = None
            case stmts.ReturnStmt():
                self.facts = None
            case _:
                raise _error("TK191", f"{type(stmt).__name__} is no statement of the tile IR", stmt.span)

    @contextmanager
    def _block(self) -> Generator[None]:
        """What is declared inside is not known after it."""
        outer = dict(self.scope)
        yield
        self.scope = outer

    def _for(self, stmt: stmts.ForStmt) -> None:
        extent, var = stmt.extent, stmt.iter_var
        self._expr(extent, stmt.span)
        if not scalar.is_integer(dtype := scalar.dtype_of(extent)):
            raise _error("TK191", f"the extent of a loop must be an integer, got {dtype}", stmt.span)
        if (counter := scalar.dtype_of(var)) != dtype:
            raise _error("TK191", f"{_name(var)} is {counter}, but counts to an extent of {dtype}", stmt.span)
        if stmt.unroll_factor is not None and stmt.unroll_factor != -1 and stmt.unroll_factor < 1:
            message = f"a loop unrolls by a positive factor, or by -1 for all of it, not by {stmt.unroll_factor}"
            raise _error("TK191", message, stmt.span)
        with self._block():
            self._declare(var, _Kind.LOOP, stmt.span)
            count = scalar.constant_value(extent)
            self._loop(stmt.body, certain=count is not None and count > 0, endless=False)

    def _ends(self, cond: Expr, body: Stmt, span: Span | None) -> None:
        """Refuse a loop that goes on forever once it has begun: its condition never changes, and nothing leaves it."""
        asked = scalar.free_vars(cond)
        assigned = {stmt.var for stmt in collect(body, stmts.AssignStmt)}
        if scalar.constant_value(cond) is False or not assigned.isdisjoint(asked) or _leaves(body):
            return
        why = "nothing in it changes its condition" if asked else "its condition always holds"
        raise _error("TK703", f"this loop never ends: {why}, and nothing leaves it", span)

    def _loop(self, body: Stmt, *, certain: bool, endless: bool) -> None:
        """A loop; it runs at least once where that is `certain`, and ends by `break` alone where it is `endless`."""
        before = self.facts
        after = self._round(body)
        if before is not None and self.facts is not None and not self.facts.freed <= before.freed:
            self.facts = replace(before, freed=before.freed | self.facts.freed)
            after = self._round(body)
        if not endless:
            after.append(self.facts)
            after.extend([] if certain else [before])
        self.facts = _meet(after)

    def _round(self, body: Stmt) -> list[_Reached]:
        """Walk the body of a loop once; what holds at each of its breaks."""
        self.breaks.append([])
        with self._block():
            self.stmt(body)
        return self.breaks.pop()

    def _if(self, stmt: stmts.IfStmt) -> None:
        self._condition(stmt.cond, stmt.span)
        before = self.facts
        ends: list[_Reached] = []
        for body in (stmt.then_body, stmt.else_body):
            self.facts = before
            if body is not None:
                with self._block():
                    self.stmt(body)
            ends.append(self.facts)
        self.facts = _meet(ends)

    def _condition(self, cond: Expr, span: Span | None) -> None:
        self._expr(cond, span)
        if (dtype := scalar.dtype_of(cond)) is not dtypes.boolean:
            raise _error("TK191", f"a condition must be bool, got {dtype}", span)

    def _value(self, var: Var, value: Expr, span: Span | None) -> None:
        self._expr(value, span)
        if not self.inside.isdisjoint(scalar.free_vars(value)):
            self.inside.add(var)
        if (want := scalar.dtype_of(var)) != (have := scalar.dtype_of(value)):
            raise _error("TK191", f"{_name(var)} is {want}, but its value is {have}", span)

    def _declare(self, var: Var, kind: _Kind, span: Span | None, *, written: bool = True) -> None:
        if var in self.scope or is_special(var):
            raise _error("TK191", f"{_name(var)} is declared twice", span)
        self.scope[var] = kind
        if self.facts is not None:
            seen = self.facts.written
            self.facts = replace(self.facts, written=seen | {var} if written else seen - {var})

    def _assign(self, var: Var, value: Expr, span: Span | None) -> None:
        kind = self.scope.get(var)
        if kind is None:
            raise _error("TK192", f"{_name(var)} is assigned, but not declared before", span)
        if kind is not _Kind.MUTABLE:
            raise _error("TK191", f"{_name(var)} cannot be assigned: it is {kind.value}", span)
        self._value(var, value, span)
        self._wrote(var)

    def _wrote(self, what: Tensor | Var) -> None:
        if self.facts is not None:
            self.facts = replace(self.facts, written=self.facts.written | {what})

    # ----------------------------------------------------------------------------------------------- expressions

    def _expr(self, expr: Expr, span: Span | None, bound: Iterable[Var] = ()) -> None:
        known = set(bound)
        for var in scalar.free_vars(expr):
            if var is scalar.thread_idx():
                message = "thread_idx differs from thread to thread, and every number is the same in all of them"
                raise _error("TK195", message, span)
            if var in known or is_special(var):
                continue
            if var not in self.scope:
                raise _error("TK192", f"{_name(var)} is used, but not declared before", span)
            if self.facts is not None and var not in self.facts.written:
                raise _error("TK193", f"{_name(var)} is read before it is written", span)

    # ---------------------------------------------------------------------------------------------- instructions

    def instruction(self, inst: Instruction, span: Span | None) -> None:
        if REGISTRY.get(inst.opcode) is not type(inst):
            raise _error("TK191", f"{type(inst).__name__} is no instruction: it has no opcode of its own", span)
        for tensor in inst.inputs:
            self._defined(tensor, span)
        for tensor in inst.reads:
            self._written(tensor, span)
        self._scalars(inst, span)
        with self._placed(span):
            invariants.check_instruction(inst)
        self._rules(inst, span)
        for tensor in inst.writes:
            if tensor is not inst.output or inst.gives_value:
                self._wrote(tensor)
        if inst.output is not None:
            self._output(inst.output, span)

    def _defined(self, tensor: Tensor, span: Span | None) -> None:
        if self.facts is None:
            return
        if isinstance(tensor, SharedTensor) and (whole := self._memory(tensor)) in self.facts.freed:
            error = _error("TK705", f"{self._names.name(tensor)} is used after its memory was freed", span)
            raise error.noted("it is freed here", self.freed_at[whole])
        if tensor in self.facts.defined:
            return
        if tensor not in self.made_at:
            raise _error("TK192", f"{self._names.name(tensor)} is used before it is defined", span)
        error = _error("TK192", f"{self._names.name(tensor)} is not defined on every path that leads here", span)
        raise error.noted("it is defined here", self.made_at[tensor])

    def _written(self, tensor: Tensor, span: Span | None) -> None:
        if self.facts is None or not isinstance(tensor, RegisterTensor) or tensor in self.facts.written:
            return
        error = _error("TK193", f"{self._names.name(tensor)} is read before it is written", span)
        raise error.noted("it is made here, without a value", self.made_at[tensor])

    def _rules(self, inst: Instruction, span: Span | None) -> None:
        """What an instruction does to memory, and what only the function around it can tell."""
        match inst:
            case AllocateSharedInst():
                self.memory_of[inst.shared_output] = inst.shared_output
                self._freed(inst.shared_output, False)
            case SliceSharedInst() | PermuteSharedInst() | ReshapeSharedInst():
                self.memory_of[inst.shared_output] = self._memory(inst.x)
            case FreeSharedInst(tensor=tensor):
                if (whole := self._memory(tensor)) is not tensor:
                    name, shown = self._names.name(tensor), self._names.name(whole)
                    message = f"{name} cannot be freed: it shows memory of {shown}, free that"
                    raise _error("TK191", message, span)
                self.freed_at[tensor] = span
                self._freed(tensor, True)
            case AllocateGlobalInst(tensor=tensor):
                for expr in (*tensor.layout.shape, *tensor.layout.strides):
                    for var in scalar.free_vars(expr):
                        if var not in self.func.params:
                            name = self._names.name(tensor)
                            message = (
                                f"the size of the workspace {name} uses {var.name or _name(var)}, which is no parameter"
                            )
                            help = "it is made before the launch: compute it from parameters, as self.attrs.blocks is"
                            raise _error("TK191", message, span, help)
            case LockSemaphoreInst(ptr=ptr) | ReleaseSemaphoreInst(ptr=ptr):
                if not self.inside.isdisjoint(scalar.free_vars(ptr)):
                    message = f"{inst.opcode} needs a semaphore in global memory: nobody else sees shared memory"
                    help = "make it with self.global_tensor(int32, […], requires_clean=True)"
                    raise _error("TK215", message, span, help)
            case AnnotateLayoutInst(layout=RegisterLayout() as layout):
                self._threads(layout, inst.inputs[0], span)
            case _:
                pass

    def _memory(self, tensor: SharedTensor) -> SharedTensor:
        return self.memory_of.get(tensor, tensor)

    def _freed(self, tensor: SharedTensor, is_freed: bool) -> None:
        if self.facts is not None:
            freed = self.facts.freed
            self.facts = replace(self.facts, freed=freed | {tensor} if is_freed else freed - {tensor})

    def _item(
        self, tensor: RegisterTensor | SharedTensor | GlobalTensor, offsets: Sequence[Expr], span: Span | None
    ) -> None:
        """Check which element of which tensor is meant."""
        self._defined(tensor, span)
        self._written(tensor, span)
        for offset in offsets:
            self._expr(offset, span)
        name = self._names.name(tensor)
        if isinstance(tensor, RegisterTensor):
            if tensor.size != 1 or offsets:
                raise _error(
                    "TK191", f"{name} has {tensor.size} elements: only a tile of one is read as a number", span
                )
            return
        with self._placed(span):
            check_offsets(f"an element of {name}", len(tensor.shape), offsets)

    def _item_type(self, var: Var, wanted: DataType | PointerType, span: Span | None) -> None:
        if (have := scalar.dtype_of(var)) != wanted:
            raise _error("TK191", f"{_name(var)} is {have}, but the element makes it {wanted}", span)
        self._declare(var, _Kind.ITEM, span)

    def _scalars(self, inst: Instruction, span: Span | None) -> None:
        bound = inst.bound_vars
        for var in bound:
            if var in self.scope or is_special(var) or bound.count(var) > 1:
                raise _error("TK191", f"{_name(var)} is declared twice", span)
        for expr in inst.exprs:
            self._expr(expr, span, bound)

    def _output(self, tensor: Tensor, span: Span | None) -> None:
        with self._placed(span):
            invariants.check_tensor(tensor, self._names.name(tensor))
        if isinstance(tensor, GlobalTensor):
            for expr in (*tensor.layout.shape, *tensor.layout.strides):
                self._expr(expr, span)
        if isinstance(tensor, RegisterTensor):
            self._fits(tensor, span)
        self._layout(tensor, span)
        self.made_at.setdefault(tensor, span)
        if self.facts is not None:
            self.facts = replace(self.facts, defined=self.facts.defined | {tensor})

    def _layout(self, tensor: Tensor, span: Span | None) -> None:
        if isinstance(tensor, RegisterTensor) and tensor.optional_layout is not None:
            self._threads(tensor.optional_layout, tensor, span)

    def _fits(self, tile: RegisterTensor, span: Span | None) -> None:
        """A tile has room in the threads, not counting what several of them hold."""
        threads = self.func.metadata.num_threads
        each = -(-tile.size * tile.dtype.nbits // (8 * threads))
        if each > LOCAL_MEMORY_PER_THREAD:
            message = f"{self._names.name(tile)} takes {each} bytes in each of {threads} threads"
            help = "make the tile smaller, or give the kernel more warps"
            raise _error("TK197", f"{message}, and a thread has {LOCAL_MEMORY_PER_THREAD}", span, help)

    def _threads(self, layout: RegisterLayout, tensor: Tensor, span: Span | None) -> None:
        threads = self.func.metadata.num_threads
        if (wanted := layout.spatial_size) != threads:
            name = self._names.name(tensor)
            raise _error("TK303", f"the layout of {name} is for {wanted} threads, but {threads} run it", span)

    @cached_property
    def _names(self) -> Names:
        return Names.of_function(self.func)

    @contextmanager
    def _placed(self, span: Span | None) -> Generator[None]:
        """What `create` says about the parts of an instruction, as a broken rule of the IR."""
        try:
            yield
        except errors.VerificationError as error:
            raise error.located(span) from None
        except errors.TilekitError as error:
            found = error.diagnostic
            raise errors.VerificationError(error.code, error.message, at=span, help=found.help) from error


def _leaves(body: Stmt) -> bool:
    """Whether a statement in the body of a loop may end the loop."""
    match body:
        case stmts.BreakStmt() | stmts.ReturnStmt():
            return True
        case stmts.SeqStmt(seq=seq):
            return any(map(_leaves, seq))
        case stmts.LetStmt(body=inner):
            return _leaves(inner)
        case stmts.IfStmt(then_body=then, else_body=other):
            return _leaves(then) or (other is not None and _leaves(other))
        case stmts.ForStmt(body=inner) | stmts.WhileStmt(body=inner):
            return bool(collect(inner, stmts.ReturnStmt))
        case _:
            return False


def _is_true(cond: Expr) -> bool:
    return scalar.constant_value(cond) is True


def _name(var: Var) -> str:
    return scalar.name_hint(var)


def _error(code: str, message: str, at: Span | None, help: str | None = None) -> errors.VerificationError:
    return errors.VerificationError(code, message, at=at, help=help)
