# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.layout.strategies import broadcasts, extents, indices, layouts
from tilekit.ir.layout import mfunction
from tilekit.ir.layout.mfunction import LayoutOperationError, multi_function

few = settings(max_examples=60, deadline=None)


def graph(function):
    return {index: function(index) for index in indices(function.shape)}


def functions(shape=None):
    return layouts(shape).map(
        lambda layout: mfunction.MultiFunction(layout.shape, layout.mode_shape, layout.spatial_modes)
    )


@few
@given(layouts())
def test_function_of_a_layout_says_who_holds_an_element(layout):
    function = layout.spatial_mfunction()
    assert graph(function) == {index: frozenset(layout.get_spatial(index)) for index in indices(layout.shape)}
    assert function.codomain == layout.spatial_size


@few
@given(functions())
def test_canonical_form_is_the_same_function(function):
    plain = mfunction.canonicalize(function)
    assert graph(plain) == graph(function)
    assert plain == function
    assert hash(plain) == hash(function)
    assert mfunction.canonicalize(plain).modes == plain.modes


def test_canonical_form_fuses_named_and_unnamed_modes():
    plain = multi_function([24, 12], [2, 3, 4, 3, 4], [0, 1, 2])
    assert (plain.mode_shape, plain.modes) == ((24, 12), (0,))
    plain = multi_function([2, 3], [2, 1, 3], [-2, 0, -1, 2])
    assert (plain.mode_shape, plain.modes) == ((2, 3), (-2, 0, 1))


@few
@given(st.data())
def test_collapsed_function_is_the_union(data):
    function = data.draw(functions())
    shape = data.draw(broadcasts(function.shape))
    leading = len(function.shape) - len(shape)
    union = {}
    for index in indices(function.shape):
        kept = tuple(0 if extent == 1 else i for i, extent in zip(index[leading:], shape, strict=True))
        union[kept] = union.get(kept, frozenset()) | function(index)
    assert graph(function.collapse_by_shape(shape)) == union


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_cover_is_containment_for_every_index(data):
    shape = data.draw(extents(max_size=24))
    one, other = data.draw(functions(shape)), data.draw(functions(shape))
    assert one.cover(other) == all(one(index) >= other(index) for index in indices(shape))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_functions_with_more_freedom_cover(data):
    layout = data.draw(layouts())
    function = layout.spatial_mfunction()
    freed = [
        -layout.mode_shape[mode] if mode >= 0 and data.draw(st.booleans()) else mode for mode in layout.spatial_modes
    ]
    wider = multi_function(layout.shape, layout.mode_shape, freed)
    assert wider.cover(function)
    assert function.cover(wider) == (wider == function)


@few
@given(st.data())
def test_composed_function_is_the_union_of_the_images(data):
    first = data.draw(functions())
    then = data.draw(functions((first.codomain,)))
    try:
        both = first * then
    except LayoutOperationError as error:
        assert "cuts through the modes" in str(error)
        return
    expected = {
        index: frozenset(number for between in image for number in then((between,)))
        for index, image in graph(first).items()
    }
    assert graph(both) == expected


@few
@given(functions())
def test_identity_changes_no_function(function):
    assert function * mfunction.identity(function.codomain) == function


def test_functions_of_other_shapes_are_not_compared():
    with pytest.raises(LayoutOperationError, match="cannot compare functions"):
        mfunction.identity(2).cover(mfunction.identity(3))
    with pytest.raises(LayoutOperationError, match="the first function gives 2 numbers, the next takes"):
        _ = mfunction.identity(2) * mfunction.identity(3)
