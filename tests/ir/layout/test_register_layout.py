# SPDX-License-Identifier: Apache-2.0
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.layout.strategies import extents, indices, layouts, places
from tilekit.ir.layout.ops import (
    canonicalize,
    column_local,
    column_spatial,
    compose,
    divide,
    left_divide,
    local,
    register_layout,
    replicated,
    spatial,
)
from tilekit.ir.layout.register_layout import LayoutOperationError, RegisterLayout

few = settings(max_examples=40, deadline=None)


@few
@given(layouts())
def test_every_element_is_in_the_registers_that_its_index_names(layout):
    assert layout.spatial_size * layout.local_size == layout.size * layout.num_replicas
    holders = {}
    for (thread, register), index in places(layout).items():
        holders.setdefault(index, []).append(thread)
        assert layout.get_local(index) == register
    assert set(holders) == set(indices(layout.shape))
    for index, threads in holders.items():
        assert layout.get_spatial(index) == threads
        assert len(threads) == layout.num_replicas


@few
@given(layouts())
def test_canonical_form_places_every_element_alike_and_is_final(layout):
    plain = canonicalize(layout)
    assert places(plain) == places(layout)
    assert plain == layout
    assert hash(plain) == hash(layout)
    assert canonicalize(plain) is plain
    assert 1 not in plain.mode_shape
    assert -1 not in plain.spatial_modes


@few
@given(st.data())
def test_layouts_are_equal_exactly_if_they_place_every_element_alike(data):
    shape = data.draw(extents(max_size=12))
    one, other = data.draw(layouts(shape)), data.draw(layouts(shape))
    assert (one == other) == (places(one) == places(other))


