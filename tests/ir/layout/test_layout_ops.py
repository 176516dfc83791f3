# SPDX-License-Identifier: Apache-2.0
import itertools
import math
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ir.layout.strategies import broadcasts, extents, indices, layouts, places
from tilekit.ir.layout import mapping, ops
from tilekit.ir.layout.ops import LayoutOperationError, local, replicated, spatial

few = settings(max_examples=40, deadline=None)


def image(layout, index):
    return layout.get_spatial(index), layout.get_local(index)


@few
@given(st.data())
def test_permuted_layout_holds_the_permuted_index(data):
    layout = data.draw(layouts())
    dims = data.draw(st.permutations(range(len(layout.shape))))
    permuted = ops.permute(layout, dims)
    for index in indices(layout.shape):
        assert image(permuted, [index[dim] for dim in dims]) == image(layout, index)
    assert ops.permute(permuted, [dims.index(dim) for dim in range(len(dims))]) == layout


@few
@given(st.data())
def test_permutations_compose(data):
    layout = data.draw(layouts())
    first, then = (data.draw(st.permutations(range(len(layout.shape)))) for _ in range(2))
    assert ops.permute(ops.permute(layout, first), then) == ops.permute(layout, [first[dim] for dim in then])


@few
@given(st.data())
def test_product_of_permuted_layouts_is_the_permuted_product(data):
    shape = data.draw(extents(max_size=24))
    outer, inner = data.draw(layouts(shape)), data.draw(layouts(shape))
    dims = data.draw(st.permutations(range(len(shape))))
    assert ops.permute(outer * inner, dims) == ops.permute(outer, dims) * ops.permute(inner, dims)


@few
@given(st.data())
def test_reduced_layout_is_held_by_whoever_held_a_reduced_element(data):
    layout = data.draw(layouts())
    dims = data.draw(st.sets(st.sampled_from(range(len(layout.shape))))) if layout.shape else set()
    reduced = ops.reduce(layout, sorted(dims), keepdims=True)
    assert reduced.spatial_size == layout.spatial_size
    holders = {}
    for index in indices(layout.shape):
        kept = tuple(0 if dim in dims else i for dim, i in enumerate(index))
        holders.setdefault(kept, set()).update(layout.get_spatial(index))
    for index in indices(reduced.shape):
        assert set(reduced.get_spatial(index)) == holders[index]
    assert ops.reduce(layout, sorted(dims)) == ops.squeeze(reduced, sorted(dims))


@few
@given(st.data())
def test_operand_in_the_reduced_layout_is_where_the_result_needs_it(data):
    layout = data.draw(layouts())
    shape = data.draw(broadcasts(layout.shape))
    operand = ops.reduce_to(layout, shape)
    assert operand.shape == shape
    assert mapping.covers(operand, layout)
    assert mapping.local_map(layout, operand) is not None
    assert ops.reduce_to(layout, layout.shape) == layout


@few
@given(st.data())
def test_expanded_layout_needs_no_element_of_another_thread(data):
    shape = data.draw(extents())
    layout = data.draw(layouts(data.draw(broadcasts(shape))))
    expanded = ops.expand(layout, shape)
    assert expanded.shape == shape
    assert expanded.spatial_size == layout.spatial_size
    assert mapping.local_map(expanded, layout) is not None
    assert ops.expand(layout, layout.shape) == layout


def test_expansion_gives_replicas_away_first():
    column = ops.reduce(spatial(4, 8), [1], keepdims=True)
    assert ops.expand(column, (4, 8)) == spatial(4, 8)
    assert ops.expand(column, (4, 32)) == local(1, 4) * spatial(4, 8)
    assert ops.expand(local(4, 1), (4, 3)) == local(1, 3) * local(4, 1)
    assert ops.expand(replicated(num_workers=6), (2, 3)) == spatial(2, 3)


@few
@given(layouts(), layouts())
def test_concatenation_is_the_product_in_dimensions_of_their_own(lhs, rhs):
    both = ops.concat(lhs, rhs)
    ones = [1] * len(rhs.shape)
    outer = ops.with_shape(lhs, [*lhs.shape, *ones])
    assert both == outer * rhs
    assert both.shape == lhs.shape + rhs.shape


