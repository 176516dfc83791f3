# SPDX-License-Identifier: Apache-2.0
"""Integer functions mean what Python means, and wrap at the width of their type."""

import operator

import numpy as np
import pytest

from tests.include import sources
from tests.include.arrays import NUMPY, integers

PYTHON = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": lambda a, b: a // b if b else 0,
    "floormod": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
    "minimum": min,
    "maximum": max,
}


def wrapped(values, dtype) -> np.ndarray:
    bits = 8 * np.dtype(dtype).itemsize
    return np.array([value % 2**bits for value in values], np.uint64).astype(dtype)


@pytest.mark.parametrize("dtype", sources.INTEGERS)
@pytest.mark.parametrize("name", sources.INTEGER_BINARY)
def test_binary(machine, name, dtype):
    rng = np.random.default_rng()
    x, y = integers(NUMPY[dtype], 300, rng), integers(NUMPY[dtype], 300, rng)
    y[7] = 0
    info = np.iinfo(NUMPY[dtype])
    x[0], y[0] = info.min, max(info.min, -1) or 1  # the quotient that does not fit
    out = np.zeros_like(x)
    args = [np.int32(sources.INTEGER_BINARY.index(name)), np.int32(x.size), x, y, out]
    machine.run(sources.integer_functions(dtype), "binary", args, grid=-(-x.size // 128), block=128)
    exact = [PYTHON[name](int(a), int(b)) for a, b in zip(x, y, strict=True)]
    np.testing.assert_array_equal(out, wrapped(exact, NUMPY[dtype]))


@pytest.mark.parametrize("dtype", sources.INTEGERS)
def test_absolute(machine, dtype):
    x = integers(NUMPY[dtype], 200, np.random.default_rng())
    out = np.zeros_like(x)
    args = [np.int32(x.size), x, out]
    machine.run(sources.integer_functions(dtype), "absolute", args, grid=-(-x.size // 128), block=128)
    np.testing.assert_array_equal(out, wrapped([abs(int(a)) for a in x], NUMPY[dtype]))


@pytest.mark.parametrize("dtype", sources.INTEGERS)
def test_negated_and_widened(machine, dtype):
    x = integers(NUMPY[dtype], 200, np.random.default_rng())
    x[5] = np.iinfo(NUMPY[dtype]).min  # which has no opposite
    out = np.zeros(x.size, np.int64)
    args = [np.int32(x.size), x, out]
    machine.run(sources.integer_functions(dtype), "negated", args, grid=-(-x.size // 128), block=128)
    np.testing.assert_array_equal(out, wrapped([-int(a) for a in x], NUMPY[dtype]).astype(np.int64))
