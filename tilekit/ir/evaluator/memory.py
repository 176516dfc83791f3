# SPDX-License-Identifier: Apache-2.0
"""Global memory as a kernel sees it: windows of bytes at their true addresses, so that arguments alias as they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.machine import Array, Mask

Bytes: TypeAlias = "NDArray[np.uint8]"


@dataclass(frozen=True, eq=False)
class Memory:
    """Bytes that a pointer argument points to, and which of them were ever written.

    Slices of one `Memory` share its bytes: `Memory.empty(64)` and `whole[16:]` overlap as they would on a GPU.
    """

    buffer: Bytes
    written: Mask

    @staticmethod
    def empty(nbytes: int) -> Memory:
        """Memory that nobody has written."""
        return Memory(np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.bool_))

    @staticmethod
    def of(array: Array) -> Memory:
        """The memory of a contiguous array, all of it written."""
        buffer = _bytes_of(array)
        return Memory(buffer, np.ones(buffer.size, np.bool_))

    def __getitem__(self, part: slice) -> Memory:
        return Memory(self.buffer[part], self.written[part])


@dataclass(frozen=True, eq=False)
class Window:
    """The memory of one pointer parameter."""

    name: str
    buffer: Bytes
    written: Mask | None  # None: all of it, for ever

    @property
    def address(self) -> int:
        return self.buffer.__array_interface__["data"][0]

    def elements(self, address: int, dtype: DataType) -> Elements:
        """The memory as elements of `dtype`, of which one lies at `address`, inside or not."""
        size = dtype.nbytes
        phase, count = (address - self.address) % size, 0
        count = max(self.buffer.size - phase, 0) // size
        inside = slice(phase, phase + count * size)
        written = None if self.written is None else self.written[inside].reshape(count, size)
        return Elements(dtype, self.buffer[inside].reshape(count, size), written, (address - self.address) // size)


@dataclass(frozen=True, eq=False)
class Elements:
    """A window cut into elements; `origin` is the number of the one that offset 0 means."""

    dtype: DataType
    cells: Bytes  # (element, byte)
    written: Mask | None  # (element, byte)
    origin: int

    def inside(self, offsets: NDArray[np.int64]) -> Mask:
        return (offsets >= -self.origin) & (offsets < len(self.cells) - self.origin)

    def load(self, offsets: NDArray[np.int64]) -> tuple[Array, Mask]:
        """The elements at `offsets`, all inside, and which of them were ever written."""
        where = offsets + self.origin
        defined = np.ones(where.shape, np.bool_)
        if self.written is not None:
            defined &= np.all(self.written[where], axis=-1)
        return from_bytes(self.cells[where], self.dtype), defined

    def store(self, offsets: NDArray[np.int64], data: Array) -> None:
        where = offsets + self.origin
        self.cells[where] = to_bytes(data, self.dtype)
        if self.written is not None:
            self.written[where] = True


def from_bytes(cells: Bytes, dtype: DataType) -> Array:
    """Elements from their bytes, which are along the last axis."""
    if dtype.is_boolean():
        return cells[..., 0] != 0
    return np.ascontiguousarray(cells).view(dtypes.numpy_dtype(dtype))[..., 0]


def to_bytes(data: Array, dtype: DataType) -> Bytes:
    flat = np.ascontiguousarray(data, dtype=dtypes.numpy_dtype(dtype))
    return flat.reshape(*data.shape, 1).view(np.uint8)


def window_of(name: str, type_: PointerType, argument: object) -> Window:
    """The memory that the argument of a pointer parameter stands for."""
    if isinstance(argument, Memory):
        return Window(name, argument.buffer, argument.written)
    if not isinstance(argument, np.ndarray):
        raise errors.ArgumentError(
            "TK622", f"{name} is a pointer and takes a NumPy array or a Memory, got a {type(argument).__name__}"
        )
    array = cast("Array", argument)
    if isinstance(type_.base, DataType) and array.dtype != (wanted := dtypes.numpy_dtype(type_.base)):
        raise errors.ArgumentError("TK623", f"{name} is {type_}: it takes an array of {wanted}, got {array.dtype}")
    if not array.flags.c_contiguous:
        raise errors.ArgumentError("TK623", f"{name} is not contiguous", help=f"pass numpy.ascontiguousarray({name})")
    return Window(name, _bytes_of(array), None)


def _bytes_of(array: NDArray[Any]) -> Bytes:
    return array.reshape(-1).view(np.uint8)
