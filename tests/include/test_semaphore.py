# SPDX-License-Identifier: Apache-2.0
"""Blocks that take turns by a semaphore change memory in the order of their turns."""

import numpy as np
import pytest

from tests.include import sources


def after_all_turns(x: np.ndarray, turn: np.ndarray) -> np.ndarray:
    for block in np.argsort(turn):
        x = x * np.uint32(3) + np.uint32(block)
    return x


@pytest.mark.parametrize("order", ["first to last", "last to first", "any"])
def test_blocks_take_turns(machine, order):
    rng = np.random.default_rng()
    turn = np.arange(20, dtype=np.int32)
    if order != "first to last":
        turn = turn[::-1].copy() if order == "last to first" else rng.permutation(turn)
    x = rng.integers(0, 2**32, 64, np.uint32)
    expected = after_all_turns(x, turn)
    semaphore = np.zeros(1, np.int32)
    machine.run(sources.semaphores(), "turns", [turn, semaphore, x], grid=20, block=64)
    np.testing.assert_array_equal(x, expected)
    assert semaphore[0] == 20
