# SPDX-License-Identifier: Apache-2.0
import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.layout.strategies import BINARY_EXTENTS, extents, layouts, places, shared_layouts
from tilekit.ir.layout import mapping, ops
from tilekit.ir.layout.mapping import evaluate
from tilekit.ir.layout.ops import (
    LayoutOperationError,
    conflicts,
    local,
    replicated,
    shared_column_major,
    shared_layout,
    shared_row_major,
    shared_row_major_swizzle,
    spatial,
)

some = settings(max_examples=80, deadline=None)


def pair(data, of=(1, 2, 3, 4, 6), swizzles=None):
    shape = data.draw(extents(max_size=32, of=of))
    options = {} if swizzles is None else {"swizzles": swizzles}
    return data.draw(layouts(shape)), data.draw(shared_layouts(shape, **options))


@some
@given(st.data())
def test_shared_terms_are_the_offset_before_the_swizzle(data):
    reg, shared = pair(data)
    terms = mapping.shared_terms(reg, shared)
    if terms is None:
        return
    for (thread, register), index in places(reg).items():
        assert evaluate(terms, thread=thread, local=register) == shared.linear(*index)


@some
@given(st.data())
def test_binary_layouts_always_have_terms(data):
    reg, shared = pair(data, of=BINARY_EXTENTS)
    assert mapping.shared_terms(reg, shared) is not None


def test_layouts_that_cut_a_dimension_differently_have_none():
    assert mapping.shared_terms(spatial(3).local(2), shared_layout([6], [2, 3], [8, 1])) is None
    assert mapping.shared_vector_extent(spatial(3).local(2), shared_layout([6], [2, 3], [8, 1])) == 1


def test_terms_of_a_fragment_a_person_can_check():
    fragment = local(2, 1).spatial(8, 4).local(1, 2)
    terms = mapping.shared_terms(fragment, shared_row_major(16, 8))
    assert terms is not None
    assert list(map(str, terms)) == ["local // 2 * 64", "thread * 2", "local % 2"]


def lie_side_by_side(reg, shared, count, starts):
    """Whether `count` registers from a multiple on lie side by side, from a multiple on, wherever the tile starts."""
    if reg.local_size % count != 0:
        return False
    for thread, first in itertools.product(range(reg.spatial_size), range(0, reg.local_size, count)):
        index = [reg.get_global(local_index=first + i, spatial_index=thread) for i in range(count)]
        for start in starts:
            offsets = [shared(*i, start=start) for i in index]
            if offsets != list(range(offsets[0], offsets[0] + count)) or offsets[0] % count != 0:
                return False
    return True


@some
@given(st.data())
def test_vector_lies_side_by_side_in_shared_memory(data):
    reg, shared = pair(data)
    count = mapping.shared_vector_extent(reg, shared)
    assert lie_side_by_side(reg, shared, count, starts=[0, count, 7 * count])


@some
@given(st.data())
def test_no_longer_vector_lies_side_by_side_in_a_plain_layout(data):
    reg, shared = pair(data, of=BINARY_EXTENTS, swizzles=st.none())
    count = mapping.shared_vector_extent(reg, shared)
    assert not lie_side_by_side(reg, shared, 2 * count, starts=[0])


@some
@given(st.data())
def test_swizzle_cuts_vectors_to_its_unit(data):
    reg, shared = pair(data, of=BINARY_EXTENTS)
    plain = ops.SharedLayout(shared.shape, shared.mode_shape, shared.mode_strides)
    longest = mapping.shared_vector_extent(reg, plain)
    unit = longest if shared.optional_swizzle is None else 1 << shared.optional_swizzle.base
    assert mapping.shared_vector_extent(reg, shared) == min(longest, unit)


@pytest.mark.parametrize(
    ("reg", "shared", "count"),
    [
        (spatial(8, 4).local(1, 8), shared_row_major(8, 32), 8),
        (spatial(8, 4).local(1, 8), shared_row_major_swizzle([8, 32], 2), 8),
        (spatial(8, 4).local(1, 8), shared_row_major_swizzle([8, 32], 4), 4),
        (spatial(8, 4).local(1, 8), shared_column_major(8, 32), 1),
        (spatial(8, 4).local(1, 8), shared_layout([8, 32], [8, 32], [36, 1]), 4),
        (spatial(4).local(6), shared_row_major(24), 6),
        (local(4, 8), shared_row_major(4, 8), 32),
        (local(4, 8), shared_layout([4, 8], [4, 8], [10, 1]), 2),
        (spatial(32), shared_row_major(32), 1),
    ],
)
def test_vectors_that_a_person_can_check(reg, shared, count):
    assert mapping.shared_vector_extent(reg, shared) == count


