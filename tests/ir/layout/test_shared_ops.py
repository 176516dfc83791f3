# SPDX-License-Identifier: Apache-2.0
import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.ir.layout.strategies import BINARY_EXTENTS, SWIZZLES, extents, grids, indices, shared_layouts
from tilekit.ir.layout.ops import (
    LayoutOperationError,
    Swizzle,
    shared_column_major,
    shared_compose,
    shared_layout,
    shared_permute,
    shared_reshape,
    shared_row_major,
    shared_row_major_swizzle,
    shared_slice,
    shared_unsqueeze,
)

few = settings(max_examples=40, deadline=None)
plain_layouts = shared_layouts(swizzles=st.none())


def same_everywhere(one, other, change):
    """Whether the grids of `other` are those of `one` after `change`, wherever the tiles start."""
    return all(np.array_equal(change(a), b) for a, b in zip(grids(one), grids(other), strict=True))


@few
@given(st.data())
def test_permuted_layout_has_the_transposed_grid(data):
    layout = data.draw(shared_layouts())
    dims = data.draw(st.permutations(range(len(layout.shape))))
    permuted = layout.permute(dims)
    assert permuted.shape == tuple(layout.shape[dim] for dim in dims)
    assert same_everywhere(layout, permuted, lambda grid: grid.transpose(dims))
    assert shared_permute(permuted, [dims.index(dim) for dim in range(len(dims))]) == layout


@few
@given(shared_layouts(shape=(4, 6)))
def test_transposed_twice_is_the_layout_itself(layout):
    assert layout.transpose() == layout.permute([1, 0])
    assert layout.transpose().transpose() == layout
    assert shared_row_major(4, 6).transpose() == shared_column_major(6, 4)


@few
@given(st.data())
def test_slice_is_the_grid_at_an_index_of_the_other_dimensions(data):
    layout = data.draw(shared_layouts())
    retained = data.draw(st.permutations(range(len(layout.shape))))[: data.draw(st.integers(0, len(layout.shape)))]
    dropped = [dim for dim in range(len(layout.shape)) if dim not in retained]
    at = {dim: data.draw(st.integers(0, layout.shape[dim] - 1)) for dim in dropped}
    start = layout.linear(*(at.get(dim, 0) for dim in range(len(layout.shape))))
    part = shared_slice(layout, retained)
    assert part == layout.slice(retained)
    assert part.optional_swizzle == layout.optional_swizzle
    for index in indices(part.shape):
        whole = [at.get(dim, 0) for dim in range(len(layout.shape))]
        for dim, i in zip(retained, index, strict=True):
            whole[dim] = i
        for elsewhere in (0, 1, 37):
            assert part(*index, start=elsewhere + start) == layout(*whole, start=elsewhere)


@few
@given(st.data())
def test_new_dimensions_of_extent_1_move_nothing(data):
    layout = data.draw(shared_layouts())
    rank = len(layout.shape) + data.draw(st.integers(0, 2))
    dims = data.draw(st.permutations(range(rank)))[: rank - len(layout.shape)]
    wider = shared_unsqueeze(layout, dims)
    assert wider == layout.unsqueeze(dims)
    assert same_everywhere(layout, wider, lambda grid: np.expand_dims(grid, tuple(dims)))
    assert wider.slice([dim for dim in range(rank) if dim not in dims]) == layout


@few
@given(shared_layouts(), st.integers(1, 4))
def test_prepended_dimension_repeats_the_tile_behind_itself(layout, extent):
    stack = layout.prepend_dim(extent)
    assert stack.shape == (extent, *layout.shape)
    assert stack.slice(range(1, len(stack.shape))) == layout
    for number in range(extent):
        assert np.array_equal(stack.as_numpy_grid()[number], layout.as_numpy_grid() + number * layout.count_size())
    assert stack.count_size() == extent * layout.count_size()
    assert stack == shared_compose(shared_row_major(extent, *[1] * len(layout.shape)), layout)


@few
@given(st.data())
def test_reshaped_layout_has_the_reshaped_grid_or_there_is_an_error(data):
    layout = data.draw(shared_layouts())
    shape = data.draw(
        extents(max_rank=4).filter(lambda shape: math.prod(shape) == layout.size) | st.just((layout.size,))
    )
    try:
        reshaped = shared_reshape(layout, shape)
    except LayoutOperationError as error:
        assert "it cuts through a mode" in str(error)
        assert not representable(layout.as_numpy_grid().reshape(shape)) or layout.optional_swizzle is not None
        return
    assert reshaped.shape == shape
    assert same_everywhere(layout, reshaped, lambda grid: grid.reshape(shape))
    assert shared_reshape(reshaped, layout.shape) == layout


def representable(grid):
    """Whether each dimension's index adds to the offset what it adds alone, as in every layout without a swizzle."""
    first = grid.flat[0]
    alone = [np.moveaxis(grid, axis, 0).reshape(extent, -1)[:, 0] - first for axis, extent in enumerate(grid.shape)]
    total = sum(np.meshgrid(*alone, indexing="ij")) if alone else 0
    return np.array_equal(total + first, grid)


@few
@given(st.data())
def test_any_shape_of_a_packed_layout_is_row_major_again(data):
    shape = data.draw(extents())
    other = data.draw(st.permutations(shape))
    assert shared_reshape(shared_row_major(*shape), other) == shared_row_major(*other)
    assert shared_reshape(shared_row_major(*shape), [math.prod(shape)]) == shared_row_major(math.prod(shape))


