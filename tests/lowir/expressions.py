# SPDX-License-Identifier: Apache-2.0
"""Random scalar expressions of every dtype, and values for their variables."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tilekit import dtypes
from tilekit.lowir import scalar
from tilekit.lowir.functions import FUNCTIONS, Domain

INTEGERS = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint32, dtypes.uint64)
FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
NUMBERS = (*INTEGERS, *FLOATS)
SCALARS = (*NUMBERS, dtypes.boolean)

# functions whose value is the same on every machine, to the last bit
EXACT = tuple(name for name, function in FUNCTIONS.items() if function.exact)


def dtype_of(e):
    """The dtype of an expression that is no pointer."""
    dtype = scalar.dtype_of(e)
    assert isinstance(dtype, dtypes.DataType)
    return dtype


def hidet_var(name, dtype) -> Any:
    """A variable on which hidet's own operators are tried, which its declaration hides."""
    return scalar.var(name, dtype)


def numbers(dtype):
    """Python numbers of a dtype, the awkward ones often."""
    if dtype.is_boolean():
        return st.booleans()
    if dtype.is_integer():
        low, high = dtype.min_value, dtype.max_value
        edges = st.sampled_from(sorted({low, low + 1, high - 1, high, max(low, -1), 0, 1, 2, 3, 7}))
        return st.one_of(edges, st.integers(max(low, -10), 10), st.integers(low, high))
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        float("inf"),
        float("-inf"),
        float("nan"),
        float(dtype.max_value),
        dtype.smallest_subnormal,
    ]
    anything = st.floats(width=32).map(lambda number: dtypes.convert(number, dtype))
    return st.one_of(
        st.sampled_from(edges), st.integers(-300, 300).map(lambda n: dtypes.convert(n / 8, dtype)), anything
    )


def constants(dtype):
    return numbers(dtype).map(lambda number: scalar.constant(dtype, number))


def variables():
    """Two variables of each dtype."""
    return {dtype: [scalar.var(f"{dtype.short_name}_{letter}", dtype) for letter in "ab"] for dtype in SCALARS}


@st.composite
def expressions(draw, dtype, names, depth=3, functions=tuple(FUNCTIONS)):
    """An expression of a dtype over `names`, the result of `variables`."""
    if depth == 0 or draw(st.integers(0, 9)) < 2:
        return draw(st.one_of(st.sampled_from(names[dtype]), constants(dtype)))

    def part(of):
        return draw(expressions(of, names, depth - 1, functions))

    shared = [lambda: scalar.where(part(dtypes.boolean), part(dtype), part(dtype))]
    shared.append(lambda: scalar.cast(part(draw(st.sampled_from(SCALARS))), dtype))
    if dtype.is_boolean():
        other = draw(st.sampled_from(NUMBERS))
        compare = draw(st.sampled_from([scalar.lt, scalar.le, scalar.gt, scalar.ge, scalar.eq, scalar.ne]))
        logic = draw(st.sampled_from([scalar.logical_and, scalar.logical_or]))
        own = [
            lambda: compare(part(other), part(other)),
            lambda: logic(part(dtype), part(dtype)),
            lambda: scalar.logical_not(part(dtype)),
        ]
    else:
        operator = draw(st.sampled_from(_operators(dtype)))
        name = draw(st.sampled_from([name for name in functions if _takes(name, dtype)]))
        own = [
            lambda: operator(part(dtype), part(dtype)),
            lambda: scalar.neg(part(dtype)),
            lambda: scalar.call(name, [part(dtype) for _ in range(FUNCTIONS[name].arity)]),
        ]
        if dtype.is_integer():
            shift = draw(st.sampled_from([scalar.shl, scalar.shr]))
            amount = draw(st.integers(0, dtype.nbits - 1))
            own.append(lambda: shift(part(dtype), scalar.constant(dtype, amount)))
            own.append(lambda: scalar.bitwise_not(part(dtype)))
    return draw(st.sampled_from([*own, *own, *shared]))()


def _operators(dtype):
    shared = [scalar.add, scalar.sub, scalar.mul, scalar.minimum, scalar.maximum]
    if dtype.is_float():
        return [*shared, scalar.div]
    return [*shared, scalar.floordiv, scalar.mod, scalar.bitwise_and, scalar.bitwise_or, scalar.bitwise_xor]


def _takes(name, dtype):
    function = FUNCTIONS[name]
    wanted = {Domain.FLOAT: dtype.is_float(), Domain.INT: dtype.is_integer(), Domain.NUMBER: True}
    return wanted[function.domain] and not function.tests and name not in ("c_div", "c_mod")


@st.composite
def environments(draw, names):
    """A value for each variable, as a NumPy scalar."""
    return {
        v: np.asarray(draw(numbers(dtype))).astype(dtypes.numpy_dtype(dtype))[()]
        for dtype, pair in names.items()
        for v in pair
    }


def same(x, y):
    """Whether two NumPy values are the same number of the same dtype: nans are, zeros of different sign are not."""
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if x.dtype.kind in "biu":
        return bool(np.array_equal(x, y))
    x, y = x.astype(np.float64), y.astype(np.float64)
    return bool(np.array_equal(x, y, equal_nan=True) and np.array_equal(np.signbit(x)[x == 0], np.signbit(y)[x == 0]))