@few
@given(layouts(max_replicas=2), layouts(max_replicas=2))
def test_product_makes_outer_indices_the_high_parts(outer, inner):
    product = outer * inner
    rank = max(len(outer.shape), len(inner.shape))
    assert product.spatial_size == outer.spatial_size * inner.spatial_size
    assert product.local_size == outer.local_size * inner.local_size
    low = (1,) * (rank - len(inner.shape)) + inner.shape
    # One thread and one register of each tell a wrong weight apart; all of them are too many.
    for outer_thread in {0, outer.spatial_size // 2, outer.spatial_size - 1}:
        for outer_register in {0, outer.local_size // 2, outer.local_size - 1}:
            high = outer.get_global(local_index=outer_register, spatial_index=outer_thread)
            high = (0,) * (rank - len(high)) + high
            for (thread, register), index in places(inner).items():
                index = (0,) * (rank - len(index)) + index
                expected = tuple(h * n + i for h, n, i in zip(high, low, index, strict=True))
                found = product.get_global(
                    local_index=outer_register * inner.local_size + register,
                    spatial_index=outer_thread * inner.spatial_size + thread,
                )
                assert found == expected


@few
@given(layouts(), layouts(), layouts())
def test_product_is_associative(a, b, c):
    assert (a * b) * c == a * (b * c)


@few
@given(layouts())
def test_unit_layout_changes_no_product(layout):
    assert spatial() == local() == replicated(num_workers=1)
    assert layout * spatial() == layout == spatial() * layout


def padded(layout, rank):
    ones = (1,) * (rank - len(layout.shape))
    return RegisterLayout(ones + layout.shape, layout.mode_shape, layout.spatial_modes, layout.local_modes)


@few
@given(layouts(), layouts())
def test_division_undoes_the_product_from_both_sides(outer, inner):
    rank = max(len(outer.shape), len(inner.shape))
    product = outer * inner
    assert divide(product, inner) == padded(outer, rank) == product / inner
    assert left_divide(product, outer) == padded(inner, rank)


@few
@given(st.data())
def test_quotient_times_divisor_is_the_dividend_or_there_is_an_error(data):
    layout, other = data.draw(layouts()), data.draw(layouts())
    for quotient_of, product_of in (
        (divide, lambda quotient: quotient * other),
        (left_divide, lambda quotient: other * quotient),
    ):
        try:
            quotient = quotient_of(layout, other)
        except LayoutOperationError:
            continue
        assert product_of(quotient) == layout


@pytest.mark.parametrize(
    ("layout", "inner", "quotient"),
    [
        (spatial(4, 8), spatial(2, 8), spatial(2, 1)),
        (spatial(4, 8).local(2, 1), local(2, 1), spatial(4, 8)),
        (local(6), local(2), local(3)),
        (replicated(4, num_workers=6), replicated(num_workers=2) * local(2), replicated(2, num_workers=3)),
        (replicated(4, num_workers=6), replicated(num_workers=4), None),
        (replicated(4, num_workers=6), replicated(2, num_workers=2), replicated(2, num_workers=3)),
        (spatial(2, 8), spatial(2, 2), None),
        (spatial(6), local(2), None),
        (register_layout([6], [3, 2], [1, 0], []), spatial(3), None),
        (spatial(8).local(2), spatial(2).local(2), spatial(4)),
        (local(2, 1).spatial(8, 4).local(1, 2), spatial(8, 4).local(1, 2), local(2, 1)),
    ],
)
def test_quotients_that_exist_and_that_do_not(layout, inner, quotient):
    if quotient is not None:
        assert layout / inner == quotient
        return
    with pytest.raises(LayoutOperationError, match=re.escape(f"cannot divide {layout} by ")):
        divide(layout, inner)


def test_left_quotient_splits_a_mode():
    assert left_divide(spatial(2, 12).local(2, 3), spatial(2, 3).local(2, 1)) == spatial(1, 4).local(1, 3)
    with pytest.raises(LayoutOperationError, match="its thread number do not begin with those of the divisor"):
        left_divide(spatial(4, 4), spatial(1, 4))


def test_constructors_order_their_dimensions():
    assert [spatial(2, 3).get_spatial((i, j)) for i, j in indices((2, 3))] == [[0], [1], [2], [3], [4], [5]]
    assert [column_spatial(2, 3).get_spatial((i, j)) for i, j in indices((2, 3))] == [[0], [2], [4], [1], [3], [5]]
    assert [local(2, 3).get_local((i, j)) for i, j in indices((2, 3))] == [0, 1, 2, 3, 4, 5]
    assert [column_local(2, 3).get_local((i, j)) for i, j in indices((2, 3))] == [0, 2, 4, 1, 3, 5]
    assert spatial(2, 3, 4, ranks=[1, 2, 0]).get_spatial((1, 0, 2)) == [2 * 6 + 1 * 3 + 0]
    assert local(2, 3, 4, ranks=[1, 2, 0]).get_local((1, 0, 2)) == 2 * 6 + 1 * 3 + 0
    assert replicated(2, 2, num_workers=3).get_spatial((1, 1)) == [0, 1, 2]


@few
@given(extents())
def test_column_major_layouts_are_row_major_ones_of_the_reversed_shape(shape):
    for index in indices(shape):
        assert column_spatial(*shape).get_spatial(index) == spatial(*shape[::-1]).get_spatial(index[::-1])
        assert column_local(*shape).get_local(index) == local(*shape[::-1]).get_local(index[::-1])


def test_chained_calls_are_products():
    chain = local(2, 1).column_spatial(4, 8).column_local(2, 2).replicated(num_workers=2).spatial(1, 2)
    factors = [local(2, 1), column_spatial(4, 8), column_local(2, 2), replicated(num_workers=2), spatial(1, 2)]
    product = spatial(1, 1)
    for factor in factors:
        product = compose(product, factor)
    assert chain == product
    assert (chain.spatial_size, chain.local_size, chain.num_replicas) == (128, 8, 2)


def test_facts_of_a_layout_that_has_them_all():
    layout = RegisterLayout(shape=(4, 1, 6), mode_shape=(2, 2, 1, 6), spatial_modes=(1, -2, 3, -4), local_modes=(0, 2))
    assert layout.size == 24
    assert (layout.spatial_size, layout.local_size, layout.num_replicas) == (96, 2, 8)
    assert layout.is_replicated
    assert not spatial(4).is_replicated
    assert layout.grouped_modes == ((0, 1), (), (2, 3))
    assert math.prod(layout.shape) * layout.num_replicas == layout.spatial_size * layout.local_size


@pytest.mark.parametrize(
    ("shape", "mode_shape", "spatial_modes", "local_modes", "message"),
    [
        ((0,), (), (), (), "shape [0] must have positive extents"),
        ((2,), (2, 0), (0, 1), (), "mode_shape [2, 0] must have positive extents"),
        ((6,), (4,), (0,), (), "mode_shape [4] does not factorize shape [6]"),
        ((6,), (2,), (0,), (), "no run of modes has the product 6 of dimension 0"),
        ((2,), (2, 3), (0, 1), (), "mode_shape [2, 3] has more elements than shape [2]"),
        ((4,), (2, 2), (0,), (), "each of the 2 modes must be in one of spatial_modes [0] and local_modes []"),
        ((4,), (2, 2), (0, 1), (1,), "each of the 2 modes must be in one of"),
        ((4,), (2, 2), (0, 0), (1,), "spatial_modes [0, 0] name a mode twice"),
        ((4,), (2, 2), (0,), (2,), "local_modes [2] name mode 2, but there are 2 modes"),
        ((4,), (4,), (), (0, -2), "local_modes [0, -2] cannot replicate"),
        ((4.0,), (4,), (), (0,), "shape must be compile-time integers, got [4.0]"),
    ],
)
def test_wrong_modes_are_refused(shape, mode_shape, spatial_modes, local_modes, message):
    with pytest.raises(LayoutOperationError, match=re.escape(message)):
        RegisterLayout(shape, mode_shape, spatial_modes, local_modes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: spatial(2, 3, ranks=[0, 0]), "ranks [0, 0] must be a permutation of the dimensions [0, 1]"),
        (lambda: local(0, 3), "shape [0, 3] must have positive extents"),
        (lambda: replicated(4, num_workers=0), "num_workers [0] must have positive extents"),
        (lambda: divide(spatial(4), spatial(2, 2)), "spatial(2, 2) has rank 2, more than the other layout's 1"),
        (lambda: divide(spatial(4), spatial(3)), "shape [4] is not a multiple of shape [3]"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(LayoutOperationError, match=re.escape(message)):
        make()


def test_indices_outside_are_refused():
    layout = spatial(4).local(2)
    with pytest.raises(IndexError, match="no register 2 of thread 0: 2 registers in each of 4 threads"):
        layout.get_global(local_index=2, spatial_index=0)
    with pytest.raises(IndexError, match=re.escape("index [8] is not inside shape [8]")):
        layout.get_local((8,))
    with pytest.raises(IndexError, match=re.escape("index [0, 0] is not inside shape [8]")):
        layout.get_spatial((0, 0))
