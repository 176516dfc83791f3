# SPDX-License-Identifier: Apache-2.0
"""How an expression moves along one axis of a tile: which neighbors have neighboring addresses, or the same mask.

Along an axis, all other variables fixed, an expression is described by aligned *runs*: positions 0 … run-1, run …
2*run-1 and so on. Inside a run it grows by the same `step` from one position to the next, and at the start of every
run it is a multiple of `divisor`. Addresses are contiguous where an offset has step 1, a mask is constant where it has
step 0. A run of 0 means the whole axis, a divisor of 0 means the value 0: `math.gcd` reads both as "no limit".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilekit.dtypes import DataType
from tilekit.ir import layouts
from tilekit.ir.analysis.scalar_analysis import Facts
from tilekit.ir.machine import Access
from tilekit.ir.tensor import RegisterTensor
from tilekit.lowir import scalar
from tilekit.lowir.nodes import (
    Add,
    Call,
    Cast,
    Div,
    Equal,
    IfThenElse,
    LeftShift,
    LessEqual,
    LessThan,
    LogicalAnd,
    Mod,
    Multiply,
    Neg,
    NotEqual,
    RightShift,
    Sub,
)
from tilekit.lowir.scalar import Expr, Var

# the widest access of one thread
VECTOR_BITS = 128


@dataclass(frozen=True, slots=True)
class Pattern:
    """Aligned runs in which each position adds `step`, starting at multiples of `divisor`."""

    step: int
    run: int
    divisor: int

    @property
    def continuity(self) -> int:
        """Positions of an aligned group along which the value grows by one."""
        return self.run if self.step == 1 else 1

    @property
    def constancy(self) -> int:
        """Positions of an aligned group that have the same value."""
        return self.run if self.step == 0 else 1

    def within(self, run: int) -> Pattern:
        """The same values in runs that also fit into those of length `run`."""
        shorter = math.gcd(self.run, run)
        if shorter == self.run:
            return self
        # a new run starts `shorter` positions after the last one
        return Pattern(self.step if shorter > 1 else 0, shorter, math.gcd(self.divisor, self.step * shorter))


def axis_pattern(expr: Expr, axis: Var, facts: Facts) -> Pattern:
    """How an integer or boolean expression moves along `axis`; `facts` knows the extents of all axes."""
    return _Axis(axis, facts).of(expr)


def vector_widths(
    dtype: DataType, shape: Sequence[int], access: Access, facts: Facts, *, ragged: bool = False
) -> tuple[int, ...]:
    """Per dimension, how many neighbors one access of a thread may take, starting at any multiple of their number.

    They are contiguous, all or none of them pass the mask, they are aligned, and they have at most 16 bytes. With
    `ragged` some of them may pass the mask and others not, if all do wherever the first and the last one do.
    """
    facts = facts.over(access.axes, shape)
    in_a_vector = VECTOR_BITS // dtype.nbits if VECTOR_BITS % dtype.nbits == 0 else 1
    aligned = max(facts.alignment(access.pointer) * 8 // dtype.nbits, 1)
    widths: list[int] = []
    for axis, extent in zip(access.axes, shape, strict=True):
        offset = axis_pattern(access.offset, axis, facts)
        together = math.gcd(offset.continuity, offset.divisor, in_a_vector, extent, aligned)
        if access.mask is not None and not (ragged and _has_no_gap(access.mask, axis, facts, together)):
            together = math.gcd(together, axis_pattern(access.mask, axis, facts).constancy)
        widths.append(together)
    return tuple(widths)


def _has_no_gap(mask: Expr, axis: Var, facts: Facts, width: int) -> bool:
    """Whether of `width` neighbors that begin at a multiple of it all pass if the first and the last one do."""
    match mask:
        case LogicalAnd():
            return _has_no_gap(mask.a, axis, facts, width) and _has_no_gap(mask.b, axis, facts, width)
        case LessThan() | LessEqual() if facts.maybe(mask.a) is not None and facts.maybe(mask.b) is not None:
            return all(axis_pattern(side, axis, facts).run % width == 0 for side in (mask.a, mask.b))
        case _:
            return axis_pattern(mask, axis, facts).constancy % width == 0


def vector_width(
    tile: RegisterTensor, access: Access, facts: Facts, num_threads: int, *, ragged: bool = False
) -> tuple[int, int]:
    """The dimension along which a thread accesses most at once, the last one of equals, and how many elements."""
    per_thread = layouts.spread(tile.shape, num_threads).local_size
    allowed = vector_widths(tile.dtype, tile.shape, access, facts, ragged=ragged)
    widths = [math.gcd(width, per_thread) for width in allowed]
    if not widths:
        return 0, 1
    width = max(widths)
    return len(widths) - 1 - widths[::-1].index(width), width


class _Axis:
    """The patterns of expressions along one axis."""

    def __init__(self, axis: Var, facts: Facts) -> None:
        self.axis = axis
        self.facts = facts
        self._known: dict[int, tuple[Expr, Pattern]] = {}

    def of(self, expr: Expr) -> Pattern:
        remembered = self._known.get(id(expr))
        if remembered is not None:
            return remembered[1]
        pattern = self._compute(expr)
        fact = self.facts.maybe(expr)
        if fact is not None:
            pattern = Pattern(pattern.step, pattern.run, math.lcm(pattern.divisor, fact.divisor))
        self._known[id(expr)] = (expr, pattern)
        return pattern

    def _compute(self, expr: Expr) -> Pattern:
        if expr is self.axis:
            return Pattern(1, 0, 0)
        parts = scalar.children(expr)
        fact = self.facts.maybe(expr)
        if not parts or (fact is not None and fact.value is not None):
            return Pattern(0, 0, 1)
        patterns = [self.of(part) for part in parts]
        run = math.gcd(*(pattern.run for pattern in patterns))
        patterns = [pattern.within(run) for pattern in patterns]
        if all(self.facts.maybe(part) is not None for part in parts):
            pattern = self._operation(expr, patterns)
            if pattern is not None:
                return pattern
        # a function of constants is a constant
        return Pattern(0, run if all(pattern.step == 0 for pattern in patterns) else 1, 1)

    def _operation(self, expr: Expr, parts: Sequence[Pattern]) -> Pattern | None:
        """The pattern of an operation on integers, whose operands have one run; None where no rule knows better."""
        match expr:
            case Add():
                return self._sum(expr, *parts, sign=1)
            case Sub():
                return self._sum(expr, *parts, sign=-1)
            case Neg():
                return self._sum(expr, Pattern(0, parts[0].run, 0), *parts, sign=-1)
            case Multiply():
                return self._product(expr, *parts)
            case LeftShift() if (amount := self._value(expr.b)) is not None:
                return self._scaled(expr, parts[0], 1 << amount)
            case RightShift() if (amount := self._value(expr.b)) is not None:
                return _quotient(parts[0], Pattern(0, 0, 1 << amount), 1 << amount)
            case Div() if self._is_positive(expr.b):
                return _quotient(parts[0], parts[1], self._value(expr.b))
            case Mod() if self._is_positive(expr.b):
                return _remainder(parts[0], parts[1])
            case Cast() if self._is_integer(expr):
                return self._wrapped(expr, *parts)
            case LessThan() | LessEqual():
                return self._comparison(expr, *parts)
            case Equal() | NotEqual() | Call() if parts[0].step == parts[-1].step:
                return self._of_equal_steps(expr, *parts)
            case IfThenElse() if parts[1].step == parts[2].step and parts[0].step == 0:
                return Pattern(parts[1].step, parts[1].run, math.gcd(parts[1].divisor, parts[2].divisor))
            case _:
                return None

    def _sum(self, expr: Expr, a: Pattern, b: Pattern, *, sign: int) -> Pattern:
        return self._wrapped(expr, Pattern(a.step + sign * b.step, a.run, math.gcd(a.divisor, b.divisor)))

    def _scaled(self, expr: Expr, a: Pattern, factor: int) -> Pattern:
        return self._wrapped(expr, Pattern(a.step * factor, a.run, a.divisor * abs(factor)))

    def _product(self, expr: Multiply, a: Pattern, b: Pattern) -> Pattern:
        if (factor := self._value(expr.b)) is not None:
            return self._scaled(expr, a, factor)
        if (factor := self._value(expr.a)) is not None:
            return self._scaled(expr, b, factor)
        if a.step != 0 or b.step != 0:  # the step is not a number that is known
            a, b = a.within(1), b.within(1)
        return self._wrapped(expr, Pattern(0, a.run, a.divisor * b.divisor))

    def _comparison(self, expr: LessThan | LessEqual, a: Pattern, b: Pattern) -> Pattern:
        """`a < b` is `a - b < 0`: a difference that starts at a multiple of what it grows by does not jump over 0."""
        step = a.step - b.step
        if step == 0:
            return Pattern(0, a.run, 1)
        low, high = a.divisor, b.divisor
        # rising differences change sign at `< 0`, falling ones at `<= 0`: the other comparison is one of number + 1
        if isinstance(expr, LessEqual) and step > 0:
            high = self._successor(expr.b)
        elif isinstance(expr, LessThan) and step < 0:
            low = self._successor(expr.a)
        return Pattern(0, _fitting(a.run, math.gcd(low, high), abs(step)), 1)

    def _of_equal_steps(self, expr: Expr, a: Pattern, b: Pattern | None = None) -> Pattern | None:
        """Two numbers whose difference stays the same: a comparison stays too, and the smaller is the same of both."""
        if b is None:
            return None
        if not isinstance(expr, Call):
            return Pattern(0, a.run, 1)
        if scalar.function_name(expr) in ("minimum", "maximum"):
            return Pattern(a.step, a.run, math.gcd(a.divisor, b.divisor))
        return None

    def _wrapped(self, expr: Expr, exact: Pattern) -> Pattern:
        """The pattern after wrapping at the dtype's width: a run must not reach over the end of its range."""
        if not self.facts.may_wrap(expr):
            return exact
        dtype = scalar.dtype_of(expr)
        assert isinstance(dtype, DataType)
        power = math.gcd(exact.divisor, 1 << dtype.nbits)
        if exact.step == 0:
            return Pattern(0, exact.run, power)
        # the range of a signed dtype ends in the middle between two multiples of its size
        end = math.gcd(power, 1 << (dtype.nbits - dtype.is_signed()))
        inside = exact.within(_fitting(exact.run, end, exact.step) if exact.step > 0 else 1)
        return Pattern(inside.step, inside.run, math.gcd(inside.divisor, 1 << dtype.nbits))

    def _value(self, expr: Expr) -> int | None:
        return self.facts.of(expr).value

    def _successor(self, expr: Expr) -> int:
        """A number that divides the value plus one."""
        value = self._value(expr)
        return 1 if value is None else abs(value + 1)

    def _is_positive(self, expr: Expr) -> bool:
        return self.facts.of(expr).low > 0

    def _is_integer(self, expr: Expr) -> bool:
        dtype = scalar.dtype_of(expr)
        return isinstance(dtype, DataType) and dtype.is_integer()


def _fitting(run: int, divisor: int, step: int) -> int:
    """The longest part of a run over which a multiple of `divisor` grows by a number that divides it."""
    return math.gcd(run, divisor // step) if divisor % step == 0 else 1


def _quotient(a: Pattern, b: Pattern, value: int | None) -> Pattern | None:
    """`a // b` for a positive `b`, whose value may be known."""
    if value is not None and a.step % value == 0 and a.divisor % value == 0:
        return Pattern(a.step // value, a.run, a.divisor // value)
    if a.step < 0 or b.step != 0:
        return None
    if a.step == 0:
        return Pattern(0, a.run, 1)
    return Pattern(0, _fitting(a.run, math.gcd(a.divisor, b.divisor), a.step), 1)


def _remainder(a: Pattern, b: Pattern) -> Pattern | None:
    """`a % b` for a positive `b`."""
    if a.step < 0 or b.step != 0:
        return None
    common = math.gcd(a.divisor, b.divisor)
    inside = a if a.step == 0 else a.within(_fitting(a.run, common, a.step))
    return Pattern(inside.step, inside.run, math.gcd(inside.divisor, common))
