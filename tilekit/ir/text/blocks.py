# SPDX-License-Identifier: Apache-2.0
"""The body of a function as text shows it: blocks of statements, with nothing in them that makes no difference.

Sequences inside sequences are one block, and a `let` at the end of a block goes on in the same block. Printing and
comparing both walk these blocks, so that two bodies are equal exactly where their texts are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tilekit.diag.span import Span
from tilekit.ir import stmt as stmts
from tilekit.ir.stmt import Stmt
from tilekit.lowir.scalar import Expr, Var


@dataclass(frozen=True, eq=False)
class Let:
    """One name for a value, until the end of the block."""

    var: Var
    value: Expr
    span: Span | None


@dataclass(frozen=True, eq=False)
class Scope:
    """A block inside a block: what a `let` is good for ends before the block does."""

    body: Block
    span: Span | None


Line: TypeAlias = "Stmt | Let | Scope"
Block: TypeAlias = "tuple[Line, ...]"


def block_of(body: Stmt | None) -> Block:
    """The lines of a body; none for None."""
    if body is None:
        return ()
    flat = _flattened(body)
    lines: list[Line] = []
    for number, line in enumerate(flat, start=1):
        if not isinstance(line, stmts.LetStmt):
            lines.append(line)
        elif number == len(flat):
            lines.extend(_let_lines(line))
        else:
            lines.append(Scope(_let_lines(line), line.span))
    return tuple(lines)


def _flattened(body: Stmt) -> list[Stmt]:
    if isinstance(body, stmts.SeqStmt):
        return [line for child in body.seq for line in _flattened(child)]
    return [body]


def _let_lines(let: stmts.LetStmt) -> Block:
    bound = zip(let.bind_vars, let.bind_values, strict=True)
    return (*(Let(var, value, let.span) for var, value in bound), *block_of(let.body))
