# SPDX-License-Identifier: Apache-2.0
"""What a kernel assumes in every run of it, and whether it holds for the arguments of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tilekit.diag.errors import TilekitError
from tilekit.diag.span import Span
from tilekit.dtypes import DataType
from tilekit.ir import stmt as stmts
from tilekit.ir.func import Function
from tilekit.ir.instructions.assume import AssumeInst
from tilekit.ir.stmt import Stmt
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar, scalar_eval
from tilekit.lowir.scalar import Expr, Var


def certain(body: Stmt) -> Iterator[Stmt]:
    """The statements that every run comes to, in their order, up to a branch or loop that may end the kernel."""
    waiting = [body]
    while waiting:
        match waiting.pop():
            case stmts.SeqStmt(seq=seq):
                waiting.extend(reversed(seq))
            case stmts.LetStmt(body=inner) as let:
                yield let
                waiting.append(inner)
            case stmt if collect(stmt, (stmts.ReturnStmt, stmts.WhileStmt)):
                return
            case stmt:
                yield stmt


def _in_parameters(func: Function) -> Iterator[tuple[AssumeInst, Expr]]:
    """The assumptions that every run comes to, each with its condition in terms of parameters, if it has one."""
    assigned = {stmt.var for stmt in collect(func, stmts.AssignStmt)}
    # what variables stand for that have one value
    values: dict[Var, Expr] = {}
    for stmt in certain(func.body):
        match stmt:
            case stmts.LetStmt():
                values.update(zip(stmt.bind_vars, stmt.bind_values, strict=True))
            case stmts.DeclareStmt(var=var, init=init) if init is not None and var not in assigned:
                values[var] = init
            case stmts.InstStmt(inst=AssumeInst() as assumption):
                whole = assumption.cond
                while known := {var: values[var] for var in scalar.free_vars(whole) if var in values}:
                    whole = scalar.rewrite(whole, known)
                if set(scalar.free_vars(whole)) <= set(func.params) - assigned:
                    yield assumption, whole
            case _:
                pass


def conditions(func: Function) -> list[tuple[str, Span | None]] | None:
    """The assumptions about integer parameters, of those that every run comes to, as integer Python over their names.

    None if one of them cannot be said so.
    """
    try:
        return [(scalar_eval.to_host(whole, scalar.name_hint), inst.span) for inst, whole in _in_parameters(func)]
    except TilekitError:
        return None


def first_false(func: Function, arguments: Sequence[Any]) -> AssumeInst | None:
    """The first assumption about parameters, of those that every run comes to, that these arguments break."""
    known: dict[Var, Any] = {}
    for param, argument in zip(func.params, arguments, strict=True):
        if isinstance(dtype := scalar.dtype_of(param), DataType):
            known[param] = scalar_eval.number(argument, dtype)
    if any(scalar_eval.evaluate(extent, known) <= 0 for extent in func.metadata.grid_blocks):
        return None  # no block comes to anything
    for inst, whole in _in_parameters(func):
        if known.keys() >= set(scalar.free_vars(whole)) and not scalar_eval.evaluate(whole, known):
            return inst
    return None
