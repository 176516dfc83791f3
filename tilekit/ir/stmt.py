# SPDX-License-Identifier: Apache-2.0
"""Statements of the tile IR: the tree that orders instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilekit.ir.inst import Instruction
from tilekit.ir.node import Node
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor
from tilekit.lowir.scalar import Expr, Var


@dataclass(frozen=True, eq=False)
class Stmt(Node):
    """A statement."""


@dataclass(frozen=True, eq=False)
class SeqStmt(Stmt):
    """Statements one after the other; `SeqStmt(())` does nothing."""

    seq: tuple[Stmt, ...]

    @staticmethod
    def create(seq: Sequence[Stmt]) -> SeqStmt:
        return SeqStmt(tuple(seq))


@dataclass(frozen=True, eq=False)
class ForStmt(Stmt):
    """`for iter_var in range(extent)`; `unroll_factor` is None (no hint), -1 (all) or a factor."""

    iter_var: Var
    extent: Expr
    body: Stmt
    unroll_factor: int | None = None


@dataclass(frozen=True, eq=False)
class WhileStmt(Stmt):
    """Repeat the body while the condition holds."""

    cond: Expr
    body: Stmt


@dataclass(frozen=True, eq=False)
class IfStmt(Stmt):
    """Run one of two bodies; the condition is the same in every thread of the group."""

    cond: Expr
    then_body: Stmt
    else_body: Stmt | None = None


@dataclass(frozen=True, eq=False)
class BreakStmt(Stmt):
    """Leave the innermost loop."""


@dataclass(frozen=True, eq=False)
class ReturnStmt(Stmt):
    """End the kernel for this thread group."""


@dataclass(frozen=True, eq=False)
class DeclareStmt(Stmt):
    """A mutable scalar variable with its first value."""

    var: Var
    init: Expr | None


@dataclass(frozen=True, eq=False)
class LetStmt(Stmt):
    """Names for values that never change inside the body."""

    bind_vars: tuple[Var, ...]
    bind_values: tuple[Expr, ...]
    body: Stmt


@dataclass(frozen=True, eq=False)
class AssignStmt(Stmt):
    """Give a declared scalar variable a new value."""

    var: Var
    value: Expr


@dataclass(frozen=True, eq=False)
class InstStmt(Stmt):
    """An instruction in the statement tree."""

    inst: Instruction


@dataclass(frozen=True, eq=False)
class TensorItemValueStmt(Stmt):
    """A new scalar variable with the value of one element: of a tile of one element, or of memory at `offsets`."""

    var: Var
    tensor: RegisterTensor | SharedTensor | GlobalTensor
    offsets: tuple[Expr, ...] = ()


@dataclass(frozen=True, eq=False)
class TensorItemPtrStmt(Stmt):
    """A new pointer variable with the address of the element at `offsets`; that of shared memory is a generic one."""

    ptr_var: Var
    tensor: SharedTensor | GlobalTensor
    offsets: tuple[Expr, ...] = ()
