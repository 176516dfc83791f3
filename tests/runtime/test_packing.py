# SPDX-License-Identifier: Apache-2.0
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilekit import dtypes
from tilekit.diag import ArgumentError
from tilekit.runtime.manifest import Param
from tilekit.runtime.packing import SLOT, Packer, scalar_bytes

SCALARS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float8_e4m3", "float8_e5m2", "float16", "bfloat16", "float32", "float64"]


def packed(types: list[str], *arguments: Any) -> bytes:
    packer = Packer("k", [Param(f"p{i}", text) for i, text in enumerate(types)])
    buffer = bytearray(packer.size)
    packer.pack_into(buffer, arguments)
    return bytes(buffer)


@given(st.integers(0, 2**64 - 1), st.floats(), st.integers(-(2**31), 2**31 - 1))
def test_every_argument_has_a_slot_of_its_own(address: int, ratio: float, count: int) -> None:
    buffer = packed(["~float32", "float64", "int32"], address, ratio, count)
    assert int.from_bytes(buffer[:8], "little") == address
    assert np.frombuffer(buffer, "f8", 1, SLOT).tobytes() == np.float64(ratio).tobytes()
    assert np.frombuffer(buffer, "i4", 1, 2 * SLOT)[0] == count
    assert Packer("k", [Param("a", "int8")] * 3).offsets == (0, SLOT, 2 * SLOT)


@pytest.mark.parametrize("name", SCALARS)
def test_an_integer_type_holds_exactly_its_range(name: str) -> None:
    dtype, param = dtypes.parse(name), Param("n", name)
    for value in (dtype.min_value, dtype.max_value):
        assert scalar_bytes("k", param, value) == np.array(value, dtypes.numpy_dtype(dtype)).tobytes()
    if name == "bool":
        return
    for value in (dtype.min_value - 1, dtype.max_value + 1):
        with pytest.raises(ArgumentError) as caught:
            packed([name], value)
        assert caught.value.message == (
            f"k: p0 = {value} does not fit {name}, which holds {dtype.min_value} to {dtype.max_value}"
        )


@pytest.mark.parametrize("name", FLOATS)
@given(value=st.floats(-400, 400))
def test_a_float_is_rounded_as_its_type_rounds(name: str, value: float) -> None:
    dtype = dtypes.parse(name)
    expected = np.array(dtypes.convert(value, dtype), dtypes.numpy_dtype(dtype)).tobytes()
    assert scalar_bytes("k", Param("a", name), value) == expected
    assert packed([name], value)[: dtype.nbytes] == expected


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
def test_infinity_passes_and_a_number_past_the_largest_does_not(name: str) -> None:
    dtype = dtypes.parse(name)
    assert np.isinf(np.frombuffer(scalar_bytes("k", Param("a", name), math.inf), dtypes.numpy_dtype(dtype))[0])
    with pytest.raises(ArgumentError, match=f"does not fit {name}"):
        packed([name], 1e200)


def test_numpy_numbers_are_numbers() -> None:
    assert packed(["int32", "float32"], np.int64(-5), np.float64(0.5)) == packed(["int32", "float32"], -5, 0.5)


@pytest.mark.parametrize(
    ("types", "arguments", "message"),
    [
        (["int32", "float32"], (1, "a"), "k: p1 = 'a' is of type str, and p1 is of type float32"),
        (["int32"], (1.5,), "k: p0 = 1.5 is no whole number, and p0 is of type int32"),
        (["int32", "int32"], (1,), "k takes 2 arguments, and 1 were given"),
        (["~float16"], (None,), "k: p0 = None is of type NoneType, and p0 is of type ~float16"),
        (["bfloat16"], ("a",), "k: p0 = 'a' is of type str, and p0 is of type bfloat16"),
    ],
)
def test_a_wrong_argument_is_named(types: list[str], arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        packed(types, *arguments)
    assert caught.value.message == message
