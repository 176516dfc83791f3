# SPDX-License-Identifier: Apache-2.0
"""What a launch must know of a tensor: where it lies, what it holds, and which bytes it touches.

torch tensors and NumPy arrays are told apart by the module of their type, so neither library is imported for it: who
passes a tensor has imported its library already.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tilekit import dtypes
from tilekit.diag import ArgumentError, LanguageError
from tilekit.dtypes import DataType


class DeviceKind(Enum):
    """Where a tensor lives; a meta tensor has a shape and no data."""

    CPU = "cpu"
    CUDA = "cuda"
    META = "meta"


@dataclass(frozen=True, slots=True)
class Device:
    """One place for tensors; `index` counts the GPUs."""

    kind: DeviceKind
    index: int = 0

    def __str__(self) -> str:
        return f"{self.kind.value}:{self.index}" if self.kind is DeviceKind.CUDA else self.kind.value


CPU = Device(DeviceKind.CPU)
META = Device(DeviceKind.META)


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """A tensor as a kernel sees it; strides count elements, `window` is the range of addresses from first to last byte.

    The window of a tensor with no elements is empty. Of a meta tensor it is counted from address 0.
    """

    pointer: int
    dtype: DataType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    device: Device
    window: tuple[int, int]
    writable: bool = True

    @property
    def nbytes(self) -> int:
        """Bytes in the window: for a contiguous tensor, those of its elements."""
        return self.window[1] - self.window[0]

    @property
    def contiguous(self) -> bool:
        """Whether elements follow one another in row-major order, with no gaps."""
        expected = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent == 0:
                return True
            if extent != 1 and stride != expected:
                return False
            expected *= extent
        return True


class Library(Enum):
    """Whose object an argument is."""

    TORCH = "torch"
    NUMPY = "numpy"


def library_of(argument: object) -> Library | None:
    """Tell a torch tensor and a NumPy array, subclasses included, from everything else."""
    return _library_of_type(type(argument))


def is_tensor(argument: object) -> bool:
    return library_of(argument) is not None


def facts(argument: Any) -> TensorFacts:
    """Look at a torch tensor or a NumPy array; anything else is an ArgumentError."""
    match library_of(argument):
        case Library.TORCH:
            return _torch_facts(argument)
        case Library.NUMPY:
            return _numpy_facts(argument)
        case None:
            raise ArgumentError(
                "TK623", f"a {type(argument).__name__} is no tensor: torch tensors and NumPy arrays are"
            )


_LIBRARIES: dict[type, Library | None] = {}
_TENSOR_TYPES = {("torch", "Tensor"): Library.TORCH, ("numpy", "ndarray"): Library.NUMPY}


def _library_of_type(kind: type) -> Library | None:
    if kind in _LIBRARIES:
        return _LIBRARIES[kind]
    names = ((base.__module__, base.__qualname__) for base in kind.__mro__)
    found = next((_TENSOR_TYPES[name] for name in names if name in _TENSOR_TYPES), None)
    _LIBRARIES[kind] = found
    return found


_TORCH_DTYPES: dict[Any, DataType] = {}
_NUMPY_DTYPES: dict[Any, DataType] = {}


def _torch_facts(tensor: Any) -> TensorFacts:
    if tensor.layout is not _strided():
        raise ArgumentError("TK623", f"a tensor of layout {tensor.layout} has no plain memory: call .to_dense()")
    if tensor.is_neg():
        raise ArgumentError("TK623", "a view that torch negates as it is read holds other numbers: call .resolve_neg()")
    dtype = _TORCH_DTYPES.get(tensor.dtype)
    if dtype is None:
        dtype = _TORCH_DTYPES[tensor.dtype] = _counterpart(dtypes.from_torch, tensor.dtype)
    shape, strides = tuple(tensor.shape), tensor.stride()
    device = _torch_device(tensor.device)
    pointer = 0 if device is META else tensor.data_ptr()
    return TensorFacts(pointer, dtype, shape, strides, device, _window(pointer, dtype.nbytes, shape, strides))


@functools.cache
def _strided() -> Any:
    import torch

    return torch.strided


def _torch_device(device: Any) -> Device:
    match device.type:
        case "cpu":
            return CPU
        case "cuda":
            return Device(DeviceKind.CUDA, device.index or 0)
        case "meta":
            return META
        case other:
            raise ArgumentError("TK623", f"a tensor on {other} cannot be passed: kernels run on cuda and cpu")


def _numpy_facts(array: Any) -> TensorFacts:
    dtype = _NUMPY_DTYPES.get(array.dtype)
    if dtype is None:
        if not array.dtype.isnative:
            raise ArgumentError("TK623", f"an array of type {array.dtype} has its bytes the other way round")
        dtype = _NUMPY_DTYPES[array.dtype] = _counterpart(dtypes.from_numpy, array.dtype)
    size = dtype.nbytes
    if any(stride % size for stride in array.strides):
        raise ArgumentError("TK623", f"an array with steps of {array.strides} bytes has elements of {size}: copy it")
    shape, strides = array.shape, tuple(stride // size for stride in array.strides)
    pointer = array.__array_interface__["data"][0]
    return TensorFacts(
        pointer, dtype, shape, strides, CPU, _window(pointer, size, shape, strides), array.flags.writeable
    )


def _counterpart(convert: Any, theirs: Any) -> DataType:
    try:
        return convert(theirs)
    except LanguageError as error:
        raise ArgumentError("TK623", f"a tensor of type {theirs} cannot be passed: {error.message}") from None


def _window(pointer: int, size: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    low = high = 0
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 0:
            return pointer, pointer
        reach = (extent - 1) * stride
        low, high = (low, high + reach) if reach >= 0 else (low + reach, high)
    return pointer + low * size, pointer + (high + 1) * size