def test_shapes_must_be_the_same():
    with pytest.raises(LayoutOperationError, match=re.escape("a tile of shape [4] is none of shape [2, 2]")):
        mapping.shared_terms(spatial(4), shared_row_major(2, 2))


# ---------------------------------------------------------------- bank conflicts


def rounds_by_hand(shared, reg, nbytes, vector):
    """The rounds of the worst access beyond what the bytes need, thread by thread and byte by byte."""
    size = nbytes * vector
    together = min(32, 128 // size)
    worst = 0
    for first, register in itertools.product(range(0, reg.spatial_size, together), range(0, reg.local_size, vector)):
        banks = {}
        for thread in range(first, min(first + together, reg.spatial_size)):
            index = reg.get_global(local_index=register, spatial_index=thread)
            for byte in range(shared(*index) * nbytes, shared(*index) * nbytes + size):
                banks.setdefault(byte // 4 % 32, set()).add(byte // 4)
        worst = max(worst, max(map(len, banks.values())) - 1)
    return worst


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_conflicts_are_the_words_that_a_bank_serves_beyond_the_first(data):
    shape = data.draw(extents(max_rank=2, max_size=512, of=(1, 2, 4, 8, 16, 32, 64)))
    threads = data.draw(st.sampled_from([8, 32, 64]))
    reg = ops.auto_local_spatial(threads, shape)
    shared = data.draw(shared_layouts(shape))
    nbytes = data.draw(st.sampled_from([1, 2, 4, 8]))
    vector = min(mapping.shared_vector_extent(reg, shared), 16 // nbytes)
    assert conflicts(shared, reg, nbytes, vector) == rounds_by_hand(shared, reg, nbytes, vector)


@pytest.mark.parametrize(
    ("shared", "reg", "nbytes", "vector", "extra"),
    [
        (shared_row_major(32, 32), local(32, 1).spatial(1, 32), 4, 1, 0),
        (shared_row_major(32, 32), local(1, 32).spatial(32, 1), 4, 1, 31),
        (shared_layout([32, 32], [32, 32], [33, 1]), local(1, 32).spatial(32, 1), 4, 1, 0),
        (shared_row_major(32, 32), replicated(32, 32, num_workers=32), 4, 1, 0),
        (shared_row_major(64, 2), spatial(32, 1).local(2, 2), 2, 2, 1),
        (shared_row_major(16, 64), spatial(16, 8).local(1, 8), 2, 8, 0),
        (shared_row_major(16, 64), local(2, 1).spatial(8, 8).local(1, 8), 2, 8, 0),
        (shared_row_major(16, 64), local(1, 8).spatial(16, 1).local(1, 8), 2, 8, 7),
        (shared_row_major_swizzle([16, 64], 2), local(1, 8).spatial(16, 1).local(1, 8), 2, 8, 0),
        (shared_row_major(16, 64), local(2, 8).spatial(8, 4).local(1, 2), 2, 2, 7),
        (shared_row_major_swizzle([16, 64], 2), local(2, 8).spatial(8, 4).local(1, 2), 2, 2, 0),
    ],
)
def test_conflicts_that_a_person_can_check(shared, reg, nbytes, vector, extra):
    assert conflicts(shared, reg, nbytes, vector) == extra


@pytest.mark.parametrize("nbytes", [1, 2, 4])
@pytest.mark.parametrize("row_bytes", [16, 32, 64, 128, 256])
def test_swizzled_copies_of_16_bytes_are_free_of_conflicts(nbytes, row_bytes):
    shape, vector = (64, row_bytes // nbytes), 16 // nbytes
    vectors = ops.auto_local_spatial(128, (64, shape[1] // vector)) * local(1, vector)
    assert conflicts(shared_row_major_swizzle(shape, nbytes), vectors, nbytes, vector) == 0


def test_accesses_that_do_not_exist_are_refused():
    with pytest.raises(LayoutOperationError, match="no access of shared memory moves 32 bytes"):
        conflicts(shared_row_major(32, 8), spatial(32, 1).local(1, 8), 4, 8)
    with pytest.raises(LayoutOperationError, match=r"2 registers of .* do not lie side by side"):
        conflicts(shared_column_major(32, 8), spatial(32, 1).local(1, 8), 4, 2)


def test_offsets_of_terms_take_arrays_too():
    reg, shared = local(2, 1).spatial(8, 4).local(1, 2), shared_row_major_swizzle([16, 8], 2)
    terms = mapping.shared_terms(reg, shared)
    thread, register = np.meshgrid(np.arange(32), np.arange(4), indexing="ij")
    assert sorted(evaluate(terms, thread=thread, local=register).ravel().tolist()) == list(range(128))
