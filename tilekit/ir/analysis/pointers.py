# SPDX-License-Identifier: Apache-2.0
"""Where pointers come from: the parameters whose memory a pointer variable may point into."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tilekit.dtypes import PointerType
from tilekit.ir import stmt as stmts
from tilekit.ir.func import Function
from tilekit.ir.instructions.memory import GlobalViewInst
from tilekit.ir.tensor import Tensor
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var


def origins(func: Function) -> Mapping[Var, frozenset[Var]]:
    """For each pointer variable of a function, the pointer parameters whose memory its values may point into."""
    values: defaultdict[Var, list[Expr]] = defaultdict(list)
    for stmt in collect(func, (stmts.LetStmt, stmts.DeclareStmt, stmts.AssignStmt)):
        for var, value in _bindings(stmt):
            if _is_pointer(var):
                values[var].append(value)
    params = {param: frozenset({param}) for param in func.params if _is_pointer(param)}
    made_at = views(func)
    for stmt in collect(func, stmts.TensorItemPtrStmt):
        # a workspace and shared memory are nobody's argument
        values[stmt.ptr_var] += made_at.get(stmt.tensor, [])
    found = {**dict.fromkeys(values, frozenset[Var]()), **params}
    changed = True
    while changed:
        changed = False
        for var, sources in values.items():
            now = found[var].union(*(sources_of(value, found) for value in sources))
            changed |= now != found[var]
            found[var] = now
    return found


def views(func: Function) -> Mapping[Tensor, list[Expr]]:
    """The pointers that each view of global memory is made at."""
    found: defaultdict[Tensor, list[Expr]] = defaultdict(list)
    for inst in collect(func, GlobalViewInst):
        found[inst.view].append(inst.ptr)
    return found


def sources_of(pointer: Expr, found: Mapping[Var, frozenset[Var]]) -> frozenset[Var]:
    """The parameters whose memory an expression may point into, from what is found out about variables.

    A pointer that is made of no pointer, but of a number, may point into any of them.
    """
    parts = [found[var] for var in scalar.free_vars(pointer) if var in found]
    return frozenset[Var]().union(*(parts or found.values()))


def _bindings(stmt: stmts.Stmt) -> list[tuple[Var, Expr]]:
    match stmt:
        case stmts.LetStmt():
            return list(zip(stmt.bind_vars, stmt.bind_values, strict=True))
        case stmts.DeclareStmt(var=var, init=value) | stmts.AssignStmt(var=var, value=value) if value is not None:
            return [(var, value)]
        case _:
            return []


def _is_pointer(var: Var) -> bool:
    return isinstance(scalar.dtype_of(var), PointerType)
