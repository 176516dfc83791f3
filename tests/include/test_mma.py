# SPDX-License-Identifier: Apache-2.0
"""mma multiplies the matrices that PTX's figures spread over the lanes, alone and in tiles."""

import numpy as np
import pytest

from tests.include import sources
from tests.include.fragments import FRAGMENTS, Fragments, Tile, positions


def one(f: Fragments) -> Tile:
    return Tile(1, 1, 1, 0, 0, 0, 0, 0, 0, f.per_register, f.per_register)


def spread(f: Fragments, tile: Tile, a: np.ndarray, b: np.ndarray, d: np.ndarray) -> list[np.ndarray]:
    """Matrices as the registers of 32 lanes."""
    counts = tile.register_counts(f)
    lanes = [np.zeros((32, count), x.dtype) for count, x in zip(counts, (a, b, d), strict=True)]
    for mi, ki in np.ndindex(tile.mi, tile.ki):
        row, k = f.a_elements()
        at = positions(1, mi * tile.am + ki * tile.ak, f.a, f.per_register, tile.ar)
        lanes[0][:, at] = a[mi * f.m + row, ki * f.k + k]
    for ki, ni in np.ndindex(tile.ki, tile.ni):
        k, column = f.b_elements()
        at = positions(1, ki * tile.bk + ni * tile.bn, f.b, f.per_register, tile.br)
        lanes[1][:, at] = b[ki * f.k + k, ni * f.n + column]
    for mi, ni in np.ndindex(tile.mi, tile.ni):
        row, column = f.d_elements()
        at = mi * tile.dm + ni * tile.dn + np.arange(f.d)
        lanes[2][:, at] = d[mi * f.m + row, ni * f.n + column]
    return lanes


def collect(f: Fragments, tile: Tile, registers: np.ndarray) -> np.ndarray:
    """The matrix that the lanes' sums are."""
    d = np.zeros((tile.mi * f.m, tile.ni * f.n), registers.dtype)
    for mi, ni in np.ndindex(tile.mi, tile.ni):
        row, column = f.d_elements()
        d[mi * f.m + row, ni * f.n + column] = registers[:, mi * tile.dm + ni * tile.dn + np.arange(f.d)]
    return d


def multiplied(machine, name: str, kernel: str, a: np.ndarray, b: np.ndarray, d: np.ndarray) -> np.ndarray:
    f = FRAGMENTS[name]
    tile = one(f) if kernel == "one" else f.tiles()[kernel]
    lanes = spread(f, tile, a, b, d)
    machine.run(sources.multiplications(name), kernel, lanes)
    return collect(f, tile, lanes[2])


def random(f: Fragments, tile: Tile, draw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    m, n, k = tile.mi * f.m, tile.ni * f.n, tile.ki * f.k
    return draw((m, k)).astype(f.dtype), draw((k, n)).astype(f.dtype), draw((m, n)).astype(f.sums)


KERNELS = ("one", "tile", "large_tile", "apart")


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", FRAGMENTS)
def test_small_integers_are_multiplied_exactly(machine, name, kernel):
    f = FRAGMENTS[name]
    tile = one(f) if kernel == "one" else f.tiles()[kernel]
    rng = np.random.default_rng()
    a, b, d = random(f, tile, lambda shape: rng.integers(-5, 6, shape))
    expected = a.astype(np.int64) @ b.astype(np.int64) + d.astype(np.int64)
    np.testing.assert_array_equal(multiplied(machine, name, kernel, a, b, d).astype(np.int64), expected)


@pytest.mark.parametrize("kernel", ["one", "tile"])
@pytest.mark.parametrize("name", [name for name, f in FRAGMENTS.items() if f.sums is not np.int32])
def test_floats_are_multiplied_as_well_as_the_sum_can_hold(machine, name, kernel):
    f = FRAGMENTS[name]
    tile = one(f) if kernel == "one" else f.tiles()[kernel]
    rng = np.random.default_rng()
    a, b, d = random(f, tile, rng.standard_normal)
    found = multiplied(machine, name, kernel, a, b, d).astype(np.float64)
    if f.operand == "float":
        a, b = truncated(a), truncated(b)
    a, b, d = (x.astype(np.float64) for x in (a, b, d))
    bound = np.abs(a) @ np.abs(b) + np.abs(d)
    roundings = tile.ki if f.sums is np.float16 else f.k * tile.ki
    assert (np.abs(found - (a @ b + d)) <= roundings * np.finfo(f.sums).eps * bound).all()


def truncated(x: np.ndarray) -> np.ndarray:
    """What a tensor core sees of a float: its 13 low bits count for nothing."""
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def test_the_low_bits_of_tf32_operands_count_for_nothing(machine):
    f = FRAGMENTS["m16n8k8_tf32_f32"]
    rng = np.random.default_rng()
    a, b, d = random(f, one(f), rng.standard_normal)
    whole = multiplied(machine, "m16n8k8_tf32_f32", "one", a, b, d)
    cut = multiplied(machine, "m16n8k8_tf32_f32", "one", truncated(a), truncated(b), d)
    np.testing.assert_array_equal(whole, cut)


@pytest.mark.parametrize("name", [name for name, f in FRAGMENTS.items() if f.sums is np.int32])
def test_integer_sums_wrap(machine, name):
    f = FRAGMENTS[name]
    rng = np.random.default_rng()
    a, b, _ = random(f, one(f), lambda shape: rng.integers(-128, 128, shape))
    d = rng.integers(-(2**31), 2**31, (f.m, f.n)).astype(np.int32)
    expected = (a.astype(np.int64) @ b.astype(np.int64) + d).astype(np.int32)
    np.testing.assert_array_equal(multiplied(machine, name, "one", a, b, d), expected)


def test_infinities_and_nans_reach_their_row_or_column_alone(machine):
    f = FRAGMENTS["m16n8k16_f16_f32"]
    a, b, d = random(f, one(f), np.ones)
    a[3, 5], b[7, 2], d[9, 1] = np.inf, np.nan, -np.inf
    found = multiplied(machine, "m16n8k16_f16_f32", "one", a, b, d)
    expected = np.full((16, 8), 17.0)
    expected[3], expected[9, 1], expected[:, 2] = np.inf, -np.inf, np.nan
    np.testing.assert_array_equal(found, expected)