def test_swizzled_tile_is_reshaped_with_its_swizzle():
    tile = shared_row_major_swizzle([16, 64], 2)
    split = shared_reshape(tile, [2, 8, 8, 8])
    assert split.optional_swizzle == Swizzle(3, 3, 3)
    assert shared_reshape(split, [16, 64]) == tile
    with pytest.raises(LayoutOperationError, match="it cuts through a mode"):
        shared_reshape(shared_layout([4, 6], [4, 6], [1, 4]), [3, 8])


# ---------------------------------------------------------------- compose


def composed_grid(outer, inner):
    """The grid of the product by its definition."""
    rank = max(len(outer.shape), len(inner.shape))
    high = outer.as_numpy_grid().reshape((1,) * (rank - len(outer.shape)) + outer.shape)
    low = inner.as_numpy_grid().reshape((1,) * (rank - len(inner.shape)) + inner.shape)
    return np.kron(high, np.ones_like(low)) * inner.count_size() + np.kron(np.ones_like(high), low)


@few
@given(shared_layouts(), shared_layouts())
def test_product_makes_outer_indices_the_high_parts_or_there_is_an_error(outer, inner):
    span = inner.count_size()
    both = outer.optional_swizzle is not None and inner.optional_swizzle is not None
    movable = outer.optional_swizzle is None or span & (span - 1) == 0
    if both or not movable:
        with pytest.raises(LayoutOperationError, match="both have a swizzle" if both else "cannot move tiles of"):
            shared_compose(outer, inner)
        return
    product = shared_compose(outer, inner)
    assert np.array_equal(product.as_numpy_grid(), composed_grid(outer, inner))
    assert product.count_size() == outer.count_size() * inner.count_size()


@few
@given(st.data())
def test_product_is_associative(data):
    shapes = [data.draw(extents(max_size=8, of=BINARY_EXTENTS)) for _ in range(3)]
    swizzled = data.draw(st.sampled_from([None, 0, 1, 2]))
    a, b, c = (
        data.draw(shared_layouts(shape, swizzles=SWIZZLES if at == swizzled else st.none()))
        for at, shape in enumerate(shapes)
    )
    if swizzled is not None:  # a swizzle moves only what spans a power of two
        spans = [layout.count_size() for layout in (a, b, c)[swizzled + 1 :]]
        assume(all(span & (span - 1) == 0 for span in spans))
    assert shared_compose(shared_compose(a, b), c) == shared_compose(a, shared_compose(b, c))


@few
@given(shared_layouts())
def test_unit_layout_changes_no_product(layout):
    assert shared_compose(layout, shared_row_major()) == layout == shared_compose(shared_row_major(), layout)


@few
@given(plain_layouts, plain_layouts)
def test_product_of_row_majors_of_rows_is_row_major(one, other):
    rows = shared_row_major(*one.shape)
    column = shared_row_major(*[1] * len(one.shape), other.size)
    assert shared_compose(shared_unsqueeze(rows, [len(one.shape)]), column) == shared_row_major(*one.shape, other.size)


@few
@given(st.data())
def test_product_of_permuted_layouts_is_the_permuted_product(data):
    shape = data.draw(extents(max_size=12))
    outer, inner = data.draw(shared_layouts(shape, swizzles=st.none())), data.draw(shared_layouts(shape))
    dims = data.draw(st.permutations(range(len(shape))))
    product = shared_compose(outer, inner)
    assert product.permute(dims) == shared_compose(outer.permute(dims), inner.permute(dims))


def test_swizzle_survives_a_product_on_either_side():
    tile = shared_row_major_swizzle([8, 64], 2)
    assert shared_compose(shared_row_major(2, 1), tile) == shared_row_major_swizzle([16, 64], 2)
    vectors = shared_compose(shared_row_major(8, 8).apply_swizzle(Swizzle(0, 3, 3)), shared_row_major(1, 8))
    assert vectors == tile


@few
@given(plain_layouts, SWIZZLES)
def test_applied_swizzle_permutes_the_offsets(layout, swizzle):
    grid = layout.as_numpy_grid()
    assert np.array_equal(layout.apply_swizzle(swizzle).as_numpy_grid(), np.vectorize(swizzle, otypes=[int])(grid))


@few
@given(plain_layouts)
def test_swizzle_of_no_bits_is_none(layout):
    assert layout.apply_swizzle(Swizzle(2, 0, 1)) == layout
    assert layout.apply_swizzle(Swizzle(2, 0, 1)).count_size() == layout.count_size()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: shared_row_major(2, 3).permute([0]), "dims [0] must name each of the 2 dimensions"),
        (lambda: shared_row_major(2, 3).permute([0, 0]), "dims [0, 0] name a dimension twice"),
        (lambda: shared_row_major(2, 3).slice([2]), "dims [2] must be at least 0 and below the rank 2"),
        (lambda: shared_row_major(2, 3).unsqueeze([3]), "dims [3] must be at least 0 and below the rank 3"),
        (lambda: shared_reshape(shared_row_major(2, 3), [4]), "of 6 elements, to shape [4]"),
    ],
)
def test_operations_that_do_not_exist_are_refused(make, message):
    with pytest.raises(LayoutOperationError, match=re.escape(message)):
        make()


def test_every_axis_of_a_stack_can_be_the_stage():
    tile = shared_row_major_swizzle([8, 32], 2)
    stack = tile.prepend_dim(3)
    for number, index in itertools.product(range(3), indices(tile.shape)):
        start = stack.linear(number, 0, 0)
        assert stack.slice([1, 2])(*index, start=start) == stack(number, *index)
        assert start % tile.optional_swizzle.period == 0
