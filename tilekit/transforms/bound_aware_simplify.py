# SPDX-License-Identifier: Apache-2.0
"""What the bounds of its variables decide about an expression is decided now: masks above all.

A mask is asked at every position of its tile, so each part of it that holds everywhere goes away. Besides bounds in
numbers two are known in symbols: a block index is below the extent of the grid, a loop variable below that of the loop.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

from tilekit import dtypes
from tilekit.dtypes import DataType
from tilekit.ir.analysis.scalar_analysis import Facts, analyze, box_of
from tilekit.ir.func import Function
from tilekit.ir.functors import IRRewriter
from tilekit.ir.inst import Instruction, Role
from tilekit.ir.instructions.copy_async import CopyAsyncGenericInst
from tilekit.ir.instructions.memory import LoadGlobalGenericInst, StoreGlobalGenericInst
from tilekit.ir.stmt import DeclareStmt, ForStmt, IfStmt, LetStmt, SeqStmt, Stmt, WhileStmt
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.nodes import Add, Call, LessThan, Mod
from tilekit.lowir.scalar import Expr, Var
from tilekit.transforms.base import Pass
from tilekit.transforms.sequences import needs_a_block, redeclared


class BoundAwareSimplifyPass(Pass):
    """Drops what bounds prove: parts of masks, comparisons, remainders, minima, branches never taken."""

    def process_function(self, func: Function) -> Function:
        while True:
            facts = Facts.from_analysis(func.metadata.analysis or analyze(func))
            simplified = _Rewriter(func, facts).visit(func)
            # without an analysis of its own the function is analyzed here, and may be again now that it says less
            if simplified is func or func.metadata.analysis is not None:
                return simplified
            func = simplified


def bound_aware_simplify_pass() -> Pass:
    return BoundAwareSimplifyPass()


def _extents(func: Function) -> Mapping[Var, Expr]:
    """For block indices, loop variables and other names of theirs: the expression that they stay below."""
    mutable = {stmt.var for stmt in collect(func, DeclareStmt)}
    # a launch computes the grid in integers that do not wrap, so only a bare parameter is the same number here
    grid = zip(func.metadata.block_indices, func.metadata.grid_blocks, strict=True)
    extents: dict[Var, Expr] = {index: extent for index, extent in grid if isinstance(extent, Var)}
    loops = collect(func, ForStmt)
    bound = Counter(loop.iter_var for loop in loops)
    for loop in loops:
        if bound[loop.iter_var] == 1 and not any(var in mutable for var in scalar.free_vars(loop.extent)):
            extents[loop.iter_var] = loop.extent
    lets = [pair for let in collect(func, LetStmt) for pair in zip(let.bind_vars, let.bind_values, strict=True)]
    names = Counter(var for var, _ in lets)
    for var, value in lets:
        if names[var] == 1 and isinstance(value, Var) and value in extents:
            extents[var] = extents[value]
    return extents


class _Rewriter(IRRewriter):
    def __init__(self, func: Function, facts: Facts) -> None:
        super().__init__()
        self.facts = facts
        self.extents = _extents(func)
        self.redeclared = redeclared(func)

    def visit_Expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Var):  # it may stand where it is declared
            return expr
        return _Simplifier(self.facts, self.extents, ()).simplify(expr)

    def visit_Instruction(self, inst: Instruction) -> Instruction:
        box = box_of(inst)
        simplifier = _Simplifier(self.facts.over(tuple(box), tuple(box.values())), self.extents, tuple(box))
        changes: dict[str, Any] = {}
        for name, value in inst.fields_of(Role.SCALAR).items():
            if isinstance(value, tuple):
                exprs = cast("tuple[Expr, ...]", value)
                simpler = tuple(map(simplifier.simplify, exprs))
                changes[name] = exprs if all(a is b for a, b in zip(exprs, simpler, strict=True)) else simpler
            elif value is not None:
                changes[name] = simplifier.simplify(value)
        masked = isinstance(inst, (LoadGlobalGenericInst, StoreGlobalGenericInst, CopyAsyncGenericInst))
        if masked and _is(changes.get("mask"), True):
            changes["mask"] = None
        rewritten = super().visit_Instruction(inst.replace(**changes))
        assert isinstance(rewritten, Instruction)
        return rewritten

    def visit_IfStmt(self, stmt: IfStmt) -> Stmt:
        cond = scalar.constant_value(self.visit(stmt.cond))
        taken = None if cond is None else stmt.then_body if cond else stmt.else_body or SeqStmt(())
        if taken is None or needs_a_block(taken, self.redeclared):
            return super().visit_IfStmt(stmt)
        return self.visit(taken)

    def visit_WhileStmt(self, stmt: WhileStmt) -> Stmt:
        return SeqStmt(()) if _is(self.visit(stmt.cond), False) else super().visit_WhileStmt(stmt)

    def visit_ForStmt(self, stmt: ForStmt) -> Stmt:
        return SeqStmt(()) if self.facts.of(stmt.extent).high <= 0 else super().visit_ForStmt(stmt)


class _Simplifier:
    """Simplifies expressions under what is known of their variables."""

    def __init__(self, facts: Facts, extents: Mapping[Var, Expr], axes: Sequence[Var]) -> None:
        self.facts = facts
        self.extents = extents
        # what counts the positions of a tile
        self.axes = frozenset(axes)

    def simplify(self, expr: Expr) -> Expr:
        if scalar.is_constant(expr):
            return expr
        # from the leaves up, so that what a rule returns is simple already
        rebuilt = scalar.rebuild(expr, [self.simplify(part) for part in scalar.children(expr)])
        value = self._by_value(rebuilt)
        return self._by_rule(rebuilt) if value is None else value

    def _by_value(self, expr: Expr) -> Expr | None:
        fact = self.facts.maybe(expr)
        if fact is None or fact.value is None or scalar.is_constant(expr):
            return None
        dtype = scalar.dtype_of(expr)
        assert isinstance(dtype, DataType)
        return scalar.constant(dtype, bool(fact.value) if dtype.is_boolean() else fact.value)

    def _by_rule(self, expr: Expr) -> Expr:
        match expr:
            case LessThan() if isinstance(expr.a, Var) and self._is_below(expr.a, expr.b):
                return scalar.constant(dtypes.boolean, True)
            case LessThan() if (begin := self._begin_of_whole_part(expr)) is not None:
                return scalar.lt(begin, expr.b)
            case Mod() if self._is_remainder(expr.a, expr.b):
                return expr.a
            case Call() if scalar.function_name(expr) == "c_mod" and self._is_remainder(*expr.args):
                return expr.args[0]
            case Call() if scalar.function_name(expr) in ("minimum", "maximum"):
                return self._chosen(expr)
            case _:
                return expr

    def _is_below(self, var: Var, limit: Expr) -> bool:
        extent = self.extents.get(var)
        return extent is not None and scalar.structurally_equal(extent, limit)

    def _begin_of_whole_part(self, expr: LessThan) -> Expr | None:
        """Where the part of a tile begins that `expr` asks of, if it lies on one side of the limit, all of it.

        That is so where the begin and the limit are multiples of a power of two that the part has no more positions
        than. Then no position wraps either.
        """
        parts = _summands(expr.a)
        positions = [part for part in parts if part in self.axes]
        begins = [part for part in parts if part not in self.axes]
        if not positions or not begins:
            return None
        common = math.gcd(self.facts.of(expr.b).divisor, *(self.facts.of(part).divisor for part in begins))
        if sum(self.facts.of(part).high for part in positions) >= (common & -common):
            return None
        return functools.reduce(scalar.add, begins)

    def _is_remainder(self, a: Expr, b: Expr) -> bool:
        dividend, divisor = self.facts.of(a), self.facts.of(b)
        return dividend.low >= 0 and dividend.high < divisor.low

    def _chosen(self, expr: Call) -> Expr:
        """The operand of a minimum or maximum that bounds have decided for, or all of it."""
        a, b = expr.args
        first, second = self.facts.maybe(a), self.facts.maybe(b)
        if first is None or second is None:
            return expr
        smaller, larger = (a, b) if first.high <= second.low else (b, a)
        if first.high > second.low and second.high > first.low:
            return expr
        return smaller if scalar.function_name(expr) == "minimum" else larger


def _summands(expr: Expr) -> list[Expr]:
    """What a sum adds up, left to right."""
    return [*_summands(expr.a), *_summands(expr.b)] if isinstance(expr, Add) else [expr]


def _is(expr: Any, truth: bool) -> bool:
    return isinstance(expr, Expr) and scalar.constant_value(expr) is truth
