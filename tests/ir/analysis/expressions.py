# SPDX-License-Identifier: Apache-2.0
"""Random integer expressions over given variables, for checking what analysis claims against what they are worth."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tilekit import dtypes
from tilekit.dtypes import DataType
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var

DTYPES = (dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.uint32)

ARITHMETIC = (
    scalar.add,
    scalar.sub,
    scalar.mul,
    scalar.floordiv,
    scalar.mod,
    scalar.minimum,
    scalar.maximum,
    scalar.bitwise_and,
    scalar.bitwise_or,
    scalar.bitwise_xor,
)
COMPARISONS = (scalar.lt, scalar.le, scalar.eq, scalar.ne)


def dtype_of(v: Var) -> DataType:
    """The dtype of a variable that is no pointer."""
    dtype = scalar.dtype_of(v)
    assert isinstance(dtype, DataType)
    return dtype


@st.composite
def integer(draw: st.DrawFn, variables: Sequence[Var], dtype: DataType, depth: int) -> Expr:
    """An expression of `dtype`; small powers of two and their multiples are frequent, as in real index arithmetic."""
    leaves = [v for v in variables if dtype_of(v) is dtype]
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        if leaves and draw(st.integers(0, 3)) > 0:
            return draw(st.sampled_from(leaves))
        number = draw(st.sampled_from([0, 1, 2, 3, 4, 5, 8, 12, 16, 32, 64, 100, 127, -1, -2, -8]))
        return scalar.constant(dtype, number if number >= dtype.min_value else -number)
    kind = draw(st.integers(0, 12))
    if kind <= 6:
        a, b = draw(integer(variables, dtype, depth - 1)), draw(integer(variables, dtype, depth - 1))
        return draw(st.sampled_from(ARITHMETIC))(a, b)
    if kind <= 8:
        other = draw(st.sampled_from([dtype_of(v) for v in variables]))
        return scalar.cast(draw(integer(variables, other, depth - 1)), dtype)
    if kind == 9:
        a, b = draw(integer(variables, dtype, depth - 1)), draw(integer(variables, dtype, depth - 1))
        return scalar.where(draw(truth(variables, depth - 1)), a, b)
    if kind == 10:
        amount = scalar.constant(dtype, draw(st.integers(0, 6)))
        return draw(st.sampled_from([scalar.shl, scalar.shr]))(draw(integer(variables, dtype, depth - 1)), amount)
    if kind == 11:
        return draw(st.sampled_from([scalar.neg, scalar.bitwise_not]))(draw(integer(variables, dtype, depth - 1)))
    return scalar.call("abs", [draw(integer(variables, dtype, depth - 1))])


@st.composite
def truth(draw: st.DrawFn, variables: Sequence[Var], depth: int) -> Expr:
    """A boolean expression."""
    if depth > 0 and draw(st.integers(0, 2)) == 0:
        a, b = draw(truth(variables, depth - 1)), draw(truth(variables, depth - 1))
        return draw(st.sampled_from([scalar.logical_and, scalar.logical_or, lambda x, y: scalar.logical_not(x)]))(a, b)
    dtype = draw(st.sampled_from([dtype_of(v) for v in variables]))
    a, b = (draw(integer(variables, dtype, max(depth - 1, 0))) for _ in range(2))
    return draw(st.sampled_from(COMPARISONS))(a, b)
