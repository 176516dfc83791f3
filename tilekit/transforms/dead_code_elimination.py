# SPDX-License-Identifier: Apache-2.0
"""What nobody asks for is removed: instructions whose results are never used, scalars never read, empty control flow.

An instruction with side effects is alive, and so is a loop that may never end. From there life spreads backwards: to
whatever writes a tile that something alive reads, to the conditions and extents around it, and to the scalars that
these are computed from. Whether an instruction has side effects is said by its class (`effects`), never guessed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeAlias

from tilekit.ir import stmt as stmts
from tilekit.ir.func import Function
from tilekit.ir.functors import IRRewriter
from tilekit.ir.inst import SIDE
from tilekit.ir.stmt import Stmt
from tilekit.ir.tensor import GlobalTensor, Tensor
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var
from tilekit.transforms.base import Pass
from tilekit.transforms.sequences import is_empty, needs_a_block, redeclared

# what a statement makes, and another one needs
Thing: TypeAlias = "Tensor | Var"


class DeadCodeEliminationPass(Pass):
    """Removes what has no effect and whose result nobody uses."""

    def process_function(self, func: Function) -> Function:
        return _Removal(_Liveness(func)).visit(func)


def dead_code_elimination_pass() -> Pass:
    return DeadCodeEliminationPass()


class _Liveness:
    """Which statements, tensors and variables are alive."""

    def __init__(self, func: Function) -> None:
        self.redeclared = redeclared(func)
        self.live: set[Stmt] = set()
        self.needed: set[Thing] = set()
        self._parent: dict[Stmt, Stmt] = {}
        self._makers: defaultdict[Thing, list[Stmt]] = defaultdict(list)
        self._waiting: list[Stmt] = []
        self._index(func.body, None)
        while self._waiting:
            self._spread(self._waiting.pop())

    def _index(self, stmt: Stmt, parent: Stmt | None) -> None:
        if parent is not None:
            self._parent[stmt] = parent
        for thing in _makes(stmt):
            self._makers[thing].append(stmt)
        if _has_effects(stmt):
            self._revive(stmt)
        for child in _children(stmt):
            self._index(child, stmt)

    def _revive(self, stmt: Stmt) -> None:
        if stmt not in self.live:
            self.live.add(stmt)
            self._waiting.append(stmt)

    def _spread(self, stmt: Stmt) -> None:
        if stmt in self._parent:
            self._revive(self._parent[stmt])
        self._need_all(_needs(stmt))
        if isinstance(stmt, stmts.LetStmt) and needs_a_block(stmt.body, self.redeclared):
            self._need_all(stmt.bind_vars)

    def _need(self, thing: Thing) -> None:
        if thing in self.needed:
            return
        self.needed.add(thing)
        for maker in self._makers[thing]:
            if not isinstance(maker, (stmts.LetStmt, stmts.ForStmt)):  # these are around whatever is alive in them
                self._revive(maker)
            elif isinstance(maker, stmts.LetStmt):
                for var, value in zip(maker.bind_vars, maker.bind_values, strict=True):
                    if var is thing:
                        self._need_all(scalar.free_vars(value))

    def _need_all(self, things: Iterable[Thing]) -> None:
        for thing in things:
            self._need(thing)


def _children(stmt: Stmt) -> Iterable[Stmt]:
    match stmt:
        case stmts.SeqStmt(seq=seq):
            return seq
        case stmts.ForStmt(body=body) | stmts.WhileStmt(body=body) | stmts.LetStmt(body=body):
            return (body,)
        case stmts.IfStmt(then_body=then_body, else_body=else_body):
            return (then_body,) if else_body is None else (then_body, else_body)
        case _:
            return ()


def _has_effects(stmt: Stmt) -> bool:
    """Whether a statement does something even if no result of it is used."""
    match stmt:
        case stmts.InstStmt(inst=inst):
            return inst.effects is SIDE
        case stmts.WhileStmt() | stmts.BreakStmt() | stmts.ReturnStmt():  # they decide whether the rest is reached
            return True
        case _:
            return False


def _makes(stmt: Stmt) -> Iterable[Thing]:
    match stmt:
        case stmts.InstStmt(inst=inst):
            return inst.writes
        case stmts.DeclareStmt(var=var) | stmts.AssignStmt(var=var) | stmts.ForStmt(iter_var=var):
            return (var,)
        case stmts.TensorItemValueStmt(var=var) | stmts.TensorItemPtrStmt(ptr_var=var):
            return (var,)
        case stmts.LetStmt(bind_vars=bind_vars):
            return bind_vars
        case _:
            return ()


def _needs(stmt: Stmt) -> Iterable[Thing]:
    """What a statement that is alive asks for by itself, without the statements in it."""
    match stmt:
        case stmts.InstStmt(inst=inst):
            return (*inst.inputs, *_variables(*inst.exprs, *_layout_exprs(*inst.inputs, inst.output)))
        case stmts.ForStmt(extent=expr) | stmts.WhileStmt(cond=expr) | stmts.IfStmt(cond=expr):
            return _variables(expr)
        case stmts.DeclareStmt(init=expr) | stmts.AssignStmt(value=expr):
            return () if expr is None else _variables(expr)
        case stmts.TensorItemValueStmt(tensor=tensor, offsets=offsets):
            return (tensor, *_variables(*offsets, *_layout_exprs(tensor)))
        case stmts.TensorItemPtrStmt(tensor=tensor, offsets=offsets):
            return (tensor, *_variables(*offsets, *_layout_exprs(tensor)))
        case _:
            return ()


def _layout_exprs(*tensors: Tensor | None) -> Iterable[Expr]:
    views = [tensor for tensor in tensors if isinstance(tensor, GlobalTensor)]
    return [expr for view in views for expr in (*view.layout.shape, *view.layout.strides)]


def _variables(*exprs: Expr) -> tuple[Var, ...]:
    return tuple(var for expr in exprs for var in scalar.free_vars(expr))


class _Removal(IRRewriter):
    """Removes every statement that is not alive, and what is empty without it."""

    def __init__(self, liveness: _Liveness) -> None:
        super().__init__()
        self.liveness = liveness

    def visit(self, node: Any) -> Any:
        if isinstance(node, Stmt) and not isinstance(node, stmts.SeqStmt) and node not in self.liveness.live:
            return stmts.SeqStmt(())
        return super().visit(node)

    def visit_SeqStmt(self, stmt: stmts.SeqStmt) -> Stmt:
        children = [self.visit(child) for child in stmt.seq]
        kept = tuple(child for child in children if not is_empty(child))
        return stmt.replace(seq=kept) if kept != stmt.seq else stmt

    def visit_IfStmt(self, stmt: stmts.IfStmt) -> Stmt:
        then_body = self.visit(stmt.then_body)
        else_body = None if stmt.else_body is None else self.visit(stmt.else_body)
        return stmt.replace(then_body=then_body, else_body=None if is_empty(else_body) else else_body)

    def visit_LetStmt(self, stmt: stmts.LetStmt) -> Stmt:
        body = self.visit(stmt.body)
        pairs = zip(stmt.bind_vars, stmt.bind_values, strict=True)
        used = [(var, value) for var, value in pairs if var in self.liveness.needed]
        if not used:
            return body
        if len(used) == len(stmt.bind_vars):
            return stmt.replace(body=body)
        return stmts.LetStmt(tuple(var for var, _ in used), tuple(value for _, value in used), body, span=stmt.span)
