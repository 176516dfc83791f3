# SPDX-License-Identifier: Apache-2.0
"""Asynchronous copies are there once their group has been waited for."""

import numpy as np
import pytest

from tests.include import sources
from tests.include.arrays import aligned


@pytest.mark.parametrize("hint", ["", "_evict_first"])
@pytest.mark.parametrize("masked", ["", "or_zero_"])
@pytest.mark.parametrize("size", sources.COPY_BYTES)
def test_each_group_arrives_by_its_wait(machine, size, masked, hint):
    x = aligned(np.random.default_rng().integers(0, 256, (128, size), np.uint8))
    out = aligned(np.zeros_like(x))
    machine.run(sources.copies(), f"cp_async_{masked}{size}{hint}", [x, out], block=64, shared_bytes=128 * size)
    expected = x.copy().reshape(2, 64, size)
    if masked:
        expected[:, ::3] = 0
    np.testing.assert_array_equal(out, expected[:, ::-1].reshape(128, size))
