# SPDX-License-Identifier: Apache-2.0
import dataclasses
import math
import types

import numpy as np
import pytest

from tilekit import float16, float32
from tilekit.diag import ArgumentError
from tilekit.jit.script_key import normalize


@dataclasses.dataclass(frozen=True)
class Point:
    x: object


@dataclasses.dataclass(eq=False)
class Named:
    x: object


NAMED = Named([1])
ALIKE = [
    [1, True, 1.0, 1 + 0j, np.int32(1), np.float32(1), "1"],
    [0.0, -0.0, 0, False, np.float32(0.0), np.float32(-0.0)],
    [(1,), (True,), [1], {1}, frozenset({1}), frozenset({True}), {1: 1}, {True: 1}, {1: True}, {"1": 1}],
    [((1,),), ((1.0,),)],
    [Point(1), Point(True), Point(Point(1)), Point(Point(1.0)), Point(-0.0), Point(0.0)],
    [float16, float32, ~float16, int, bool],
]


@pytest.mark.parametrize("values", ALIKE, ids=str)
def test_what_python_calls_equal_may_be_two_scripts(values):
    keys = [normalize(value) for value in values]
    assert len(set(keys)) == len(keys)
    assert keys == [normalize(value) for value in values]


def test_equal_arguments_are_one_script():
    assert normalize(math.nan) == normalize(float("nan"))
    assert normalize({"a": 1, "b": 2}) == normalize(types.MappingProxyType({"b": 2, "a": 1}))
    assert normalize(Point((1, 2))) == normalize(Point((1, 2)))
    assert normalize(NAMED) == normalize(NAMED) != normalize(Named([1]))


def test_an_object_that_says_something_else_is_another_argument():
    options = Named(1)
    before = normalize(options)
    options.x = True
    assert normalize(options) != before
    options.x = 1
    assert normalize(options) == before


def test_what_cannot_be_found_again_is_refused():
    for value in (np.zeros(3), [np.zeros(3)], {"a": bytearray(b"x")}):
        with pytest.raises(ArgumentError, match="must be hashable"):
            normalize(value)
