# SPDX-License-Identifier: Apache-2.0
"""Rules that Hidet IR must keep before it is printed.

No register array is indexed by anything that depends on the thread: such an array would live in memory, and the kernel
would be correct and slow. No operand that C may leave out (`||`, `&&`, `?:`) exchanges anything with other threads:
they would wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilekit.diag.errors import CodegenError
from tilekit.lowir import prims, scalar, scalar_text, statements
from tilekit.lowir.build import Mark
from tilekit.lowir.nodes import (
    BufferStoreStmt,
    Expr,
    ForStmt,
    Function,
    HTensorType,
    IfThenElse,
    IRModule,
    LogicalAnd,
    LogicalOr,
    Stmt,
    TensorElement,
    Var,
)


def verify(module: IRModule) -> None:
    """Raise `CodegenError` for the first rule that a function breaks."""
    for function in module.functions.values():
        _check_registers(function)
        _check_exchanges(function)


def _check_registers(function: Function) -> None:
    threads = _depend_on_thread(function.body)
    origin: int | None = None
    for stmt in statements.walk(function.body):
        if isinstance(stmt, Mark):
            origin = stmt.origin
        for array, index in _register_accesses(stmt):
            guilty = [v for v in scalar.free_vars(index) if v in threads]
            if guilty:
                raise CodegenError(
                    "TK405",
                    f"the register array {scalar.name_hint(array)} is indexed by {scalar_text.to_text(index)}, "
                    f"and {scalar.name_hint(guilty[0])} depends on the thread",
                    help="compute register indices from the layout, not from thread_idx",
                    data={"origin": origin},
                )


def _check_exchanges(function: Function) -> None:
    origin: int | None = None
    for stmt in statements.walk(function.body):
        if isinstance(stmt, Mark):
            origin = stmt.origin
        for e in statements.expressions(stmt):
            for operand in _left_out(e):
                if not prims.is_pure(operand):
                    raise CodegenError(
                        "TK407",
                        f"{scalar_text.to_text(operand)} is not evaluated by every thread, and others wait for it",
                        help="give its value to a variable before",
                        data={"origin": origin},
                    )


def _left_out(e: Expr) -> Iterator[Expr]:
    """The operands in an expression that C evaluates in some threads and not in others."""
    for part in scalar.walk(e):
        match part:
            case LogicalAnd() | LogicalOr():
                yield part.b
            case IfThenElse():
                yield from (part.then_expr, part.else_expr)
            case _:
                pass


def _depend_on_thread(body: Stmt) -> set[Var]:
    """The thread's number and every variable that is computed from it."""
    found = {scalar.thread_idx()}
    given = [(v, scalar.free_vars(value)) for v, value in statements.definitions(body)]
    loops = [loop for loop in statements.walk(body) if isinstance(loop, ForStmt)]
    given += [(loop.loop_var, scalar.free_vars(loop.extent)) for loop in loops]
    size = 0
    while size != len(found):
        size = len(found)
        found.update(v for v, read in given if not found.isdisjoint(read))
    return found


def _register_accesses(stmt: Stmt) -> Iterator[tuple[Var, Expr]]:
    """Every register array that a statement itself reads, writes or takes the address of, with the index."""
    if isinstance(stmt, BufferStoreStmt) and _is_array(stmt.buf):
        yield stmt.buf, stmt.indices[0]  # type: ignore[misc]  # a variable: checked above
    for e in statements.expressions(stmt):
        for part in scalar.walk(e):
            if isinstance(part, TensorElement) and _is_array(part.base):
                yield part.base, part.indices[0]  # type: ignore[misc]


def _is_array(e: Expr) -> bool:
    return isinstance(e, Var) and isinstance(e.type, HTensorType)
