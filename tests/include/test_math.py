# SPDX-License-Identifier: Apache-2.0
"""Functions of floats agree with NumPy in float64, rounded to their type."""

import math

import numpy as np
import pytest

from tests.cpusim.harness import run
from tests.include import sources
from tests.include.arrays import NUMPY, assert_same_floats, floats

EXACT = ("sqrt", "floor", "ceil", "trunc", "round", "abs")
NUMPY_NAMES = {
    **{f"a{name}": f"arc{name[:]}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "round": "rint",
    "pow": "power",
}
# ulp that a function may be away from the rounded true value
TOLERANCE = {"float": 2, "double": 2, "half": 0, "nv_bfloat16": 0}


def oracle(name: str, x: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        if name == "rsqrt":
            return 1 / np.sqrt(x)
        if name == "erf":
            return np.vectorize(math.erf)(x)
        return getattr(np, NUMPY_NAMES.get(name, name))(x)


def ulps(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """How many representable numbers lie between the two, wherever neither is NaN."""

    def ordered(x: np.ndarray) -> np.ndarray:
        signed = x.view(f"i{x.itemsize}").astype(object)
        return np.where(signed < 0, -(2 ** (8 * x.itemsize - 1)) - signed, signed)

    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    fine = ~np.isnan(expected)
    return np.abs(ordered(actual[fine]) - ordered(expected[fine]))


def call(simulator, kernel: str, dtype: str, op: int, *inputs: np.ndarray, out=None) -> np.ndarray:
    out = np.zeros(inputs[0].size, NUMPY[dtype] if out is None else out)
    size = inputs[0].size
    args = [np.int32(op), np.int32(size), *inputs, out]
    run(simulator, sources.float_functions(dtype), kernel, args, grid=-(-size // 128), block=128)
    return out


@pytest.mark.parametrize("dtype", sources.FLOATS)
@pytest.mark.parametrize("name", sources.UNARY)
def test_unary(simulator, name, dtype):
    narrow = NUMPY[dtype]
    x = floats(narrow, 500, np.random.default_rng())
    if name in ("sin", "cos", "tan"):
        x = x[~(np.abs(x.astype(np.float64)) > 1e15)]  # beyond, NumPy's own reduction is nothing to compare with
    out = call(simulator, "unary", dtype, sources.UNARY.index(name), x)
    with np.errstate(all="ignore"):
        wide = oracle(name, x.astype(np.float64))
        expected = wide.astype(narrow if dtype == "double" else np.float32).astype(narrow)
    if name in EXACT:
        assert_same_floats(out, expected)
        return
    far = ulps(out, expected)
    # a narrow result may be one away where the float it was rounded from is on the other side of a middle
    limit = max(TOLERANCE[dtype], 1)
    assert far.max(initial=0) <= limit
    if TOLERANCE[dtype] == 0:
        assert (far != 0).mean() < 0.01


@pytest.mark.parametrize("dtype", sources.FLOATS)
def test_round_takes_halves_to_the_even_neighbor(simulator, dtype):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.5], np.float32).astype(NUMPY[dtype])
    out = call(simulator, "unary", dtype, sources.UNARY.index("round"), x)
    np.testing.assert_array_equal(out.astype(np.float32), [0, 2, 2, 0, -2, -2, 4])


@pytest.mark.parametrize("dtype", sources.FLOATS)
def test_classification(simulator, dtype):
    x = floats(NUMPY[dtype], 500, np.random.default_rng())
    np.testing.assert_array_equal(call(simulator, "tests", dtype, 0, x, out=np.bool_), np.isnan(x))
    np.testing.assert_array_equal(call(simulator, "tests", dtype, 1, x, out=np.bool_), np.isinf(x))


@pytest.mark.parametrize("dtype", sources.FLOATS)
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_minimum_and_maximum_propagate_nan_and_know_signed_zeros(simulator, name, dtype):
    rng = np.random.default_rng()
    x, y = (rng.choice(floats(NUMPY[dtype], 30, rng), 2000) for _ in range(2))
    out = call(simulator, "binary", dtype, sources.BINARY.index(name), x, y)
    expected = getattr(np, name)(x.astype(np.float64), y.astype(np.float64))
    zeros = (x == 0) & (y == 0)
    either, both = np.signbit(x) | np.signbit(y), np.signbit(x) & np.signbit(y)
    expected[zeros] = np.where(either if name == "minimum" else both, -0.0, 0.0)[zeros]
    assert_same_floats(out, expected.astype(NUMPY[dtype]))


@pytest.mark.parametrize("dtype", sources.FLOATS)
def test_pow(simulator, dtype):
    rng = np.random.default_rng()
    x = np.abs(rng.standard_normal(1000) * 3).astype(NUMPY[dtype])
    y = (rng.standard_normal(1000) * 3).astype(NUMPY[dtype])
    out = call(simulator, "binary", dtype, sources.BINARY.index("pow"), x, y)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64) ** y.astype(np.float64)
        expected = wide.astype(NUMPY[dtype]) if dtype == "double" else wide.astype(np.float32).astype(NUMPY[dtype])
    assert ulps(out, expected).max() <= max(TOLERANCE[dtype], 1)


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_fma_of_wide_types_rounds_once(simulator, dtype):
    one = NUMPY[dtype](1)
    tiny = np.finfo(NUMPY[dtype]).eps
    x = np.array([one + tiny])
    y = np.array([one - tiny])
    out = np.zeros_like(x)
    args = [np.int32(1), x, y, np.array([-one]), out]
    run(simulator, sources.float_functions(dtype), "fma3", args)
    assert out[0] == -(NUMPY[dtype](tiny) ** 2)
