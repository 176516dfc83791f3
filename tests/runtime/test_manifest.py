# SPDX-License-Identifier: Apache-2.0
import json
import random
from dataclasses import replace
from typing import Any

import pytest

from tilekit import dtypes
from tilekit.diag import ArgumentError, CacheError, LaunchError
from tilekit.runtime.manifest import Manifest, Param

SOFTMAX = Manifest(
    kernel="softmax",
    params=(
        Param("m", "int32"),
        Param("n", "int64"),
        Param("x", "~float16", written=False, read=True),
        Param("y", "~float16", written=True, read=False),
        Param("p", "void_p", written=True),
    ),
    grid=("(m + 3) // 4", "n // 2", "1"),
    block=128,
    shared_bytes=512,
    target="sm_90a",
)


def test_a_manifest_survives_json() -> None:
    again = Manifest.from_json(SOFTMAX.to_json())
    assert again == SOFTMAX
    assert again.to_json() == SOFTMAX.to_json()


def test_types_are_read_from_their_text() -> None:
    assert SOFTMAX.params[1].dtype is dtypes.int64
    assert SOFTMAX.params[2].dtype == ~dtypes.float16
    assert [param.is_pointer for param in SOFTMAX.params] == [False, False, True, True, True]


def test_the_grid_is_a_function_of_the_integers_wherever_they_stand() -> None:
    m, n = random.randint(1, 10_000), random.randint(2, 1000)
    assert SOFTMAX.extents([m, n, None, None, None]) == (-(-m // 4), n // 2, 1)
    moved = replace(SOFTMAX, params=(SOFTMAX.params[3], SOFTMAX.params[1], SOFTMAX.params[2], SOFTMAX.params[0]))
    assert moved.extents([None, n, None, m]) == (-(-m // 4), n // 2, 1)


def test_numpy_scalars_count_like_integers() -> None:
    import numpy as np

    extents = SOFTMAX.extents([np.int32(2**31 - 1), np.int64(4), None, None, None])
    assert extents == (2**29, 2, 1), "and do not overflow"
    assert {type(extent) for extent in extents} == {int}


@pytest.mark.parametrize("name", ["x", "eps"])
def test_a_pointer_or_a_float_is_no_number_for_the_grid(name: str) -> None:
    params = (*SOFTMAX.params, Param("eps", "float32"))
    assert replace(SOFTMAX, params=params).extents([4, 2, None, None, None, 1e-5]) == (1, 1, 1)
    with pytest.raises(LaunchError, match=f"uses {name}, which is no integer parameter"):
        replace(SOFTMAX, params=params, grid=(name, "1", "1")).extents([4, 2, None, None, None, 1e-5])


def test_an_extent_that_is_no_whole_number_is_a_sentence() -> None:
    with pytest.raises(ArgumentError) as caught:
        SOFTMAX.extents([4, 2.5, None, None, None])
    assert caught.value.message == "softmax: n = 2.5 is no whole number, and it is of type int64"


def test_division_by_zero_is_a_sentence() -> None:
    with pytest.raises(LaunchError) as caught:
        replace(SOFTMAX, grid=("m // n", "1", "1")).extents([3, 0, None, None, None])
    assert caught.value.message == "softmax: the grid divides by zero for m = 3, n = 0"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kernel", "soft max"),
        ("kernel", None),
        ("params", None),
        ("params", [{"name": "m"}]),
        ("params", [{"name": "m", "type": "int33", "written": False, "read": True}]),
        ("params", [{"name": "m", "type": "int32", "written": 0, "read": True}]),
        ("params", [{"name": "if", "type": "int32", "written": False, "read": True}]),
        ("params", [{"name": "m", "type": "int32", "written": False, "read": True}] * 2),
        ("grid", ["1", "1"]),
        ("grid", [1, 1, 1]),
        ("grid", ["print()", "1", "1"]),
        ("block", 0),
        ("block", True),
        ("block", "128"),
        ("shared_bytes", -1),
        ("target", 90),
    ],
)
def test_a_damaged_manifest_is_a_sentence(key: str, value: Any) -> None:
    data = json.loads(SOFTMAX.to_json())
    data[key] = value
    with pytest.raises(CacheError, match="the manifest cannot be used"):
        Manifest.from_json(json.dumps(data))


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "[" * 100_000])
def test_what_is_no_manifest_is_a_sentence(text: str) -> None:
    with pytest.raises(CacheError, match="the manifest cannot be used"):
        Manifest.from_json(text)