@few
@given(st.data())
def test_reshaped_layout_holds_elements_in_row_major_order(data):
    layout = data.draw(layouts())
    shape = data.draw(st.sampled_from(reshapes(layout.size)))
    try:
        reshaped = ops.reshape(layout, shape)
    except LayoutOperationError:
        return
    for old, new in zip(indices(layout.shape), indices(shape), strict=True):
        assert image(layout, old) == image(reshaped, new)
    assert ops.reshape(reshaped, layout.shape) == layout


def reshapes(size):
    return (
        [
            shape
            for rank in range(4)
            for shape in itertools.product(range(1, size + 1), repeat=rank)
            if math.prod(shape) == size
        ]
        if size <= 12
        else [(size,), (1, size), (size // 2, 2) if size % 2 == 0 else (size,)]
    )


@few
@given(layouts())
def test_any_layout_can_be_flattened_and_brought_back(layout):
    flat = ops.flatten(layout)
    assert flat.shape == (layout.size,)
    assert ops.reshape(flat, layout.shape) == layout


def test_flatten_includes_its_last_dimension():
    layout = spatial(2, 3, 4, 5)
    assert ops.flatten(layout, 1, 2).shape == (2, 12, 5)
    assert ops.flatten(layout, -2).shape == (2, 3, 20)
    assert ops.flatten(layout, 1, 1) == layout


def test_reshape_refuses_to_cut_through_a_mode():
    layout = ops.register_layout([6], [2, 3], [1], [0])
    assert ops.reshape(layout, [2, 3]).shape == (2, 3)
    with pytest.raises(LayoutOperationError, match="it cuts through a mode"):
        ops.reshape(layout, [3, 2])


@few
@given(st.data())
def test_dimensions_of_one_come_and_go(data):
    layout = data.draw(layouts())
    count = data.draw(st.integers(0, 2))
    rank = len(layout.shape) + count
    dims = data.draw(st.permutations(range(rank)))[:count]
    wider = ops.unsqueeze(layout, dims)
    assert [wider.shape[dim] for dim in dims] == [1] * count
    assert ops.squeeze(wider, dims) == layout
    assert ops.with_shape(layout, wider.shape) == wider
    narrow = [extent for extent in layout.shape if extent != 1]
    assert list(places(ops.with_shape(layout, narrow)).values()) == [
        tuple(i for i, extent in zip(index, layout.shape, strict=True) if extent != 1)
        for index in places(layout).values()
    ]


@few
@given(extents(max_rank=3, max_size=48), st.sampled_from([1, 2, 3, 4, 6, 8, 32, 48, 96]))
def test_auto_layout_holds_every_element_without_waste(shape, num_threads):
    layout = ops.auto_local_spatial(num_threads, shape)
    assert layout.shape == shape
    assert layout.spatial_size == num_threads
    assert set(places(layout).values()) == set(indices(shape))
    size = math.prod(shape)
    if size % num_threads == 0:
        assert (layout.num_replicas, layout.local_size) == (1, size // num_threads)
    elif num_threads % size == 0:
        assert (layout.num_replicas, layout.local_size) == (num_threads // size, 1)


def test_auto_layout_gives_neighbors_to_neighboring_threads():
    assert ops.auto_local_spatial(32, (4, 64)) == local(4, 2).spatial(1, 32)
    assert ops.auto_local_spatial(128, (64, 32)) == local(16, 1).spatial(4, 32)
    assert ops.auto_local_spatial(64, (2, 8)) == replicated(num_workers=4) * spatial(2, 8)
    assert ops.auto_local_spatial(32, ()) == replicated(num_workers=32)
    assert ops.auto_local_spatial(128, (96,)) == replicated(num_workers=4) * local(3) * spatial(32)


@few
@given(layouts())
def test_located_elements_are_those_of_the_thread(layout):
    held = {(index, thread) for (thread, _), index in places(layout).items()}
    for index in indices(layout.shape):
        for thread in range(layout.spatial_size):
            assert ops.locate_at(layout, index, thread) == ((index, thread) in held)


@few
@given(layouts(), st.sampled_from([1, 2, 4]))
def test_vector_extent_counts_neighbors_in_consecutive_registers(layout, width):
    assume(len(layout.shape) > 0)
    dim = len(layout.shape) - 1
    vectorized = layout * local(width)
    extent = ops.vector_extent(vectorized, dim)
    assert extent % width == 0
    for thread in range(vectorized.spatial_size):
        for register in range(0, vectorized.local_size, extent):
            first = vectorized.get_global(local_index=register, spatial_index=thread)
            assert first[dim] % extent == 0
            for i in range(extent):
                found = vectorized.get_global(local_index=register + i, spatial_index=thread)
                assert found == (*first[:dim], first[dim] + i)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ops.reduce(spatial(2, 3), [2]), "dims [2] must be at least 0 and below the rank 2"),
        (lambda: ops.reduce(spatial(2, 3), [1, 1]), "dims [1, 1] name a dimension twice"),
        (lambda: ops.reduce_to(spatial(2, 3), (3, 3)), "shape [3, 3] does not broadcast to [2, 3]"),
        (lambda: ops.reduce_to(spatial(3), (2, 3)), "shape [2, 3] does not broadcast to [3]"),
        (lambda: ops.expand(spatial(2, 3), (2, 4)), "shape [2, 3] does not broadcast to [2, 4]"),
        (lambda: ops.permute(spatial(2, 3), [0]), "dims [0] must name each of the 2 dimensions"),
        (lambda: ops.reshape(spatial(2, 3), [4]), "cannot reshape spatial(2, 3), of 6 elements, to shape [4]"),
        (lambda: ops.squeeze(spatial(2, 1), [0]), "cannot squeeze dims [0] of [2, 1]: not all have extent 1"),
        (lambda: ops.with_shape(spatial(2, 3), [3, 2]), "differ by more than dimensions of extent 1"),
        (lambda: ops.flatten(spatial(2, 3), 1, 0), "cannot flatten dimensions 1 to 0 of shape [2, 3]"),
        (lambda: ops.auto_local_spatial(32, (0, 3)), "shape [0, 3] must have positive extents"),
    ],
)
def test_operations_that_do_not_exist_are_refused(make, message):
    with pytest.raises(LayoutOperationError, match=re.escape(message)):
        make()


@few
@given(st.data())
def test_reductions_compose(data):
    layout = data.draw(layouts())
    first, then = (
        data.draw(st.sets(st.sampled_from(range(len(layout.shape))))) if layout.shape else set() for _ in range(2)
    )
    twice = ops.reduce(ops.reduce(layout, sorted(first), keepdims=True), sorted(then), keepdims=True)
    assert twice == ops.reduce(layout, sorted(first | then), keepdims=True)


@few
@given(st.data())
def test_what_is_reduced_in_two_steps_is_what_is_reduced_in_one(data):
    layout = data.draw(layouts())
    middle = data.draw(broadcasts(layout.shape))
    shape = data.draw(broadcasts(middle))
    assert ops.reduce_to(ops.reduce_to(layout, middle), shape) == ops.reduce_to(layout, shape)


@few
@given(st.data())
def test_permuted_reduction_is_the_reduction_of_the_permuted_layout(data):
    layout = data.draw(layouts())
    order = data.draw(st.permutations(range(len(layout.shape))))
    dims = data.draw(st.sets(st.sampled_from(range(len(layout.shape))))) if layout.shape else set()
    reduced = ops.reduce(layout, sorted(dims), keepdims=True)
    moved = sorted(order.index(dim) for dim in dims)
    assert ops.permute(reduced, order) == ops.reduce(ops.permute(layout, order), moved, keepdims=True)


@few
@given(layouts(), layouts(), layouts())
def test_concatenation_is_associative(a, b, c):
    assert ops.concat(ops.concat(a, b), c) == ops.concat(a, ops.concat(b, c))
    assert ops.concat(a, spatial()) == a == ops.concat(spatial(), a)


@few
@given(layouts(max_replicas=2), layouts(max_replicas=2))
def test_reduction_of_a_product_reduces_its_factors(outer, inner):
    rank = max(len(outer.shape), len(inner.shape))
    dims = list(range(rank // 2))
    outer, inner = (ops.with_shape(one, (1,) * (rank - len(one.shape)) + one.shape) for one in (outer, inner))
    parts = [ops.reduce(one, dims, keepdims=True) for one in (outer, inner)]
    assert ops.reduce(outer * inner, dims, keepdims=True) == parts[0] * parts[1]


@few
@given(st.data())
def test_reshaping_twice_is_reshaping_once(data):
    layout = data.draw(layouts())
    middle = data.draw(st.permutations(layout.shape))
    try:
        once = ops.reshape(layout, middle)
    except LayoutOperationError:
        assume(False)
        raise
    assert ops.reshape(once, layout.shape) == layout
    assert ops.flatten(once) == ops.flatten(layout)
