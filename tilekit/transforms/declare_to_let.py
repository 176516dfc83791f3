# SPDX-License-Identifier: Apache-2.0
"""A variable that is never assigned after its declaration is a name for one value: `declare` becomes `let`."""

from __future__ import annotations

from tilekit.ir.func import Function
from tilekit.ir.functors import IRRewriter
from tilekit.ir.stmt import AssignStmt, DeclareStmt, LetStmt, SeqStmt, Stmt
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir.scalar import Var
from tilekit.transforms.base import Pass
from tilekit.transforms.sequences import flattened, sequence

# a let holds the rest of its block, so that lets nest, and whoever walks the IR recurses
MAX_NESTING = 32


class DeclareToLetPass(Pass):
    """Turns declarations of variables that keep their first value into lets over the rest of their block."""

    def process_function(self, func: Function) -> Function:
        assigned = {stmt.var for stmt in collect(func, AssignStmt)}
        unset = {stmt.var for stmt in collect(func, DeclareStmt) if stmt.init is None}
        return _Rewriter(assigned | unset).visit(func)


def declare_to_let_pass() -> Pass:
    return DeclareToLetPass()


class _Rewriter(IRRewriter):
    def __init__(self, mutable: set[Var]) -> None:
        super().__init__()
        self.mutable = mutable
        self.depth = 0

    def visit_LetStmt(self, stmt: LetStmt) -> Stmt:
        self.depth += 1
        visited = super().visit_LetStmt(stmt)
        self.depth -= 1
        return visited

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        children = flattened(stmt)
        for position, child in enumerate(children):
            if not isinstance(child, DeclareStmt) or child.var in self.mutable or self.depth >= MAX_NESTING:
                continue
            assert child.init is not None, "a variable without a first value is mutable"
            self.depth += 1
            before = [self.visit(earlier) for earlier in children[:position]]
            body = self.visit(SeqStmt(tuple(children[position + 1 :])))
            self.depth -= 1
            return sequence([*before, LetStmt((child.var,), (child.init,), body, span=child.span)])
        return super().visit_SeqStmt(stmt)
