# SPDX-License-Identifier: Apache-2.0
"""Collects the statements of a kernel while it is transpiled, each with the span it came from."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from tilekit.diag import errors
from tilekit.diag.span import Span
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.dot import DotInst
from tilekit.ir.instructions.elementwise import Elementwise
from tilekit.ir.instructions.memory import GlobalViewInst
from tilekit.ir.prog import Binding
from tilekit.ir.stmt import (
    AssignStmt,
    BreakStmt,
    DeclareStmt,
    IfStmt,
    InstStmt,
    ReturnStmt,
    SeqStmt,
    Stmt,
    TensorItemValueStmt,
)
from tilekit.ir.tensor import Tensor
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var


class Builder:
    """A stack of statement lists; the innermost one grows."""

    def __init__(self) -> None:
        self._blocks: list[list[Stmt]] = [[]]
        self.span: Span | None = None
        # instructions only make sense while `__call__` is executed
        self.is_open = False
        self.names: dict[Tensor, str] = {}
        # what the names in a person's functions mean, line after line
        self.bindings: list[Binding] = []
        self.made_at: dict[Tensor, Span | None] = {}
        # the expression that a never reassigned variable stands for: launch attributes look through it
        self.values: dict[Var, Expr] = {}
        # variables that are assigned after their first value
        self.mutable: set[Var] = set()
        # where a view of global memory begins, if that does not change
        self.pointers: dict[Tensor, Expr] = {}

    @property
    def depth(self) -> int:
        """How many blocks of run-time control flow are open."""
        return len(self._blocks) - 1

    @property
    def length(self) -> int:
        """How many statements the innermost block has."""
        return len(self._blocks[-1])

    @property
    def innermost(self) -> object:
        """The block that grows, as something to tell it apart by."""
        return self._blocks[-1]

    @property
    def has_ended(self) -> bool:
        """Whether control never reaches the end of the innermost block."""
        return ends(self._blocks[-1])

    @contextmanager
    def block(self, statements: list[Stmt] | None = None) -> Generator[list[Stmt]]:
        """Append to a new block, or go on with one; it is the caller who puts it into a statement."""
        opened = [] if statements is None else statements
        self._blocks.append(opened)
        try:
            yield opened
        finally:
            self._blocks.pop()

    def append(self, stmt: Stmt) -> None:
        self._blocks[-1].append(stmt)

    def emit(self, inst: Instruction) -> Any:
        if not self.is_open:
            raise errors.LanguageError(
                "TK101", f"{inst.opcode} works only in a kernel's __call__ and in methods that it calls"
            )
        placed = inst.replace(span=self.span)
        self.append(InstStmt(placed, span=self.span))
        if placed.output is not None:
            self.made_at.setdefault(placed.output, self.span)
        if isinstance(placed, GlobalViewInst) and not any(v in self.mutable for v in scalar.free_vars(placed.ptr)):
            self.pointers[placed.view] = placed.ptr
        return placed.output

    def declare(self, name: str, value: Expr, *, mutable: bool = False) -> Var:
        """A new variable with this value; a `mutable` one will be assigned."""
        variable = scalar.var(name, scalar.dtype_of(value))
        last = self._blocks[-1][-1] if self._blocks[-1] else None
        if mutable:
            self.mutable.add(variable)
        elif isinstance(last, TensorItemValueStmt) and last.var is value:
            # nobody has seen the element's own variable yet
            self._blocks[-1][-1] = last.replace(var=variable)
            return variable
        else:
            self.values[variable] = value
        self.append(DeclareStmt(variable, value, span=self.span))
        return variable

    def reserve(self, name: str, dtype: DataType | PointerType) -> Var:
        """A variable that has no value yet and will be assigned."""
        variable = scalar.var(name, dtype)
        self.mutable.add(variable)
        self.append(DeclareStmt(variable, None, span=self.span))
        return variable

    def assign(self, variable: Var, value: Expr) -> None:
        self.append(AssignStmt(variable, value, span=self.span))

    def redirect(self, tensor: Tensor, storage: Tensor, since: int) -> bool:
        """Let the last instruction, if it made `tensor`, write `storage` instead.

        Only statements of the innermost block from number `since` on are touched: nobody else can know their results.
        """
        block = self._blocks[-1]
        last = block[-1] if len(block) > since else None
        if not isinstance(last, InstStmt) or last.inst.output is not tensor or not _may_write(last.inst, storage):
            return False
        block[-1] = last.replace(inst=last.inst.replace(output=storage))
        return True

    def expand(self, expr: Expr) -> Expr:
        """`expr` with every variable that has one value replaced by it."""
        known = {v: self.values[v] for v in scalar.free_vars(expr) if v in self.values}
        return self.expand(scalar.rewrite(expr, known)) if known else expr

    def finish(self) -> SeqStmt:
        (statements,) = self._blocks
        return SeqStmt.create(statements)


def _may_write(inst: Instruction, storage: Tensor) -> bool:
    """Whether an instruction may write its result over `storage` while it reads its operands."""
    match inst:
        case Elementwise():
            return True
        case DotInst():
            return storage is not inst.a and storage is not inst.b
        case _:
            return storage not in inst.inputs


def ends(statements: Sequence[Stmt]) -> bool:
    """Whether control never reaches the end of these statements."""
    match statements[-1] if statements else None:
        case BreakStmt() | ReturnStmt():
            return True
        case IfStmt(then_body=SeqStmt(seq=then_body), else_body=SeqStmt(seq=else_body)):
            return ends(then_body) and ends(else_body)
        case _:
            return False


def only_declares(statements: Sequence[Stmt], value: Expr) -> Expr | None:
    """`value` in terms of what was known before `statements`, if they do nothing but name parts of it."""
    known: dict[Var, Expr] = {}
    for stmt in statements:
        if not isinstance(stmt, DeclareStmt) or stmt.init is None:
            return None
        known[stmt.var] = scalar.rewrite(stmt.init, known)
    return scalar.rewrite(value, known)
