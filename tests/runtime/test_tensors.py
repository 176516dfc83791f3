# SPDX-License-Identifier: Apache-2.0
import random
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from tilekit import dtypes
from tilekit.diag import ArgumentError
from tilekit.runtime.tensors import CPU, META, Device, DeviceKind, facts, is_tensor

TORCH = {
    torch.bool: dtypes.boolean,
    torch.int8: dtypes.int8,
    torch.uint8: dtypes.uint8,
    torch.int32: dtypes.int32,
    torch.int64: dtypes.int64,
    torch.float16: dtypes.float16,
    torch.bfloat16: dtypes.bfloat16,
    torch.float32: dtypes.float32,
    torch.float64: dtypes.float64,
    torch.float8_e4m3fn: dtypes.float8_e4m3,
    torch.float8_e5m2: dtypes.float8_e5m2,
}


@pytest.mark.parametrize(("theirs", "ours"), TORCH.items(), ids=str)
def test_a_torch_tensor_is_seen_as_it_is(theirs: torch.dtype, ours: dtypes.DataType) -> None:
    m, n = random.randint(1, 9), random.randint(2, 9)
    tensor = torch.empty(m, n, dtype=theirs)
    seen = facts(tensor)
    assert (seen.pointer, seen.dtype, seen.shape, seen.strides) == (tensor.data_ptr(), ours, (m, n), (n, 1))
    assert (seen.device, seen.contiguous, seen.writable) == (CPU, True, True)
    assert seen.window == (tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes)


@pytest.mark.parametrize("kind", [np.bool_, np.uint16, np.int64, np.float16, np.float32, ml_dtypes.bfloat16])
def test_an_array_is_seen_as_it_is(kind: Any) -> None:
    m, n = random.randint(1, 9), random.randint(2, 9)
    array = np.zeros((m, n), kind)
    seen = facts(array)
    assert (seen.pointer, seen.shape, seen.strides, seen.device) == (array.ctypes.data, (m, n), (n, 1), CPU)
    assert seen.dtype is dtypes.from_numpy(array.dtype)
    assert seen.window == (array.ctypes.data, array.ctypes.data + array.nbytes)


def test_types_that_look_alike_in_both_libraries_are_one_type() -> None:
    assert facts(np.zeros(1, ml_dtypes.bfloat16)).dtype is facts(torch.zeros(1, dtype=torch.bfloat16)).dtype


VIEWS = {
    "slice": lambda x: x[1:3],
    "columns": lambda x: x[:, 1:3],
    "every other": lambda x: x[::2, ::2],
    "transposed": lambda x: x.T,
    "one element": lambda x: x[2:3, 3:4],
    "one row": lambda x: x[1],
    "scalar": lambda x: x[1, 2],
    "empty": lambda x: x[2:2],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_the_window_of_a_view_holds_its_elements_and_no_more(view: Any) -> None:
    base = np.arange(20, dtype=np.int32).reshape(4, 5)
    array = view(base)
    tensor = view(torch.from_numpy(base))
    seen = facts(tensor)
    if not isinstance(array, np.ndarray):
        array = base[1:2, 2:3].reshape(())
    offsets = [4 * int(value) for value in array.ravel()]  # the values count the elements
    expected = (min(offsets), max(offsets) + 4) if offsets else None
    start = base.ctypes.data
    window = (seen.window[0] - start, seen.window[1] - start) if offsets else None
    assert window == expected
    assert seen.nbytes == (expected[1] - expected[0] if expected else 0)
    if offsets:  # of no elements, torch does not say where they are not
        assert facts(array).window == seen.window
    assert seen.contiguous == facts(array).contiguous == tensor.is_contiguous()


def test_a_reversed_array_starts_below_its_pointer() -> None:
    array = np.arange(6, dtype=np.float64)[::-1]
    seen = facts(array)
    assert seen.strides == (-1,)
    assert seen.window == (seen.pointer - 40, seen.pointer + 8)


def test_an_expanded_tensor_touches_one_element() -> None:
    seen = facts(torch.zeros(1, dtype=torch.float32).expand(7))
    assert seen.nbytes == 4
    assert not seen.contiguous


def test_a_meta_tensor_has_a_shape_and_no_place() -> None:
    seen = facts(torch.empty(3, 4, dtype=torch.float16, device="meta"))
    assert (seen.device, seen.pointer, seen.shape, seen.nbytes) == (META, 0, (3, 4), 24)


def test_a_subclass_is_a_tensor() -> None:
    class Mine(torch.Tensor):
        pass

    class Ours(np.ndarray):
        pass

    assert is_tensor(torch.nn.Parameter(torch.zeros(2)))
    assert facts(torch.zeros(2).as_subclass(Mine)).shape == (2,)
    assert facts(np.zeros(2).view(Ours)).shape == (2,)


@pytest.mark.parametrize(
    "thing", [None, 3, 2.5, "x", [1.0], np.float32(1), memoryview(b"abc")], ids=lambda x: type(x).__name__
)
def test_other_things_are_not(thing: object) -> None:
    assert not is_tensor(thing)
    with pytest.raises(ArgumentError, match=f"a {type(thing).__name__} is no tensor"):
        facts(thing)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (np.zeros(2, ">f4"), "an array of type >f4 has its bytes the other way round"),
        (
            np.zeros(2, "c8"),
            "a tensor of type complex64 cannot be passed: NumPy's type complex64 has no counterpart here",
        ),
        (np.zeros(2, "U3"), "a tensor of type <U3 cannot be passed"),
        (np.zeros(4, [("a", "f4"), ("b", "u1")])["a"], "an array with steps of (5,) bytes has elements of 4: copy it"),
        (torch.zeros(2, dtype=torch.complex64), "a tensor of type torch.complex64 cannot be passed"),
        (torch.eye(2).to_sparse(), "a tensor of layout torch.sparse_coo has no plain memory: call .to_dense()"),
        (
            torch.zeros(2, dtype=torch.complex64).conj().imag,
            "a view that torch negates as it is read holds other numbers",
        ),
    ],
    ids=["byte order", "complex", "text", "packed", "torch complex", "sparse", "negated"],
)
def test_what_no_kernel_can_read_is_a_sentence(tensor: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        facts(tensor)
    assert caught.value.message.startswith(message)


def test_a_read_only_array_says_so() -> None:
    array = np.zeros(3)
    array.setflags(write=False)
    assert not facts(array).writable


def test_a_device_reads_as_torch_writes_it() -> None:
    assert [str(device) for device in (CPU, META, Device(DeviceKind.CUDA, 1))] == ["cpu", "meta", "cuda:1"]


def test_neither_library_is_imported_for_looking() -> None:
    code = (
        "import sys; from tilekit.runtime import tensors\n"
        "assert not tensors.is_tensor(3)\n"
        "print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "False False\n"
