# SPDX-License-Identifier: Apache-2.0
"""Memory, warp and barrier functions move the right bytes between the right threads."""

import numpy as np
import pytest

from tests.include import sources
from tests.include.arrays import NUMPY, aligned, bits


@pytest.mark.parametrize("size", sources.VECTOR_BYTES)
@pytest.mark.parametrize("kernel", ["copy", "masked"])
def test_vectors_move_as_many_bytes_as_they_say(machine, kernel, size):
    rng = np.random.default_rng()
    x = aligned(rng.integers(0, 256, (100, size), np.uint8))
    expected = x.copy()
    if kernel == "masked":
        expected[::3] = 0
    out = aligned(np.zeros_like(x))
    machine.run(sources.vectors(), f"{kernel}_{size}", [np.int32(100), x, out], block=128)
    np.testing.assert_array_equal(out, expected ^ 1)


def source_lane(name: str, lane: int, by: int, width: int) -> int:
    """The lane that `lane` hears, by the rules of PTX's shfl.sync."""
    begin = lane - lane % width
    wanted = {
        "shfl_idx": begin + by % width,
        "shfl_up": lane - by,
        "shfl_down": lane + by,
        "shfl_xor": lane ^ by,
    }[name]
    outside = wanted < begin if name == "shfl_up" else wanted >= begin + width
    return lane if outside else wanted


@pytest.mark.parametrize("dtype", sources.EXCHANGED)
@pytest.mark.parametrize("name", sources.SHUFFLES)
def test_shuffles(machine, name, dtype):
    rng = np.random.default_rng()
    raw = rng.integers(0, 256, 32 * np.dtype(NUMPY[dtype]).itemsize, np.uint8)
    x = (raw % 2).view(np.bool_) if dtype == "bool" else raw.view(NUMPY[dtype])
    for width in (32, 16, 8, 4, 2, 1):
        by = int(rng.integers(0, 32))
        out = np.zeros_like(x)
        machine.run(sources.exchanges(dtype), name, [np.int32(by), np.int32(width), x, out])
        lanes = [source_lane(name, lane, by, width) for lane in range(32)]
        np.testing.assert_array_equal(bits(out), bits(x)[lanes])


@pytest.mark.parametrize("dtype", sources.EXCHANGED)
def test_ballot(machine, dtype):
    votes = np.random.default_rng().integers(0, 2, 32).astype(NUMPY[dtype])
    out = np.zeros(32, np.uint32)
    machine.run(sources.exchanges(dtype), "ballot", [votes, out])
    mask = sum(1 << lane for lane in range(32) if votes[lane])
    np.testing.assert_array_equal(out, mask)


def test_barriers(machine):
    i = np.arange(128)
    expected = 127 - i + np.where(i < 64, 127 - (63 - i), 0) + 1000 * 43 + 100000
    for options in machine.schedules:
        out = np.zeros(128, np.int32)
        machine.run(sources.barriers(), "barriers", [out], block=128, shared_bytes=512, **options)
        np.testing.assert_array_equal(out, expected)
