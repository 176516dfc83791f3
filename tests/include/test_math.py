# SPDX-License-Identifier: Apache-2.0
"""Functions of floats agree with what `FUNCTIONS` says they are in NumPy, in float64 rounded to their type."""

import math

import numpy as np
import pytest

from tests.include import sources
from tests.include.arrays import NUMPY, assert_same_floats, floats, ulps
from tilekit.lowir.functions import FUNCTIONS

NARROW = ("half", "nv_bfloat16")


def oracle(name: str, x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf)(x) if name == "erf" else FUNCTIONS[name].numpy(x)


def call(machine, kernel: str, dtype: str, op: int, *inputs: np.ndarray, out=None) -> np.ndarray:
    out = np.zeros(inputs[0].size, NUMPY[dtype] if out is None else out)
    size = inputs[0].size
    args = [np.int32(op), np.int32(size), *inputs, out]
    machine.run(sources.float_functions(dtype), kernel, args, grid=-(-size // 128), block=128)
    return out


@pytest.mark.parametrize("dtype", sources.FLOATS)
@pytest.mark.parametrize("name", sources.UNARY)
def test_unary(machine, name, dtype):
    narrow = NUMPY[dtype]
    x = floats(narrow, 500, np.random.default_rng())
    if name in ("sin", "cos", "tan"):
        x = x[~(np.abs(x.astype(np.float64)) > 1e15)]  # beyond, NumPy's own reduction is nothing to compare with
    out = call(machine, "unary", dtype, sources.UNARY.index(name), x)
    wide = oracle(name, x.astype(np.float64))
    if name == "exp2" and dtype != "double":
        wide = np.where(wide < 2.0**-126, 0, wide)
    expected = wide.astype(narrow if dtype == "double" else np.float32).astype(narrow)
    if name in FUNCTIONS and FUNCTIONS[name].exact:
        assert_same_floats(out, expected)
        return
    far = ulps(out, expected)
    if dtype in NARROW:  # one away where the float it was rounded from lies on the other side of a middle
        assert far.max(initial=0) <= 1
        assert (far != 0).mean() < 0.01
    else:
        assert far.max(initial=0) <= machine.ulps


@pytest.mark.parametrize("dtype", sources.FLOATS)
def test_round_takes_halves_to_the_even_neighbor(machine, dtype):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.5], np.float32).astype(NUMPY[dtype])
    out = call(machine, "unary", dtype, sources.UNARY.index("round"), x)
    np.testing.assert_array_equal(out.astype(np.float32), [0, 2, 2, 0, -2, -2, 4])


@pytest.mark.parametrize("dtype", sources.FLOATS)
def test_numbers_without_a_literal(machine, dtype):
    out = np.zeros(3, NUMPY[dtype])
    machine.run(sources.constants(), f"constants_{dtype}", [out])
    np.testing.assert_array_equal(out.astype(np.float32), [np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", sources.FLOATS)
def test_classification(machine, dtype):
    x = floats(NUMPY[dtype], 500, np.random.default_rng())
    np.testing.assert_array_equal(call(machine, "tests", dtype, 0, x, out=np.bool_), np.isnan(x))
    np.testing.assert_array_equal(call(machine, "tests", dtype, 1, x, out=np.bool_), np.isinf(x))


@pytest.mark.parametrize("dtype", sources.FLOATS)
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_minimum_and_maximum_propagate_nan_and_know_signed_zeros(machine, name, dtype):
    rng = np.random.default_rng()
    x, y = (rng.choice(floats(NUMPY[dtype], 30, rng), 2000) for _ in range(2))
    out = call(machine, "binary", dtype, sources.BINARY.index(name), x, y)
    expected = getattr(np, name)(x.astype(np.float64), y.astype(np.float64))
    zeros = (x == 0) & (y == 0)
    either, both = np.signbit(x) | np.signbit(y), np.signbit(x) & np.signbit(y)
    expected[zeros] = np.where(either if name == "minimum" else both, -0.0, 0.0)[zeros]
    assert_same_floats(out, expected.astype(NUMPY[dtype]))


@pytest.mark.parametrize("dtype", sources.FLOATS)
def test_pow(machine, dtype):
    rng = np.random.default_rng()
    x = np.abs(rng.standard_normal(1000) * 3).astype(NUMPY[dtype])
    y = (rng.standard_normal(1000) * 3).astype(NUMPY[dtype])
    out = call(machine, "binary", dtype, sources.BINARY.index("pow"), x, y)
    wide = x.astype(np.float64) ** y.astype(np.float64)
    expected = wide.astype(NUMPY[dtype]) if dtype == "double" else wide.astype(np.float32).astype(NUMPY[dtype])
    assert ulps(out, expected).max() <= (1 if dtype in NARROW else machine.ulps)


@pytest.mark.parametrize("dtype", sources.FLOATS)
def test_pow_is_1_for_a_base_of_1_or_an_exponent_of_0_whatever_the_other_is(machine, dtype):
    numpy = np.dtype(NUMPY[dtype])
    infinity = np.array([np.inf], numpy).view(f"u{numpy.itemsize}")
    signaling = (infinity + 1).view(numpy)  # a NaN
    other = np.concatenate([floats(numpy, 50, np.random.default_rng()), signaling])
    for x, y in ((np.ones_like(other), other), (other, np.zeros_like(other)), (other, -np.zeros_like(other))):
        assert (call(machine, "binary", dtype, sources.BINARY.index("pow"), x, y) == 1).all()


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_fma_of_wide_types_rounds_once(machine, dtype):
    one = NUMPY[dtype](1)
    tiny = np.finfo(NUMPY[dtype]).eps
    x = np.array([one + tiny])
    y = np.array([one - tiny])
    out = np.zeros_like(x)
    args = [np.int32(1), x, y, np.array([-one]), out]
    machine.run(sources.float_functions(dtype), "fma3", args)
    assert out[0] == -(NUMPY[dtype](tiny) ** 2)
