# SPDX-License-Identifier: Apache-2.0
"""half and __nv_bfloat16 on the CPU round as IEEE and CUDA do, after every operation."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.include import sources
from tests.include.arrays import NUMPY, assert_same_floats, every_16_bit_pattern, floats
from tests.include.machines import Cpu

NARROW = ["half", "nv_bfloat16"]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng()


def cast(machine, array: np.ndarray, source: str, to: str) -> np.ndarray:
    out = np.zeros(array.size, NUMPY[to])
    args = [np.int32(array.size), array, out]
    machine.run(sources.casts(source), f"cast_{to}", args, grid=-(-array.size // 128), block=128)
    return out


@pytest.mark.parametrize("dtype", NARROW)
def test_every_value_becomes_its_float(machine, dtype):
    x = every_16_bit_pattern(NUMPY[dtype])
    assert_same_floats(cast(machine, x, dtype, "float"), x.astype(np.float32))
    assert_same_floats(cast(machine, x, dtype, "double"), x.astype(np.float64))


@pytest.mark.parametrize(("source", "to"), [("half", "nv_bfloat16"), ("nv_bfloat16", "half")])
def test_every_value_becomes_the_nearest_of_the_other_narrow_type(machine, source, to):
    x = every_16_bit_pattern(NUMPY[source])
    assert_same_floats(cast(machine, x, source, to), x.astype(np.float32).astype(NUMPY[to]))


@pytest.mark.parametrize("dtype", NARROW)
def test_floats_around_every_value_and_every_middle_round_to_nearest_even(machine, dtype):
    values = every_16_bit_pattern(NUMPY[dtype]).astype(np.float32)
    values = np.sort(values[np.isfinite(values)])
    middles = ((values[:-1].astype(np.float64) + values[1:]) / 2).astype(np.float32)
    x = np.concatenate([values, middles])
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf))])
    assert_same_floats(cast(machine, x, "float", dtype), x.astype(NUMPY[dtype]))


@pytest.mark.parametrize("dtype", NARROW)
def test_any_float_rounds_to_nearest_even(machine, dtype, rng):
    x = floats(np.float32, 20_000, rng)
    assert_same_floats(cast(machine, x, "float", dtype), x.astype(NUMPY[dtype]))


def nearest(value: Fraction, dtype) -> np.generic:
    """The value of a narrow type that is nearest to an exact number, even at ties: by comparing with neighbors."""
    guess = np.float64(float(value)).astype(np.float32).astype(dtype)
    one = np.uint16(1)
    pattern = guess.view(np.uint16)
    near = [np.uint16(pattern - one).view(dtype), guess, np.uint16(pattern + one).view(dtype)]
    near = [candidate for candidate in near if np.isfinite(np.float32(candidate))]
    return min(near, key=lambda c: (abs(Fraction(float(c)) - value), int(np.asarray(c).view(np.uint16)) & 1))


@pytest.mark.parametrize("dtype", NARROW)
def test_doubles_are_rounded_once(machine, dtype, rng):
    values = every_16_bit_pattern(NUMPY[dtype]).astype(np.float64)
    values = np.sort(values[np.isfinite(values)])
    picked = rng.integers(0, values.size - 1, 500)
    middles = (values[picked] + values[picked + 1]) / 2
    x = np.concatenate([np.nextafter(middles, np.inf), np.nextafter(middles, -np.inf), middles])
    expected = np.array([nearest(Fraction(float(v)), NUMPY[dtype]) for v in x])
    np.testing.assert_array_equal(cast(machine, x, "double", dtype).astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("source", ["int32_t", "int64_t", "uint32_t", "uint64_t"])
@pytest.mark.parametrize("dtype", NARROW)
def test_integers_are_rounded_once(machine, dtype, source, rng):
    info = np.iinfo(NUMPY[source])
    top = min(int(info.max), 65519 if dtype == "half" else int(info.max))
    magnitude = rng.integers(0, top, 2000, np.uint64, endpoint=True) >> rng.integers(0, 40, 2000, np.uint64)
    # beside the middle between two values, where rounding twice goes wrong
    shift = np.array([max(int(value).bit_length() - 9, 0) for value in magnitude], np.uint64)
    middle = (magnitude >> shift | np.uint64(1)) << shift
    x = np.concatenate([magnitude, middle, middle + np.uint64(1), middle - np.uint64(1)])
    x = x[x <= top].astype(NUMPY[source])
    if info.min < 0:
        x *= rng.choice([-1, 1], x.size).astype(NUMPY[source])
    expected = np.array([nearest(Fraction(int(v)), NUMPY[dtype]) for v in x])
    np.testing.assert_array_equal(cast(machine, x, source, dtype).astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("operator", sources.OPERATORS)
def test_every_operation_rounds_once(machine, dtype, operator, rng):
    narrow = NUMPY[dtype]
    x, y = floats(narrow, 5000, rng), floats(narrow, 5000, rng)
    out = np.zeros_like(x)
    op = np.int32(len(sources.BINARY) + sources.OPERATORS.index(operator))
    args = [op, np.int32(x.size), x, y, out]
    machine.run(sources.float_functions(dtype), "binary", args, grid=-(-x.size // 128), block=128)
    # double holds sums and products of narrow numbers exactly, or so nearly that rounding it is rounding once
    a, b = x.astype(np.float64), y.astype(np.float64)
    exact = {"+": a + b, "-": a - b, "*": a * b, "/": a / b}[operator]
    assert_same_floats(out, exact.astype(np.float32).astype(narrow))


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("operator", sources.COMPARISONS)
def test_comparisons(machine, dtype, operator, rng):
    x, y = (rng.choice(floats(NUMPY[dtype], 50, rng), 3000) for _ in range(2))
    out = np.zeros(x.size, np.bool_)
    args = [np.int32(sources.COMPARISONS.index(operator)), np.int32(x.size), x, y, out]
    machine.run(sources.float_functions(dtype), "comparisons", args, grid=-(-x.size // 128), block=128)
    compare = {"<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal, ">": np.greater}
    compare[">="] = np.greater_equal
    np.testing.assert_array_equal(out, compare[operator](x.astype(np.float32), y.astype(np.float32)))


@pytest.mark.parametrize("dtype", NARROW)
def test_fma_rounds_once(machine, dtype, rng):
    narrow = NUMPY[dtype]
    x, y = ((rng.integers(1, 256, 3000) / 16).astype(narrow) for _ in range(2))
    # addends near the product's size, and so small that they only break ties
    scale = 2.0 ** rng.choice([0, -8, -14, -20, -24] if dtype == "half" else [0, -8, -40, -100, -130], 3000)
    z = (rng.integers(-32, 33, 3000) * scale).astype(np.float32).astype(narrow)
    out = np.zeros_like(x)
    args = [np.int32(x.size), x, y, z, out]
    machine.run(sources.float_functions(dtype), "fma3", args, grid=-(-x.size // 128), block=128)
    exact = [Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) for a, b, c in zip(x, y, z, strict=True)]
    expected = np.array([nearest(value, narrow) for value in exact])
    np.testing.assert_array_equal(out.astype(np.float32), expected.astype(np.float32))


def test_conversion_without_cpu_instructions_is_the_same(simulator):
    """A compiler for another CPU takes the written-out conversion: its result may not depend on that."""
    text = sources.HEADER.replace("#include", "#undef __F16C__\n#include")
    text += sources.kernel("narrow", "int32_t n, float *x, half *out", [*sources.INDEX, "out[i] = half(x[i]);"])
    text += sources.kernel("widen", "int32_t n, half *x, float *out", [*sources.INDEX, "out[i] = float(x[i]);"])
    values = every_16_bit_pattern(np.float16)
    wide = np.zeros(values.size, np.float32)
    Cpu(simulator).run(text, "widen", [np.int32(values.size), values, wide], grid=512, block=128)
    assert_same_floats(wide, values.astype(np.float32))
    x = floats(np.float32, 20_000, np.random.default_rng())
    x = np.concatenate([x, np.linspace(-7e-5, 7e-5, 20_000, dtype=np.float32)])  # and subnormal halves
    narrow = np.zeros(x.size, np.float16)
    Cpu(simulator).run(text, "narrow", [np.int32(x.size), x, narrow], grid=-(-x.size // 128), block=128)
    assert_same_floats(narrow, x.astype(np.float16))


def test_ml_dtypes_agrees_with_itself():
    """The oracle of this file: NumPy's float16 and ml_dtypes' bfloat16 keep every value on the way through float."""
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = every_16_bit_pattern(dtype)
        assert_same_floats(x.astype(np.float32).astype(dtype), x)
