# SPDX-License-Identifier: Apache-2.0
"""Walking and rewriting statements of Hidet IR; what does not change stays the same object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tilekit.diag.errors import CodegenError
from tilekit.lowir import scalar
from tilekit.lowir.nodes import (
    AssignStmt,
    BlackBoxStmt,
    BreakStmt,
    BufferStoreStmt,
    ContinueStmt,
    DeclareStmt,
    EvaluateStmt,
    Expr,
    ForStmt,
    Function,
    IfStmt,
    LetStmt,
    ReturnStmt,
    SeqStmt,
    Stmt,
    Var,
    WhileStmt,
)

NOTHING = SeqStmt([])


class Printf(BlackBoxStmt):
    """Print values in a format of C's."""

    def __init__(self, text: str, args: Sequence[Expr]) -> None:
        super().__init__(f"printf(...{', {}' * len(args)});", *args)
        self.text = text
        self.args = tuple(args)


def parts(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside a statement, in order."""
    match stmt:
        case SeqStmt():
            return stmt.seq
        case LetStmt() | ForStmt() | WhileStmt():
            return (stmt.body,)
        case IfStmt():
            return (stmt.then_body,) if stmt.else_body is None else (stmt.then_body, stmt.else_body)
        case _:
            return ()


def walk(stmt: Stmt) -> Iterator[Stmt]:
    """The statement and all statements in it, each before what it contains."""
    yield stmt
    for part in parts(stmt):
        yield from walk(part)


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement itself evaluates; what it stores to is one of them only if it is an address."""
    match stmt:
        case DeclareStmt():
            return () if stmt.init is None else (stmt.init,)
        case AssignStmt():
            return (stmt.value,)
        case BufferStoreStmt():
            return (stmt.buf, *stmt.indices, stmt.value)
        case LetStmt():
            return tuple(stmt.bind_values)
        case ForStmt():
            return (stmt.extent,)
        case IfStmt() | WhileStmt():
            return (stmt.cond,)
        case EvaluateStmt():
            return (stmt.expr,)
        case Printf():
            return stmt.args
        case SeqStmt() | BlackBoxStmt() | BreakStmt() | ContinueStmt() | ReturnStmt():
            return ()
        case _:
            raise CodegenError("TK406", f"generated code has no statement {type(stmt).__name__}")


def definitions(stmt: Stmt) -> Iterator[tuple[Var, Expr]]:
    """Every value that a scalar or pointer variable is given in a statement; loop variables have none."""
    for inner in walk(stmt):
        match inner:
            case DeclareStmt() if inner.init is not None:
                yield inner.var, inner.init
            case AssignStmt():
                yield inner.var, inner.value
            case LetStmt():
                yield from zip(inner.bind_vars, inner.bind_values, strict=True)
            case _:
                pass


def rebuild(stmt: Stmt, on_stmt: Callable[[Stmt], Stmt], on_expr: Callable[[Expr], Expr]) -> Stmt:
    """`stmt` with its parts and expressions replaced; `stmt` itself where none of them changes."""
    inner = [on_stmt(part) for part in parts(stmt)]
    values = [on_expr(e) for e in expressions(stmt)]
    old = (*parts(stmt), *expressions(stmt))
    if all(new is before for new, before in zip((*inner, *values), old, strict=True)):
        return stmt
    match stmt:
        case SeqStmt():
            return SeqStmt(inner)
        case DeclareStmt():
            return DeclareStmt(stmt.var, *values)
        case AssignStmt():
            return AssignStmt(stmt.var, *values)
        case BufferStoreStmt():
            return BufferStoreStmt(values[0], values[1:-1], values[-1])
        case LetStmt():
            return LetStmt(stmt.bind_vars, values, *inner)
        case ForStmt():
            return ForStmt(stmt.loop_var, values[0], inner[0], attr=stmt.attr)
        case IfStmt():
            return IfStmt(values[0], *inner)
        case WhileStmt():
            return WhileStmt(values[0], inner[0])
        case EvaluateStmt():
            return EvaluateStmt(values[0])
        case Printf():
            return Printf(stmt.text, values)
        case _:
            raise AssertionError(f"{type(stmt).__name__} has no parts")


def with_body(function: Function, body: Stmt) -> Function:
    """The function with another body; the function itself if it is the body that it has."""
    if body is function.body:
        return function
    return Function(function.name, function.params, body, function.ret_type, function.kind, function.attrs)


def reads(stmt: Stmt) -> Iterator[Var]:
    """Every variable that an expression of a statement mentions, as often as it does."""
    for inner in walk(stmt):
        for e in expressions(inner):
            yield from (part for part in scalar.walk(e) if isinstance(part, Var))
