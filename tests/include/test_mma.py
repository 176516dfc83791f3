# SPDX-License-Identifier: Apache-2.0
"""mma multiplies the matrices that PTX's figures spread over the lanes, alone and in tiles."""

import numpy as np
import pytest

from tests.include import sources
from tests.include.fragments import FRAGMENTS, magnitudes


def multiplied(machine, name: str, kernel: str, a: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    f = FRAGMENTS[name]
    tile = f.tiles().get(kernel, f.one())
    lanes = tile.spread(f, a, b, d)
    machine.run(sources.multiplications(name), kernel, lanes)
    return tile.collect(f, lanes[2])


KERNELS = ("one", "tile", "large_tile", "apart")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", FRAGMENTS)
def test_small_integers_are_multiplied_exactly(machine, name, kernel):
    f = FRAGMENTS[name]
    tile = f.tiles().get(kernel, f.one())
    rng = np.random.default_rng()
    a, b, d = tile.random(f, lambda shape: rng.integers(-5, 6, shape))
    expected = a.astype(np.int64) @ b.astype(np.int64) + d.astype(np.int64)
    np.testing.assert_array_equal(multiplied(machine, name, kernel, a, b, d).astype(np.int64), expected)


@pytest.mark.parametrize("kernel", ["one", "tile"])
@pytest.mark.parametrize("name", [name for name, f in FRAGMENTS.items() if f.sums is not np.int32])
def test_floats_are_multiplied_as_well_as_the_sum_can_hold(machine, name, kernel):
    f = FRAGMENTS[name]
    tile = f.tiles().get(kernel, f.one())
    rng = np.random.default_rng()
    a, b, d = tile.random(f, rng.standard_normal)
    found = multiplied(machine, name, kernel, a, b, d).astype(np.float64)
    if f.operand == "float":
        a, b = truncated(a), truncated(b)
    expected = a.astype(np.float64) @ b.astype(np.float64) + d.astype(np.float64)
    roundings = tile.ki if f.sums is np.float16 else f.k * tile.ki
    assert (np.abs(found - expected) <= roundings * np.finfo(f.sums).eps * magnitudes(a, b, d)).all()


def truncated(x: np.ndarray) -> np.ndarray:
    """What a tensor core sees of a float: its 13 low bits count for nothing."""
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def test_the_low_bits_of_tf32_operands_count_for_nothing(machine):
    f = FRAGMENTS["m16n8k8_tf32_f32"]
    rng = np.random.default_rng()
    a, b, d = f.one().random(f, rng.standard_normal)
    whole = multiplied(machine, "m16n8k8_tf32_f32", "one", a, b, d)
    cut = multiplied(machine, "m16n8k8_tf32_f32", "one", truncated(a), truncated(b), d)
    np.testing.assert_array_equal(whole, cut)


@pytest.mark.parametrize("name", [name for name, f in FRAGMENTS.items() if f.sums is np.int32])
def test_integer_sums_wrap(machine, name):
    f = FRAGMENTS[name]
    rng = np.random.default_rng()
    a, b, _ = f.one().random(f, lambda shape: rng.integers(-128, 128, shape))
    d = rng.integers(-(2**31), 2**31, (f.m, f.n)).astype(np.int32)
    expected = (a.astype(np.int64) @ b.astype(np.int64) + d).astype(np.int32)
    np.testing.assert_array_equal(multiplied(machine, name, "one", a, b, d), expected)


def test_infinities_and_nans_reach_their_row_or_column_alone(machine):
    f = FRAGMENTS["m16n8k16_f16_f32"]
    a, b, d = f.one().random(f, np.ones)
    a[3, 5], b[7, 2], d[9, 1] = np.inf, np.nan, -np.inf
    found = multiplied(machine, "m16n8k16_f16_f32", "one", a, b, d)
    expected = np.full((16, 8), 17.0)
    expected[3], expected[9, 1], expected[:, 2] = np.inf, -np.inf, np.nan
    np.testing.assert_array_equal(found, expected)
