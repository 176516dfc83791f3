# SPDX-License-Identifier: Apache-2.0
"""tk::cast has the meaning that its header states, from every scalar type to every other."""

import numpy as np
import pytest

from tests.include import sources
from tests.include.arrays import NUMPY, assert_same_floats, floats, integers


def cast(machine, x: np.ndarray, source: str, to: str) -> np.ndarray:
    out = np.zeros(x.size, NUMPY[to])
    args = [np.int32(x.size), x, out]
    machine.run(sources.casts(source), f"cast_{to}", args, grid=-(-x.size // 128), block=128)
    return out


def saturated(value: float, dtype) -> int:
    info = np.iinfo(dtype)
    if np.isnan(value):
        return 0
    if np.isinf(value):
        return int(info.max if value > 0 else info.min)
    return min(max(int(value), int(info.min)), int(info.max))


@pytest.mark.parametrize("source", sources.FLOATS)
@pytest.mark.parametrize("to", sources.INTEGERS)
def test_floats_become_integers_saturated(machine, source, to):
    rng = np.random.default_rng()
    info = np.iinfo(NUMPY[to])
    edges = np.array([info.min, info.max, float(info.max) + 1, float(info.min) - 1, 0.5, -0.5, 0.99, -1.0], np.float64)
    edges = edges.astype(NUMPY[source])
    x = np.concatenate([floats(NUMPY[source], 300, rng), edges])
    if np.dtype(NUMPY[source]).itemsize > 2:
        x = np.concatenate(
            [x, np.nextafter(edges, edges.dtype.type(0)), (rng.standard_normal(300) * 2**62).astype(x.dtype)]
        )
    expected = np.array([saturated(float(value), NUMPY[to]) for value in x], NUMPY[to])
    np.testing.assert_array_equal(cast(machine, x, source, to), expected)


@pytest.mark.parametrize("source", sources.INTEGERS)
def test_integers_become_integers_by_their_low_bits(machine, source):
    x = integers(NUMPY[source], 100, np.random.default_rng())
    for to in sources.INTEGERS:
        np.testing.assert_array_equal(cast(machine, x, source, to), x.astype(NUMPY[to]))


@pytest.mark.parametrize("source", sources.INTEGERS)
def test_integers_become_the_nearest_float(machine, source):
    x = integers(NUMPY[source], 100, np.random.default_rng())
    for to in ("float", "double"):
        assert_same_floats(cast(machine, x, source, to), x.astype(NUMPY[to]))


@pytest.mark.parametrize("source", sources.SCALARS)
def test_anything_becomes_a_truth_value(machine, source):
    rng = np.random.default_rng()
    dtype = NUMPY[source]
    make = floats if source in sources.FLOATS else integers
    x = np.array([False, True]) if source == "bool" else make(dtype, 50, rng)
    expected = x.astype(np.float64) != 0 if source in sources.FLOATS else x != 0
    np.testing.assert_array_equal(cast(machine, x, source, "bool"), expected)


def test_truth_values_become_zero_and_one(machine):
    x = np.array([True, False])
    for to in sources.SCALARS:
        np.testing.assert_array_equal(cast(machine, x, "bool", to).astype(np.float32), [1, 0])
