# SPDX-License-Identifier: Apache-2.0
"""NumPy's view of the headers' types, and numbers that find mistakes in them."""

import ml_dtypes
import numpy as np

NUMPY = {
    "float": np.float32,
    "double": np.float64,
    "half": np.float16,
    "nv_bfloat16": ml_dtypes.bfloat16,
    "bool": np.bool_,
    **{f"{name}_t": getattr(np, name) for sign in ("", "u") for name in (f"{sign}int{n}" for n in (8, 16, 32, 64))},
}


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}")


def every_16_bit_pattern(dtype) -> np.ndarray:
    return np.arange(65536, dtype=np.uint16).view(dtype)


def floats(dtype, count: int, rng: np.random.Generator) -> np.ndarray:
    """Any bit patterns, ordinary numbers, halves, and the specials."""
    unsigned = f"u{np.dtype(dtype).itemsize}"
    patterns = rng.integers(0, np.iinfo(unsigned).max, count, unsigned, endpoint=True).view(dtype)
    ordinary = (rng.standard_normal(count) * 10.0 ** rng.integers(-3, 4, count)).astype(dtype)
    halves = (rng.integers(-20, 20, count) / 2).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0], np.float64).astype(dtype)
    values = np.concatenate([patterns, ordinary, halves, rng.choice(special, count)])
    rng.shuffle(values)
    return values


def integers(dtype, count: int, rng: np.random.Generator) -> np.ndarray:
    """Any numbers, small ones, and the ends of the range."""
    info = np.iinfo(dtype)
    wide = rng.integers(info.min, info.max, count, dtype, endpoint=True)
    small = rng.integers(max(info.min, -20), 20, count).astype(dtype)
    ends = rng.choice(np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1], dtype), count)
    values = np.concatenate([wide, small, ends])
    rng.shuffle(values)
    return values


def assert_same_floats(actual: np.ndarray, expected: np.ndarray) -> None:
    """Equal bit for bit, but that any NaN is as good as any other."""
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(actual), nan)
    np.testing.assert_array_equal(bits(actual)[~nan], bits(expected)[~nan])


def aligned(array: np.ndarray, to: int = 16) -> np.ndarray:
    """A copy whose address is a multiple of `to`; NumPy aligns to the items only."""
    storage = np.empty(array.nbytes + to, np.uint8)
    begin = -storage.ctypes.data % to
    copy = storage[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def ulps(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """How many representable numbers lie between the two, wherever neither is NaN."""

    def ordered(x: np.ndarray) -> np.ndarray:
        signed = x.view(f"i{x.itemsize}").astype(object)
        return np.where(signed < 0, -(2 ** (8 * x.itemsize - 1)) - signed, signed)

    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    fine = ~np.isnan(expected)
    return np.abs(ordered(actual[fine]) - ordered(expected[fine]))
