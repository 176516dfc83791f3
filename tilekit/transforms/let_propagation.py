# SPDX-License-Identifier: Apache-2.0
"""Names that say no more than their value are replaced by it: constants, other names, and pointers.

A name for a block index stays, because the block index has no name that a person gave. Pointers go because whoever
asks what a kernel writes must see the parameter, and because the alignment of an address is that of its parts.
"""

from __future__ import annotations

from collections import Counter

from tilekit.dtypes import PointerType
from tilekit.ir.func import Function
from tilekit.ir.functors import IRRewriter
from tilekit.ir.stmt import DeclareStmt, ForStmt, LetStmt, Stmt
from tilekit.ir.text.names import is_special
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var
from tilekit.transforms.base import Pass
from tilekit.transforms.sequences import needs_a_block, redeclared


class LetPropagationPass(Pass):
    """Replaces names by their values where these are constants, other names or pointers."""

    def process_function(self, func: Function) -> Function:
        return _Rewriter(func).visit(func)


def let_propagation_pass() -> Pass:
    return LetPropagationPass()


class _Rewriter(IRRewriter):
    def __init__(self, func: Function) -> None:
        super().__init__()
        self.values: dict[Var, Expr] = {}
        self.mutable = {stmt.var for stmt in collect(func, DeclareStmt)}
        self.indices = set(func.metadata.block_indices)
        # a name that two scopes give to different values cannot be replaced everywhere by one of them
        self.bound = Counter(v for stmt in collect(func, LetStmt) for v in stmt.bind_vars)
        self.bound.update(stmt.iter_var for stmt in collect(func, ForStmt))
        self.redeclared = redeclared(func)

    def says_no_more(self, value: Expr) -> bool:
        if isinstance(scalar.dtype_of(value), PointerType):
            return not any(var in self.mutable for var in scalar.free_vars(value))
        if isinstance(value, Var):
            return value not in self.mutable and value not in self.indices and not is_special(value)
        return scalar.is_constant(value)

    def visit_LetStmt(self, stmt: LetStmt) -> Stmt:
        if needs_a_block(stmt.body, self.redeclared):
            return super().visit_LetStmt(stmt)
        kept: list[tuple[Var, Expr]] = []
        for var, value in zip(stmt.bind_vars, map(self.visit_Expr, stmt.bind_values), strict=True):
            if self.bound[var] == 1 and self.says_no_more(value):
                self.values[var] = value
            else:
                kept.append((var, value))
        if len(kept) == len(stmt.bind_vars):
            return super().visit_LetStmt(stmt)
        body = self.visit(stmt.body)
        if not kept:
            return body
        return LetStmt(tuple(var for var, _ in kept), tuple(value for _, value in kept), body, span=stmt.span)

    def visit_Expr(self, expr: Expr) -> Expr:
        return scalar.rewrite(expr, self.values)
