# SPDX-License-Identifier: Apache-2.0
import ast
import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.layout.strategies import SWIZZLES, extents, factorizations, grids, indices, shared_layouts
from tilekit.ir.layout import ops
from tilekit.ir.layout.ops import (
    LayoutOperationError,
    SharedLayout,
    Swizzle,
    shared_column_major,
    shared_layout,
    shared_row_major,
    shared_row_major_swizzle,
    spatial,
)
from tilekit.ir.layout.parser import parse_layout, register_layout_from_ast, shared_layout_from_ast

few = settings(max_examples=40, deadline=None)


# ---------------------------------------------------------------- swizzles


@few
@given(SWIZZLES, st.integers(0, 1 << 12))
def test_swizzle_is_its_own_inverse(swizzle, offset):
    assert swizzle(swizzle(offset)) == offset
    assert swizzle(np.array([offset]))[0] == swizzle(offset)


@few
@given(SWIZZLES)
def test_swizzle_permutes_each_of_its_periods_alike(swizzle):
    period = swizzle.period
    assert sorted(map(swizzle, range(period))) == list(range(period))
    for start, offset in itertools.product(range(0, 4 * period, period), range(period)):
        assert swizzle(start + offset) == start + swizzle(offset)


@few
@given(SWIZZLES)
def test_no_start_below_the_period_can_be_added_afterwards(swizzle):
    assert any(
        swizzle(swizzle.period // 2 + offset) != swizzle.period // 2 + swizzle(offset)
        for offset in range(swizzle.period)
    )


@few
@given(SWIZZLES, st.integers(0, 255))
def test_swizzle_moves_its_unit_as_one(swizzle, number):
    unit = 1 << swizzle.base
    first = swizzle(number * unit)
    assert first % unit == 0
    assert [swizzle(number * unit + inside) for inside in range(unit)] == list(range(first, first + unit))


def test_swizzle_a_person_can_check():
    swizzle = Swizzle(base=1, bits=2, shift=2)
    assert swizzle.period == 32
    assert [swizzle(offset) for offset in (0, 2, 8, 9, 10, 16, 24, 31)] == [0, 2, 10, 11, 8, 20, 30, 25]


@pytest.mark.parametrize("fields", [(-1, 1, 1), (0, -1, 1), (0, 3, 2), (0, 0, 0)])
def test_swizzle_that_reads_what_it_writes_is_refused(fields):
    with pytest.raises(LayoutOperationError, match="reads bits that it writes"):
        Swizzle(*fields)


# ---------------------------------------------------------------- layouts


def offset_by_hand(layout, index):
    """Each dimension's index written in its modes, least significant first, from the last mode on."""
    modes = list(zip(layout.mode_shape, layout.mode_strides, strict=True))
    total = 0
    for extent, value in reversed(list(zip(layout.shape, index, strict=True))):
        covered = 1
        while covered < extent:
            mode, stride = modes.pop()
            total += value // covered % mode * stride
            covered *= mode
    swizzle = layout.optional_swizzle
    if swizzle is None:
        return total
    bits = [int(bit) for bit in reversed(f"{total:032b}")]
    moved = list(bits)
    for bit in range(swizzle.base, swizzle.base + swizzle.bits):
        moved[bit] = bits[bit] ^ bits[bit + swizzle.shift]
    return sum(bit << place for place, bit in enumerate(moved))


@few
@given(shared_layouts())
def test_offset_is_the_sum_of_the_modes_then_swizzled(layout):
    grid = layout.as_numpy_grid()
    assert grid.shape == layout.shape
    for index in indices(layout.shape):
        assert layout(*index) == grid[index] == offset_by_hand(layout, index)
        assert layout.byte_offset(*index, nbytes=4) == 4 * layout(*index)


@few
@given(shared_layouts(), st.integers(0, 300))
def test_tile_that_starts_elsewhere_is_swizzled_where_it_lies(layout, start):
    for index in indices(layout.shape):
        plain = start + layout.linear(*index)
        swizzle = layout.optional_swizzle
        assert layout(*index, start=start) == (plain if swizzle is None else swizzle(plain))


@few
@given(shared_layouts(), st.integers(0, 3))
def test_elements_stay_in_the_span_wherever_the_tile_starts_at_a_multiple_of_it(layout, number):
    span = layout.count_size()
    swizzle = layout.optional_swizzle
    assert swizzle is None or span % swizzle.period == 0
    grid = np.zeros(layout.shape, dtype=int) + layout(*np.indices(layout.shape), start=number * span)
    assert number * span <= grid.min()
    assert grid.max() < (number + 1) * span
    assert np.array_equal(grid, number * span + layout.as_numpy_grid())


@few
@given(shared_layouts(swizzles=st.none()))
def test_span_of_a_plain_layout_ends_with_its_last_element(layout):
    assert layout.count_size() == layout.as_numpy_grid().max() + 1


@few
@given(shared_layouts())
def test_canonical_form_is_equal_and_final(layout):
    plain = shared_layout(layout.shape, layout.mode_shape, layout.mode_strides, layout.optional_swizzle)
    assert plain == layout
    assert hash(plain) == hash(layout)
    assert np.array_equal(plain.as_numpy_grid(), layout.as_numpy_grid())
    assert 1 not in plain.mode_shape
    assert len(plain.mode_shape) <= len(layout.mode_shape)
    again = shared_layout(plain.shape, plain.mode_shape, plain.mode_strides, plain.optional_swizzle)
    assert (again.mode_shape, again.mode_strides) == (plain.mode_shape, plain.mode_strides)


@st.composite
def rewritten(draw, layout):
    """The same layout with other modes, or one that differs in a stride or in the swizzle."""
    modes = []
    for mode, stride in zip(layout.mode_shape, layout.mode_strides, strict=True):
        factors = draw(factorizations(mode))
        for at, factor in enumerate(factors):
            modes.append((factor, stride * math.prod(factors[at + 1 :])))
    swizzle = layout.optional_swizzle
    match draw(st.sampled_from(["same", "stride", "swizzle"])):
        case "stride" if modes:
            at = draw(st.integers(0, len(modes) - 1))
            modes[at] = (modes[at][0], modes[at][1] + draw(st.sampled_from([1, 2, 4, 8])))
        case "swizzle":
            swizzle = draw(st.none() | SWIZZLES)
        case _:
            pass
    return SharedLayout(layout.shape, tuple(m for m, _ in modes), tuple(s for _, s in modes), swizzle)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_layouts_are_equal_exactly_if_they_place_every_element_alike(data):
    one = data.draw(shared_layouts(data.draw(extents(max_size=12))))
    other = data.draw(rewritten(one))
    same = all(map(np.array_equal, grids(one), grids(other)))
    assert (one == other) == same
    assert (repr(one) == repr(other)) == same
    if same:
        assert hash(one) == hash(other)


def test_layouts_of_other_shapes_and_kinds_differ():
    assert shared_row_major(4) != shared_row_major(4, 1)
    assert shared_row_major(4) != spatial(4)


@few
@given(shared_layouts(), shared_layouts())
def test_injective_layouts_place_no_two_elements_alike(layout, other):
    assert layout.is_injective
    assert other.is_injective
    overlapping = SharedLayout((*layout.shape, 2), (*layout.mode_shape, 2), (*layout.mode_strides, 0))
    assert not overlapping.is_injective


def test_injective_is_not_only_for_strides_that_grow():
    assert shared_layout([2, 3], [2, 3], [3, 2]).is_injective
    assert not shared_layout([3, 3], [3, 3], [1, 2]).is_injective


# ---------------------------------------------------------------- constructors


@few
@given(extents())
def test_row_and_column_major_are_numpys_c_and_f_order(shape):
    numbers = np.arange(math.prod(shape))
    assert np.array_equal(shared_row_major(*shape).as_numpy_grid(), numbers.reshape(shape, order="C"))
    assert np.array_equal(shared_column_major(*shape).as_numpy_grid(), numbers.reshape(shape, order="F"))


ROW_BYTES = (16, 32, 48, 64, 96, 128, 160, 192, 256, 384)


@pytest.mark.parametrize("nbytes", [1, 2, 4, 8])
@pytest.mark.parametrize("row_bytes", ROW_BYTES)
@pytest.mark.parametrize("head", [(), (3,), (2, 1)])
def test_swizzled_rows_meet_no_bank_twice(nbytes, row_bytes, head):
    rows, columns, vector = 24, row_bytes // nbytes, 16 // nbytes
    layout = shared_row_major_swizzle([*head, rows, columns], nbytes)
    grid = layout.as_numpy_grid() * nbytes
    assert sorted((grid // nbytes).ravel().tolist()) == list(range(grid.size)), "no gap and no overlap"
    vectors = grid.reshape(-1, rows, columns // vector, vector)
    assert (np.diff(vectors, axis=-1) == nbytes).all(), "16 bytes stay side by side"
    groups = vectors[..., 0] // 16 % 8  # which eighth of all banks each 16 bytes need
    for tile in groups:
        for column, top in itertools.product(range(columns // vector), range(0, rows, 8)):
            assert sorted(tile[top : top + 8, column]) == list(range(8)), "eight rows, as ldmatrix reads them"


@pytest.mark.parametrize("nbytes", [1, 2, 4, 8])
@pytest.mark.parametrize("row_bytes", [16, 32, 64, 128, 256, 512])
def test_copies_of_16_bytes_row_by_row_meet_no_bank_twice(nbytes, row_bytes):
    layout = shared_row_major_swizzle([24, row_bytes // nbytes], nbytes)
    places = (layout.as_numpy_grid() * nbytes).reshape(-1, 16 // nbytes)[:, 0] // 16 % 8
    for eight in places.reshape(-1, 8):
        assert sorted(eight) == list(range(8))


@pytest.mark.parametrize(
    ("shape", "nbytes", "swizzle"),
    [
        ([8, 64], 2, Swizzle(3, 3, 3)),
        ([8, 128], 2, Swizzle(3, 3, 3)),
        ([8, 32], 2, Swizzle(3, 2, 3)),
        ([8, 16], 2, Swizzle(3, 1, 3)),
        ([8, 8], 2, None),
        ([8, 24], 2, None),
        ([8, 48], 2, Swizzle(3, 1, 3)),
        ([8, 32], 4, Swizzle(2, 3, 3)),
        ([8, 128], 1, Swizzle(4, 3, 3)),
    ],
)
def test_swizzle_of_a_row_is_as_wide_as_the_row_divides(shape, nbytes, swizzle):
    assert shared_row_major_swizzle(shape, nbytes).optional_swizzle == swizzle


def test_tiles_of_a_swizzled_tensor_are_swizzled_tiles():
    stages = shared_row_major_swizzle([3, 16, 32], 2)
    tile = shared_row_major_swizzle([16, 32], 2)
    assert stages.slice([1, 2]) == tile
    assert tile.prepend_dim(3) == stages
    assert stages.linear(1, 0, 0) % tile.count_size() == 0


# ---------------------------------------------------------------- text


@few
@given(shared_layouts())
def test_text_reads_back_as_the_same_layout(layout):
    assert parse_layout(str(layout)) == layout
    assert str(parse_layout(str(layout))) == str(layout)


@few
@given(shared_layouts())
def test_text_is_an_expression_of_the_public_constructors(layout):
    assert eval(str(layout), {name: getattr(ops, name) for name in ops.__all__}) == layout


@pytest.mark.parametrize(
    "text",
    [
        "shared_row_major()",
        "shared_row_major(4)",
        "shared_row_major(3, 64, 32)",
        "shared_column_major(64, 32)",
        "shared_row_major_swizzle([64, 32], 2)",
        "shared_row_major_swizzle([2, 64, 96], 4)",
        "shared_row_major_swizzle([64, 32], 2).transpose()",
        "shared_layout(shape=[4], mode_shape=[2, 2], mode_strides=[1, 2])",
        "shared_layout(shape=[8, 24], mode_shape=[8, 3, 8], mode_strides=[8, 64, 1])",
        "shared_row_major(64).apply_swizzle(Swizzle(base=3, bits=3, shift=3))",
        "shared_column_major(64, 8).apply_swizzle(Swizzle(base=0, bits=2, shift=6))",
        "shared_layout(shape=[8], mode_shape=[2, 4], mode_strides=[5, 1], swizzle=Swizzle(base=1, bits=1, shift=1))",
    ],
)
def test_text_a_person_would_write_is_kept(text):
    assert str(parse_layout(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("shared_row_major(4).spatial(2)", "no layout constructor 'spatial'"),
        ("spatial(4).transpose()", "no layout constructor 'transpose'"),
        ("shared_row_major(4).transpose()", "cannot transpose shape [4]"),
        ("shared_row_major(0)", "shape [0] must have positive extents"),
        ("shared_row_major(4).apply_swizzle(2)", "not a layout: shared_row_major(4).apply_swizzle(2)"),
        ("spatial(4).apply_swizzle(Swizzle(3, 3, 3))", "no layout constructor 'apply_swizzle'"),
        ("Swizzle(3, 3, 3)", "no layout constructor 'Swizzle'"),
        ("shared_layout([4], [4], [1], Swizzle(3, 3, 1))", "reads bits that it writes"),
        ("shared_layout([4], [4], [1], Other(3))", "not a layout: shared_layout([4], [4], [1], Other(3))"),
        ("shared_layout([4], [4])", "missing 1 required positional argument: 'mode_strides'"),
    ],
)
def test_text_that_is_no_layout_is_refused(text, message):
    with pytest.raises(LayoutOperationError, match=re.escape(message)):
        parse_layout(text)


def test_layout_of_the_other_kind_is_refused():
    registers, shared = (ast.parse(text, mode="eval").body for text in ("spatial(4)", "shared_row_major(4)"))
    assert register_layout_from_ast(registers) == spatial(4)
    assert shared_layout_from_ast(shared) == shared_row_major(4)
    with pytest.raises(LayoutOperationError, match="is the layout of a shared tensor"):
        register_layout_from_ast(shared)
    with pytest.raises(LayoutOperationError, match="is the layout of a register tensor"):
        shared_layout_from_ast(registers)


def test_grid_shows_the_offset_of_each_element():
    assert shared_column_major(2, 3).visualize().splitlines() == ["   0  1  2", "0  0  2  4", "1  1  3  5"]


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SharedLayout((6,), (4,), (1,)), "mode_shape [4] does not factorize shape [6]"),
        (lambda: SharedLayout((6,), (2, 3), (1,)), "mode_strides [1] must have an entry for each mode of [2, 3]"),
        (lambda: SharedLayout((6,), (6,), (-1,)), "mode_strides [-1] must not be negative"),
        (lambda: SharedLayout((6.0,), (6,), (1,)), "shape must be compile-time integers, got [6.0]"),
        (lambda: shared_row_major(4, 0), "shape [4, 0] must have positive extents"),
        (lambda: shared_row_major_swizzle([12, 64], 2), "the rows must be a multiple of 8, each of them a multiple of"),
        (lambda: shared_row_major_swizzle([8, 12], 2), "cannot swizzle shape [8, 12] of 2-byte elements"),
        (lambda: shared_row_major_swizzle([64], 2), "cannot swizzle shape [64]"),
        (lambda: shared_row_major_swizzle([8, 64], 3), "elements of 3 bytes cannot be swizzled"),
        (lambda: shared_row_major(4).prepend_dim(0), "extent [0] must have positive extents"),
        (lambda: shared_row_major(2, 2, 2).transpose(), "cannot transpose shape [2, 2, 2]"),
        (
            lambda: shared_row_major_swizzle([8, 64], 2).apply_swizzle(Swizzle(3, 3, 3)),
            "shared_row_major_swizzle([8, 64], 2) has a swizzle already",
        ),
    ],
)
def test_wrong_layouts_are_refused(make, message):
    with pytest.raises(LayoutOperationError, match=re.escape(message)):
        make()


def test_index_of_another_rank_is_refused():
    with pytest.raises(IndexError, match=re.escape("index [1] is not inside shape [2, 2]")):
        shared_row_major(2, 2)(1)
