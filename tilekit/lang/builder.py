# SPDX-License-Identifier: Apache-2.0
"""Collects the statements of a kernel while it is transpiled, each with the span it came from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilekit.diag.span import Span
from tilekit.ir.inst import Instruction
from tilekit.ir.stmt import AssignStmt, DeclareStmt, InstStmt, SeqStmt, Stmt
from tilekit.ir.tensor import Tensor
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var


class Builder:
    """A stack of statement lists; the innermost one grows."""

    def __init__(self) -> None:
        self._blocks: list[list[Stmt]] = [[]]
        self.span: Span | None = None
        self.names: dict[Tensor, str] = {}
        # the expression that a never reassigned variable stands for: launch attributes look through it
        self.values: dict[Var, Expr] = {}

    @property
    def depth(self) -> int:
        """How many blocks of run-time control flow are open."""
        return len(self._blocks) - 1

    @contextmanager
    def block(self) -> Iterator[list[Stmt]]:
        statements: list[Stmt] = []
        self._blocks.append(statements)
        try:
            yield statements
        finally:
            self._blocks.pop()

    def append(self, stmt: Stmt) -> None:
        self._blocks[-1].append(stmt)

    def extend(self, stmts: list[Stmt]) -> None:
        self._blocks[-1].extend(stmts)

    def emit(self, inst: Instruction) -> Any:
        placed = inst.replace(span=self.span)
        self.append(InstStmt(placed, span=self.span))
        return placed.output

    def declare(self, name: str, value: Expr) -> Var:
        variable = scalar.var(name, scalar.dtype_of(value))
        self.values[variable] = value
        self.append(DeclareStmt(variable, value, span=self.span))
        return variable

    def assign(self, variable: Var, value: Expr) -> None:
        self.values.pop(variable, None)
        self.append(AssignStmt(variable, value, span=self.span))

    def redirect(self, tensor: Tensor, storage: Tensor) -> bool:
        """Let the instruction that was emitted last write `storage` instead of its own result `tensor`, if it made it."""
        last = self._blocks[-1][-1] if self._blocks[-1] else None
        if not isinstance(last, InstStmt) or last.inst.output is not tensor:
            return False
        self._blocks[-1][-1] = last.replace(inst=last.inst.replace(output=storage))
        return True

    def expand(self, expr: Expr) -> Expr:
        """`expr` with every variable that has one value replaced by it."""
        known = {v: self.values[v] for v in scalar.free_vars(expr) if v in self.values}
        return self.expand(scalar.rewrite(expr, known)) if known else expr

    def finish(self) -> SeqStmt:
        (statements,) = self._blocks
        return SeqStmt.create(statements)
