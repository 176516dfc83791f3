# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilekit.diag import suggest

METHODS = ["load_global", "store_global", "load_shared", "register_tensor", "sync", "exp", "exp2", "max", "min"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("load_globl", "load_global"),
        ("laod_global", "load_global"),
        ("Load_Global", "load_global"),
        ("stor_global", "store_global"),
        ("regiter_tensor", "register_tensor"),
        ("snyc", "sync"),
        ("frobnicate", None),
        ("x", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_meant(typed, meant):
    assert suggest(typed, METHODS) == meant


@given(st.sampled_from(METHODS))
def test_a_known_name_is_nearest_to_itself(name):
    assert suggest(name, METHODS) == name


@given(st.sampled_from([name for name in METHODS if len(name) >= 6]), st.data())
def test_one_slip_is_forgiven(name, data):
    position = data.draw(st.integers(0, len(name) - 1))
    letter = data.draw(st.sampled_from("abcdefghijklmnopqrstuvwxyz_"))
    for slip in (
        name[:position] + name[position + 1 :],
        name[:position] + letter + name[position:],
        name[:position] + letter + name[position + 1 :],
    ):
        assert suggest(slip, METHODS) == name


def test_of_two_equally_near_the_order_given_does_not_matter():
    assert suggest("mxn", ["min", "man"]) == suggest("mxn", ["man", "min"]) == "man"
