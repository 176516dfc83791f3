# SPDX-License-Identifier: Apache-2.0
"""Assumptions become facts about the parameters: what divides them, and between which bounds they lie.

An assumption holds whenever control comes to it. One that every run comes to says something of all of them; one inside
of a loop or a branch, or behind a return, does not, and is dropped, like one about anything else than a parameter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from tilekit.dtypes import DataType
from tilekit.ir.func import Analysis, Function
from tilekit.ir.functors import IRRewriter
from tilekit.ir.instructions.assume import AssumeInst
from tilekit.ir.stmt import InstStmt
from tilekit.ir.tools import assumptions
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.nodes import Cast, Equal, LessEqual, LessThan, LogicalAnd, Mod
from tilekit.lowir.scalar import Expr, Var
from tilekit.transforms.base import Pass


class LowerAssumePass(Pass):
    """Moves what `assume` says of parameters into the function's metadata, and removes it."""

    def process_function(self, func: Function) -> Function:
        if not collect(func, AssumeInst):
            return func
        facts = _Facts(frozenset(func.params))
        for stmt in assumptions.certain(func.body):
            if isinstance(stmt, InstStmt) and isinstance(stmt.inst, AssumeInst):
                facts.learn(stmt.inst.cond)
        return _Removal().visit(facts.told_to(func))


def lower_assume_pass() -> Pass:
    return LowerAssumePass()


@dataclass
class _Facts:
    """What is known of parameters."""

    params: frozenset[Var]
    divisors: dict[Var, int] = field(default_factory=dict[Var, int])
    low: dict[Var, int] = field(default_factory=dict[Var, int])
    high: dict[Var, int] = field(default_factory=dict[Var, int])

    def learn(self, cond: Expr) -> None:
        match cond:
            case LogicalAnd():
                self.learn(cond.a)
                self.learn(cond.b)
            case LessEqual():
                self._at_most(cond.a, cond.b, 0)
            case LessThan():
                self._at_most(cond.a, cond.b, 1)
            case Equal():
                self._divides(cond.a, cond.b)
                self._divides(cond.b, cond.a)
                self._at_most(cond.a, cond.b, 0)
                self._at_most(cond.b, cond.a, 0)
            case _:
                pass

    def _divides(self, remainder: Expr, zero: Expr) -> None:
        if not isinstance(remainder, Mod) or _integer(zero) != 0:
            return
        param, divisor = self._param(remainder.a), _integer(remainder.b)
        if param is not None and divisor is not None and divisor > 0:
            self.divisors[param] = math.lcm(self.divisors.get(param, 1), divisor)

    def _at_most(self, a: Expr, b: Expr, distance: int) -> None:
        """`a + distance <= b`, one of them a parameter and the other a number."""
        if (param := self._param(a)) is not None and (limit := _integer(b)) is not None:
            self.high[param] = min(self.high.get(param, limit - distance), limit - distance)
        if (param := self._param(b)) is not None and (limit := _integer(a)) is not None:
            self.low[param] = max(self.low.get(param, limit + distance), limit + distance)

    def _param(self, expr: Expr) -> Var | None:
        """The integer parameter whose value an expression is, whatever integers around it can hold that value."""
        if isinstance(expr, Cast):
            outer, inner = scalar.dtype_of(expr), scalar.dtype_of(expr.expr)
            return self._param(expr.expr) if _holds(outer, inner) else None
        if not isinstance(expr, Var) or expr not in self.params:
            return None
        return expr if scalar.is_integer(scalar.dtype_of(expr)) else None

    def told_to(self, func: Function) -> Function:
        metadata = func.metadata
        known = metadata.analysis or Analysis()
        divisors = dict(metadata.param2divisibility)
        for param, divisor in self.divisors.items():
            divisors[param] = math.lcm(divisors.get(param, 1), divisor)
        low, high = dict(known.lower_bound), dict(known.upper_bound)
        for param, bound in self.low.items():
            low[param] = max(low.get(param, bound), bound)
        for param, bound in self.high.items():
            high[param] = min(high.get(param, bound), bound)
        bounded = self.low or self.high
        analysis = Analysis(known.divisibility, low, high) if bounded else metadata.analysis
        return func.with_metadata(replace(metadata, param2divisibility=divisors, analysis=analysis))


def _integer(expr: Expr) -> int | None:
    value: Any = scalar.constant_value(expr)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _holds(outer: object, inner: object) -> bool:
    """Whether every value of one integer type is one of the other."""
    if not isinstance(outer, DataType) or not isinstance(inner, DataType):
        return False
    both = outer.is_integer() and inner.is_integer()
    return both and outer.min_value <= inner.min_value and inner.max_value <= outer.max_value


class _Removal(IRRewriter):
    def visit_AssumeInst(self, inst: AssumeInst) -> None:
        return None
