# SPDX-License-Identifier: Apache-2.0
import re

import pytest
from hypothesis import given, settings

from tests.ir.layout.strategies import extents, layouts
from tilekit.ir.layout import ops
from tilekit.ir.layout.ops import LayoutOperationError, local, register_layout, replicated, spatial
from tilekit.ir.layout.parser import parse_layout

few = settings(max_examples=60, deadline=None)


@few
@given(layouts())
def test_text_reads_back_as_the_same_layout(layout):
    assert parse_layout(str(layout)) == layout
    assert str(parse_layout(str(layout))) == str(layout)


@few
@given(layouts())
def test_text_is_an_expression_of_the_public_constructors(layout):
    assert eval(str(layout), {name: getattr(ops, name) for name in ops.__all__}) == layout


@few
@given(extents(max_rank=2), extents(max_rank=2), extents(max_rank=2))
def test_products_of_tilings_print_as_products(a, b, c):
    layout = local(*a).spatial(*b).column_local(*c)
    assert "register_layout" not in str(layout)


@pytest.mark.parametrize(
    "text",
    [
        "local()",
        "replicated(num_workers=4)",
        "local(1, 1)",
        "local(2, 1).spatial(8, 4).local(1, 2)",
        "column_local(2, 2).spatial(8, 4).local(1, 4)",
        "local(2, 1).column_spatial(4, 8).local(2, 1)",
        "local(2).replicated(num_workers=2).spatial(32)",
        "local(4, 1).replicated(num_workers=4)",
        "register_layout(shape=[6], mode_shape=[2, 3], spatial_modes=[1, 0], local_modes=[])",
    ],
)
def test_text_a_person_would_write_is_kept(text):
    assert str(parse_layout(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("local(2", "not a layout: 'local(2'"),
        ("rowmajor(2)", "no layout constructor 'rowmajor' in rowmajor(2)"),
        ("local(n)", "not a layout: local(n)"),
        ("local(2).spatial(0)", "shape [0] must have positive extents"),
        ("spatial(2, 2, ranks=[0])", "ranks [0] must be a permutation"),
        ("spatial(2, rank=[0])", "not a layout: spatial(2, rank=[0])"),
        ("__import__('os')", "no layout constructor '__import__'"),
        ("2 * 3", "not a layout: 2 * 3"),
    ],
)
def test_text_that_is_no_layout_is_refused(text, message):
    with pytest.raises(LayoutOperationError, match=re.escape(message)):
        parse_layout(text)


def test_grid_shows_thread_and_register_of_each_element():
    assert local(2, 1).spatial(1, 3).visualize().splitlines() == [
        "     0    1    2",
        "0  0:0  1:0  2:0",
        "1  0:1  1:1  2:1",
    ]
    assert spatial().visualize().splitlines() == ["     0", "0  0:0"]


def test_grid_shows_some_of_many_replicas():
    assert replicated(1, num_workers=4).visualize().splitlines()[-1] == "0  0,1,2,3:0"
    assert replicated(1, num_workers=8).visualize().splitlines()[-1] == "0  0,1,2,..,7:0"


def test_grid_of_many_dimensions_has_a_title_for_each_plane():
    planes = spatial(2, 1, 1).visualize().split("\n\n")
    assert planes == ["[0, :, :]\n     0\n0  0:0", "[1, :, :]\n     0\n0  1:0"]


@few
@given(layouts())
def test_grid_has_a_cell_for_each_element(layout):
    grid = layout.visualize()
    assert grid.count(":") - 2 * grid.count(":, :") == layout.size


def test_equal_layouts_print_alike():
    plain = register_layout([4], [4], [0], [])
    assert repr(plain) == repr(spatial(2).spatial(2)) == "spatial(4)"
