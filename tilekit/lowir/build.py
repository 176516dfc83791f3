# SPDX-License-Identifier: Apache-2.0
"""The builder that emitters write Hidet IR with.

Emitters think in the scalar language; every expression that goes into a statement is given C's meaning on the way
(`scalar_lower`). What belongs to one tile instruction is written inside `instruction(number, text)`: the text becomes
its comment, and the printer finds the number of each line by it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from tilekit import dtypes
from tilekit.dtypes import DataType, PointerType
from tilekit.lowir import scalar, scalar_lower, types
from tilekit.lowir.nodes import (
    Address,
    AssignStmt,
    BlackBoxStmt,
    BreakStmt,
    BufferStoreStmt,
    DeclareStmt,
    EvaluateStmt,
    Expr,
    ForStmt,
    ForStmtAttr,
    Function,
    HVoidType,
    IfStmt,
    IRModule,
    ReturnStmt,
    SeqStmt,
    Stmt,
    TensorElement,
    Var,
    WhileStmt,
)
from tilekit.lowir.statements import Printf
from tilekit.lowir.types import Type

# unroll a loop completely
ALL = -1

# a Python integer stands for an int32 constant
Int = Expr | int

# where a function keeps the parameters that are only read
READ_ONLY = "tilekit.read_only"
NUM_THREADS = "cuda.block_dim"


class Mark(BlackBoxStmt):
    """The statements after it, up to the next mark, belong to a tile instruction; the text is its comment.

    A black box without operands is a statement that every pass keeps as it is and where it is.
    """

    def __init__(self, origin: int | None, text: str) -> None:
        super().__init__("// " + text.replace("{}", "{ }").replace("\n", "\n// ") if text else "")
        self.origin = origin
        self.text = text


class Knowledge(Protocol):
    """What the builder asks, and tells, about the values of integers."""

    def learn(self, v: Var, low: int, high: int) -> None:
        """A variable that the builder made takes values in [low, high]."""
        ...

    def is_at_least(self, e: Expr, low: int) -> bool:
        """Whether no value of an integer expression is below `low`, wrapping included."""
        ...

    def may_wrap(self, e: Expr) -> bool:
        """Whether the result of an integer operation may leave the range of its type."""
        ...


class NoKnowledge:
    """Knows nothing: every division is a call, and so is all that may wrap."""

    def learn(self, v: Var, low: int, high: int) -> None:
        pass

    def is_at_least(self, e: Expr, low: int) -> bool:
        return False

    def may_wrap(self, e: Expr) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class RegisterArray:
    """The registers of one thread that hold its part of a tile."""

    var: Var
    dtype: DataType
    length: int


class KernelBuilder:
    """Writes the body of one kernel, statement after statement, and makes the module of it."""

    def __init__(self, num_threads: int, knowledge: Knowledge | None = None) -> None:
        self.num_threads = num_threads
        self._knowledge: Knowledge = knowledge or NoKnowledge()
        self._scopes: list[list[Stmt]] = [[]]
        # the instruction that is being written, and those that the statements of each open scope are marked with
        self._origin: int | None = None
        self._marked: list[int | None] = [None]
        # how many statements stand at the top of the kernel, before everything else
        self._top = 0
        self._knowledge.learn(scalar.thread_idx(), 0, num_threads - 1)

    # ------------------------------------------------------------------------------------------------ instructions

    @contextmanager
    def instruction(self, origin: int, text: str) -> Generator[None]:
        """What is written in this block is the code of one tile instruction."""
        outer, self._origin = self._origin, origin
        self._scopes[-1].append(Mark(origin, text))
        self._marked[-1] = origin
        try:
            yield
        finally:
            self._origin = outer

    @contextmanager
    def at(self, origin: int) -> Generator[None]:
        """What is written in this block, outside of instructions, is the code of one statement."""
        outer, self._origin = self._origin, origin
        try:
            yield
        finally:
            self._origin = outer

    def comment(self, text: str) -> None:
        """A comment line inside an instruction."""
        self._append(Mark(self._origin, text))

    # -------------------------------------------------------------------------------------------------- variables

    def declare(self, v: Var, init: Expr | None = None) -> Var:
        """Declare a variable that may be assigned later."""
        self._append(DeclareStmt(v, None if init is None else self._lower(init)))
        return v

    def let(self, name: str, value: Expr) -> Var:
        """A new variable with this value."""
        return self.declare(scalar.var(name, scalar.dtype_of(value)), value)

    def hoist(self, name: str, value: Expr) -> Var:
        """A new variable with this value at the top of the kernel, after those hoisted before."""
        v = scalar.var(name, scalar.dtype_of(value))
        self._scopes[0].insert(self._top, DeclareStmt(v, self._lower(value)))
        self._top += 1
        return v

    def assign(self, v: Var, value: Expr) -> None:
        self._check(scalar.dtype_of(v), value)
        self._append(AssignStmt(v, self._lower(value)))

    # -------------------------------------------------------------------------------------------------- registers

    def register_array(self, name: str, dtype: DataType, length: int) -> RegisterArray:
        """Declare registers, uninitialized; index them with constants and unrolled loop variables only."""
        v = Var(name, types.array(dtype, length))
        self._append(DeclareStmt(v))
        return RegisterArray(v, dtype, length)

    def load(self, array: RegisterArray, index: Int) -> Expr:
        return TensorElement(array.var, (_int(index),))

    def store(self, array: RegisterArray, index: Int, value: Expr, *, wraps: bool = False) -> None:
        """Set a register; what `value` computes may be asked to wrap where an integer leaves the range of its type."""
        self._check(array.dtype, value)
        stored = scalar_lower.wrapping(value, self._knowledge.may_wrap) if wraps else value
        self._append(BufferStoreStmt(array.var, [self._lower(_int(index))], self._lower(stored)))

    def registers(self, array: RegisterArray, index: Int = 0) -> Expr:
        """The address of a register, for functions that fill or read several."""
        return Address(TensorElement(array.var, (_int(index),)))

    # ----------------------------------------------------------------------------------------------------- memory

    def address(self, pointer: Expr, index: Int) -> Expr:
        """The address of the element `index` behind a pointer."""
        return Address(TensorElement(pointer, (_int(index),)))

    def buffer_load(self, pointer: Expr, index: Int) -> Expr:
        return TensorElement(pointer, (_int(index),))

    def buffer_store(self, pointer: Expr, index: Int, value: Expr) -> None:
        pointee = scalar.dtype_of(pointer)
        assert isinstance(pointee, PointerType)
        self._check(pointee.base, value)
        self._append(BufferStoreStmt(self._lower(pointer), [self._lower(_int(index))], self._lower(value)))

    # ----------------------------------------------------------------------------------------------- control flow

    @contextmanager
    def for_range(self, v: Var | str, extent: Int, unroll: int | None = None) -> Generator[Var]:
        """`for v in range(extent)`: `unroll` is None (the compiler decides), `ALL`, or a factor.

        A name makes a new variable, of whose values the builder tells; of a given one they are known.
        """
        end = _int(extent)
        if isinstance(v, str):
            v = scalar.var(v, scalar.dtype_of(end))
            self._learn_loop(v, end)
        self._check(scalar.dtype_of(v), end)
        attr = ForStmtAttr(unroll=unroll is not None, unroll_factor=None if unroll == ALL else unroll)
        with self._scope() as body:
            yield v
        self._append(ForStmt(v, self._lower(end), SeqStmt(body), attr=attr))

    @contextmanager
    def while_loop(self, condition: Expr) -> Generator[None]:
        with self._scope() as body:
            yield
        self._append(WhileStmt(self._lower(condition), SeqStmt(body)))

    @contextmanager
    def if_then(self, condition: Expr) -> Generator[None]:
        with self._scope() as body:
            yield
        self._append(IfStmt(self._lower(condition), SeqStmt(body)))

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """The other branch of the `if_then` that was just left."""
        last = self._scopes[-1][-1]
        assert isinstance(last, IfStmt) and last.else_body is None, "otherwise() follows if_then() at once"
        with self._scope() as body:
            yield
        self._scopes[-1][-1] = IfStmt(last.cond, last.then_body, SeqStmt(body))

    def break_(self) -> None:
        self._append(BreakStmt())

    def ret(self) -> None:
        """End the kernel for this thread."""
        self._append(ReturnStmt())

    def evaluate(self, call: Expr) -> None:
        """Call a function for what it does."""
        self._append(EvaluateStmt(self._lower(call)))

    def printf(self, text: str, args: Sequence[Expr] = ()) -> None:
        """Print values in a format of C's; the text may hold any character."""
        self._append(Printf(text, [self._lower(arg) for arg in args]))

    # ----------------------------------------------------------------------------------------------------- result

    def finish(self, name: str, params: Sequence[Var], *, read_only: Sequence[Var] = ()) -> IRModule:
        """The module of the kernel `name(params)`; through pointers in `read_only` nothing is written."""
        assert len(self._scopes) == 1, "a loop or a branch is still open"
        attrs = {NUM_THREADS: self.num_threads, READ_ONLY: tuple(read_only)}
        body = SeqStmt(self._scopes[0])
        return IRModule({name: Function(name, list(params), body, HVoidType(), "cuda_kernel", attrs)})

    # --------------------------------------------------------------------------------------------------- internals

    @contextmanager
    def _scope(self) -> Generator[list[Stmt]]:
        """Statements that are written meanwhile go into a list of their own."""
        self._scopes.append([])
        self._marked.append(self._origin)
        try:
            yield self._scopes[-1]
        finally:
            self._scopes.pop()
            self._marked.pop()

    def _append(self, stmt: Stmt) -> None:
        if self._marked[-1] != self._origin and not isinstance(stmt, Mark):
            self._scopes[-1].append(Mark(self._origin, ""))
            self._marked[-1] = self._origin
        self._scopes[-1].append(stmt)

    def _lower(self, e: Expr) -> Expr:
        return scalar_lower.lower(e, self._knowledge.is_at_least)

    def _learn_loop(self, v: Var, end: Expr) -> None:
        dtype = scalar.dtype_of(end)
        assert scalar.is_integer(dtype), f"a loop counts integers, not {dtype}"
        last = scalar.constant_value(end) if scalar.is_constant(end) else int(dtype.max_value)
        self._knowledge.learn(v, 0, max(last - 1, 0))

    def _check(self, wanted: object, value: Expr) -> None:
        given: Type = scalar.dtype_of(value)
        assert given == wanted, f"a value of type {given} is stored where {wanted} is wanted"


def _int(value: Int) -> Expr:
    return scalar.as_expr(value, dtypes.int32)
