# SPDX-License-Identifier: Apache-2.0
"""Vectors and matrices go to shared memory and come back to the lanes that ask for them."""

import numpy as np
import pytest

from tests.include import sources
from tests.include.arrays import aligned


@pytest.mark.parametrize("size", sources.VECTOR_BYTES)
def test_vectors_come_back_from_where_they_were_put(machine, size):
    rng = np.random.default_rng()
    slot = rng.permutation(32).astype(np.int32)
    x = aligned(rng.integers(0, 256, (32, size), np.uint8))
    out = aligned(np.zeros_like(x))
    machine.run(sources.shared_vectors(), f"shared_{size}", [slot, x, out], shared_bytes=32 * size)
    np.testing.assert_array_equal(out, x[::-1])


def rows(rng: np.random.Generator, count: int) -> np.ndarray:
    """Different rows of 8 elements, in any order, for the lanes that a form reads; anything for the others."""
    rows = rng.permutation(sources.MATRIX_ELEMENTS // 8)[:32].astype(np.int32) * 8
    rows[8 * count :] = 1
    return rows


def words(matrices: np.ndarray, trans: bool) -> np.ndarray:
    """The registers [matrix, lane] that hold matrices [matrix, row, column]."""
    if trans:
        matrices = matrices.transpose(0, 2, 1)
    return np.ascontiguousarray(matrices).view(np.uint32).reshape(-1, 32)


@pytest.mark.parametrize("form", sources.MATRIX_FORMS)
def test_ldmatrix_gives_each_lane_its_pair_of_elements(machine, form):
    rng = np.random.default_rng()
    count = sources.MATRIX_FORMS[form]
    at = rows(rng, count)
    x = rng.integers(0, 65536, sources.MATRIX_ELEMENTS).astype(np.uint16)
    out = np.zeros((count, 32), np.uint32)
    machine.run(sources.matrix_loads(), f"ldmatrix_{form}", [at, x, out], shared_bytes=x.nbytes)
    matrices = x[at[: 8 * count, None] + np.arange(8)].reshape(count, 8, 8)
    np.testing.assert_array_equal(out, words(matrices, form.endswith("trans")))


@pytest.mark.parametrize("form", sources.MATRIX_FORMS)
def test_stmatrix_puts_each_pair_of_elements_in_its_row(machine, form):
    rng = np.random.default_rng()
    count = sources.MATRIX_FORMS[form]
    at = rows(rng, count)
    matrices = rng.integers(0, 65536, (count, 8, 8)).astype(np.uint16)
    x = words(matrices, form.endswith("trans"))
    out = np.zeros(sources.MATRIX_ELEMENTS, np.uint16)
    machine.run(sources.matrix_stores(), f"stmatrix_{form}", [at, x, out], shared_bytes=out.nbytes)
    expected = np.zeros_like(out)
    expected[at[: 8 * count, None] + np.arange(8)] = matrices.reshape(-1, 8)
    np.testing.assert_array_equal(out, expected)
