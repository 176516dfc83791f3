# SPDX-License-Identifier: Apache-2.0
"""Sequences of statements, taken apart and put together again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

from tilekit.ir.func import Function
from tilekit.ir.stmt import DeclareStmt, SeqStmt, Stmt
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
    return {var for var, count in Counter(stmt.var for stmt in collect(func, DeclareStmt)).items() if count > 1}


def needs_a_block(body: Stmt, redeclared: Set[Var]) -> bool:
    """Whether the statements of `body` must stay a block of their own, for the sake of what they declare."""
    return any(isinstance(child, DeclareStmt) and child.var in redeclared for child in flattened(body))
