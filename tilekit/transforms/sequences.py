# SPDX-License-Identifier: Apache-2.0
"""Sequences of statements, taken apart and put together again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

from tilekit.ir.func import Function
from tilekit.ir.stmt import DeclareStmt, SeqStmt, Stmt, TensorItemPtrStmt, TensorItemValueStmt
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir.scalar import Var


def flattened(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence, with those of sequences inside it in their places."""
    if isinstance(stmt, SeqStmt):
        return [inner for child in stmt.seq for inner in flattened(child)]
    return [stmt]


def sequence(stmts: Iterable[Stmt]) -> Stmt:
    """The statements one after the other; one statement alone needs no sequence."""
    seq = tuple(stmts)
    return seq[0] if len(seq) == 1 else SeqStmt(seq)


def is_empty(stmt: Stmt | None) -> bool:
    """Whether a body says nothing."""
    return stmt is None or (isinstance(stmt, SeqStmt) and all(map(is_empty, stmt.seq)))


def redeclared(func: Function) -> Set[Var]:
    """Variables that are declared more than once, each time in a block of its own."""
    declared = [*map(_declared, collect(func, (DeclareStmt, TensorItemValueStmt, TensorItemPtrStmt)))]
    return {var for var, count in Counter(declared).items() if var is not None and count > 1}


def _declared(stmt: Stmt) -> Var | None:
    """The variable that a statement makes for the rest of its block."""
    match stmt:
        case DeclareStmt(var=var) | TensorItemValueStmt(var=var) | TensorItemPtrStmt(ptr_var=var):
            return var
        case _:
            return None


def needs_a_block(body: Stmt, redeclared: Set[Var]) -> bool:
    """Whether the statements of `body` must stay a block of their own, for the sake of what they declare."""
    return any(_declared(child) in redeclared for child in flattened(body))
