# SPDX-License-Identifier: Apache-2.0
"""Where the elements of a tile lie in shared memory: a stride for each digit of the index, and some bits XORed.

A view of a part of a tile has a layout of its own and a `start`, the offset of its first element before the swizzle;
the swizzle acts on the sum. So a slice keeps the swizzle of the tile, also where its own offsets never reach the bits
that the swizzle reads.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilekit.ir.layout import digits, shapes, text
from tilekit.ir.layout.digits import Digit
from tilekit.ir.layout.shapes import LayoutOperationError

VECTOR_NBYTES = 16
"""What a thread can move at once, and a row of one of the 8x8 matrices of ldmatrix."""
LINE_NBYTES = 128
"""What all banks of shared memory together serve at once."""


@dataclass(frozen=True, slots=True)
class Swizzle:
    """XORs the `bits` bits of an element offset from `base + shift` on into those from `base` on.

    It is its own inverse, moves `2**base` elements as one, and `start + offset` goes to `start + swizzle(offset)`
    exactly for the multiples `start` of its period.
    """

    base: int
    bits: int
    shift: int

    def __post_init__(self) -> None:
        base, bits, shift = shapes.integers("the fields of a swizzle", (self.base, self.bits, self.shift))
        if min(base, bits) < 0 or shift < max(bits, 1):
            raise LayoutOperationError(
                f"{self} reads bits that it writes: base and bits must not be negative, shift must be at least bits"
            )

    @property
    def period(self) -> int:
        return 1 << (self.base + self.bits + self.shift)

    def __call__(self, offset: int) -> int:
        """The element offset after the swizzle; also of an integer array."""
        return offset ^ ((offset >> self.shift) & (((1 << self.bits) - 1) << self.base))


@dataclass(frozen=True, slots=True)
class Mode:
    """A digit of the tensor index, and by how many elements one more of it moves."""

    digit: Digit
    step: int

    def continues(self, high: Mode) -> bool:
        """Whether `high` and this one make a single digit."""
        same = high.digit.dim == self.digit.dim and high.digit.stride == self.digit.end
        return same and high.step == self.step * self.digit.extent


@dataclass(frozen=True, eq=False, repr=False)
class SharedLayout:
    """At which element offset each element of a tile lies.

    `mode_shape` factorizes `shape`, row-major within each dimension; one more of a mode moves by its entry of
    `mode_strides`. The sum is the offset, which `optional_swizzle` then permutes.

    Two layouts are equal, and print alike, when they place every element alike, wherever the tile starts.
    """

    shape: tuple[int, ...]
    mode_shape: tuple[int, ...]
    mode_strides: tuple[int, ...]
    optional_swizzle: Swizzle | None = None

    def __post_init__(self) -> None:
        for what in ("shape", "mode_shape"):
            object.__setattr__(self, what, shapes.extents(what, getattr(self, what)))
        object.__setattr__(self, "mode_strides", shapes.integers("mode_strides", self.mode_strides))
        if len(self.mode_strides) != len(self.mode_shape):
            raise LayoutOperationError(
                f"mode_strides {list(self.mode_strides)} must have an entry for each mode of {list(self.mode_shape)}"
            )
        if any(stride < 0 for stride in self.mode_strides):
            raise LayoutOperationError(f"mode_strides {list(self.mode_strides)} must not be negative")
        object.__setattr__(self, "optional_swizzle", _swizzle_or_none(self.optional_swizzle))
        _ = self.modes

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """The digits of the index, dimension by dimension, most significant first, as few as possible."""
        mode_digits = digits.from_modes(self.shape, self.mode_shape)
        return _merged(map(Mode, mode_digits, self.mode_strides))

    @property
    def size(self) -> int:
        """The number of elements of the tile."""
        return math.prod(self.shape)

    def count_size(self) -> int:
        """The number of elements of memory it spans: whole periods of its swizzle."""
        span = 1 + sum((mode.digit.extent - 1) * mode.step for mode in self.modes)
        period = 1 if self.optional_swizzle is None else self.optional_swizzle.period
        return -(-span // period) * period

    @cached_property
    def is_injective(self) -> bool:
        """Whether no two elements lie at the same offset."""
        return np.unique(self.as_numpy_grid()).size == self.size

    def linear(self, *index: int) -> int:
        """The offset of the element at `index` before the swizzle; also of integer arrays."""
        if len(index) != len(self.shape):
            raise IndexError(f"index {list(index)} is not inside shape {list(self.shape)}")
        places = ((index[m.digit.dim] // m.digit.stride % m.digit.extent, m.step) for m in self.modes)
        return sum(place * step for place, step in places)

    def __call__(self, *index: int, start: int = 0) -> int:
        """The element offset of the element at `index` of a tile that starts at `start`; also of integer arrays."""
        offset = start + self.linear(*index)
        return offset if self.optional_swizzle is None else self.optional_swizzle(offset)

    def byte_offset(self, *index: int, nbytes: int, start: int = 0) -> int:
        """The offset in bytes, for elements of `nbytes`; also of integer arrays."""
        return self(*index, start=start) * nbytes

    def as_numpy_grid(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The element offset of every element."""
        index: Any = np.indices(self.shape, dtype=np.int64)
        return np.zeros(self.shape, dtype=np.int64) + self(*index)

    def slice(self, retain_dims: Sequence[int]) -> SharedLayout:
        return shared_slice(self, retain_dims)

    def permute(self, dims: Sequence[int]) -> SharedLayout:
        return shared_permute(self, dims)

    def transpose(self) -> SharedLayout:
        """The two dimensions exchanged."""
        if len(self.shape) != 2:
            raise LayoutOperationError(f"cannot transpose shape {list(self.shape)}: permute says which dims move where")
        return shared_permute(self, [1, 0])

    def unsqueeze(self, dims: Sequence[int]) -> SharedLayout:
        return shared_unsqueeze(self, dims)

    def prepend_dim(self, extent: int) -> SharedLayout:
        """`extent` such tiles, one after the other, along a new first dimension."""
        (extent,) = shapes.extents("extent", [extent])
        shape = (extent, *self.shape)
        kept = [_moved(mode, mode.digit.dim + 1) for mode in self.modes]
        return from_modes(shape, [Mode(Digit(0, 1, extent), self.count_size()), *kept], self.optional_swizzle)

    def apply_swizzle(self, swizzle: Swizzle) -> SharedLayout:
        """The same offsets, permuted by `swizzle`."""
        if self.optional_swizzle is not None:
            raise LayoutOperationError(f"{self} has a swizzle already")
        return from_modes(self.shape, self.modes, swizzle)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SharedLayout):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[tuple[int, ...], tuple[Mode, ...], Swizzle | None]:
        return self.shape, self.modes, self.optional_swizzle

    def __repr__(self) -> str:
        """An expression of the constructors, which `parser.parse_layout` reads back."""
        named = _named(self)
        if named is not None:
            return named
        if len(self.shape) == 2 and (transposed := _named(self.transpose())) is not None:
            return f"{transposed}.transpose()"
        plain = _named(from_modes(self.shape, self.modes, None))
        if plain is not None:
            return f"{plain}.apply_swizzle({self.optional_swizzle})"
        swizzle = "" if self.optional_swizzle is None else f", swizzle={self.optional_swizzle}"
        return (
            f"shared_layout(shape={list(self.shape)}, mode_shape={[mode.digit.extent for mode in self.modes]}, "
            f"mode_strides={[mode.step for mode in self.modes]}{swizzle})"
        )

    def visualize(self) -> str:
        """A grid of the element offsets."""
        return text.grid(self.shape, lambda index: str(self(*index)))


def shared_layout(
    shape: Sequence[int],
    mode_shape: Sequence[int],
    mode_strides: Sequence[int],
    swizzle: Swizzle | None = None,
) -> SharedLayout:
    """The layout with these modes, in canonical form."""
    given = SharedLayout(tuple(shape), tuple(mode_shape), tuple(mode_strides), swizzle)
    return from_modes(given.shape, given.modes, swizzle)


def from_modes(shape: Sequence[int], modes: Iterable[Mode], swizzle: Swizzle | None) -> SharedLayout:
    """The layout, in canonical form, with these modes, in any order."""
    ordered = sorted(modes, key=lambda mode: (mode.digit.dim, -mode.digit.stride))
    fewest = _merged(ordered)
    return SharedLayout(
        tuple(shape), tuple(mode.digit.extent for mode in fewest), tuple(mode.step for mode in fewest), swizzle
    )


def shared_row_major(*shape: int) -> SharedLayout:
    """The last dimension contiguous, then the one before it, and so on."""
    return _packed(shape, range(len(shape)))


def shared_column_major(*shape: int) -> SharedLayout:
    """The first dimension contiguous, then the one after it, and so on."""
    return _packed(shape, range(len(shape))[::-1])


def shared_pieces(shape: Sequence[int], dtype_nbytes: int) -> SharedLayout:
    """Rows of the last dimension cut in pieces of 128 bytes, or of the part of it that divides a row.

    The pieces at one place of the rows of a matrix lie one below the other.
    """
    *head, rows, columns = shapes.extents("shape", shape)
    piece = max(math.gcd(columns * dtype_nbytes, LINE_NBYTES) // dtype_nbytes, 1)
    above = _packed(head, range(len(head))).modes
    modes = [Mode(mode.digit, mode.step * rows * columns) for mode in above]
    modes.append(Mode(Digit(len(head), 1, rows), piece))
    modes.append(Mode(Digit(len(head) + 1, piece, columns // piece), rows * piece))
    modes.append(Mode(Digit(len(head) + 1, 1, piece), 1))
    return from_modes(shape, modes, None)


def shared_row_major_swizzle(shape: Sequence[int], dtype_nbytes: int) -> SharedLayout:
    """Rows of the last two dimensions whose 16 bytes at one place lie in different banks, eight rows at a time.

    They are cut in pieces as by `shared_pieces`, and the swizzle permutes the 16 bytes of every 128.
    """
    shape = shapes.extents("shape", shape)
    if dtype_nbytes not in (1, 2, 4, 8, 16):
        raise LayoutOperationError(f"elements of {dtype_nbytes} bytes cannot be swizzled: 1, 2, 4, 8 or 16 can")
    if len(shape) < 2 or shape[-2] % 8 != 0 or shape[-1] * dtype_nbytes % VECTOR_NBYTES != 0:
        raise LayoutOperationError(
            f"cannot swizzle shape {list(shape)} of {dtype_nbytes}-byte elements: "
            f"the rows must be a multiple of 8, each of them a multiple of {VECTOR_NBYTES} bytes"
        )
    vectors = math.gcd(shape[-1] * dtype_nbytes, LINE_NBYTES) // VECTOR_NBYTES
    base = (VECTOR_NBYTES // dtype_nbytes).bit_length() - 1
    return shared_pieces(shape, dtype_nbytes).apply_swizzle(Swizzle(base, vectors.bit_length() - 1, 3))


def shared_compose(outer: SharedLayout, inner: SharedLayout) -> SharedLayout:
    """Each element of `outer` becomes a tile laid out as `inner`; a lower rank gets leading dimensions of extent 1.

    The outer index is the high part of each dimension, the outer offset counts tiles of `inner.count_size()` elements.
    """
    rank = max(len(outer.shape), len(inner.shape))
    outer, inner = (shared_unsqueeze(layout, range(rank - len(layout.shape))) for layout in (outer, inner))
    span = inner.count_size()
    high = [
        Mode(mode.digit.moved(lambda dim, stride: (dim, stride * inner.shape[dim])), mode.step * span)
        for mode in outer.modes
    ]
    shape = [a * b for a, b in zip(outer.shape, inner.shape, strict=True)]
    return from_modes(shape, [*high, *inner.modes], _composed_swizzle(outer, inner))


def _composed_swizzle(outer: SharedLayout, inner: SharedLayout) -> Swizzle | None:
    span, swizzle = inner.count_size(), outer.optional_swizzle
    if swizzle is None:
        return inner.optional_swizzle
    if inner.optional_swizzle is not None:
        raise LayoutOperationError(f"cannot compose {outer} with {inner}: both have a swizzle")
    if span & (span - 1) != 0:
        raise LayoutOperationError(
            f"cannot compose {outer} with {inner}: the swizzle of the first cannot move tiles of {span} elements"
        )
    return Swizzle(swizzle.base + span.bit_length() - 1, swizzle.bits, swizzle.shift)


def shared_permute(layout: SharedLayout, dims: Sequence[int]) -> SharedLayout:
    """Dimension `i` of the result is dimension `dims[i]` of `layout`."""
    return shared_slice(layout, shapes.permutation(dims, len(layout.shape)))


def shared_slice(layout: SharedLayout, retain_dims: Sequence[int]) -> SharedLayout:
    """The elements at one index of the other dimensions; dimension `i` of the result is `retain_dims[i]`.

    Where that index is not 0, the tile starts at its offset before the swizzle: see `SharedLayout.linear`.
    """
    dims = shapes.dimensions(retain_dims, len(layout.shape))
    kept = [_moved(mode, dims.index(mode.digit.dim)) for mode in layout.modes if mode.digit.dim in dims]
    return from_modes([layout.shape[dim] for dim in dims], kept, layout.optional_swizzle)


def shared_unsqueeze(layout: SharedLayout, dims: Sequence[int]) -> SharedLayout:
    """The layout with dimensions of extent 1 added, which are `dims` of the result."""
    rank = len(layout.shape) + len(dims)
    dims = shapes.dimensions(dims, rank)
    old = [dim for dim in range(rank) if dim not in dims]
    shape = [1] * rank
    for dim, extent in zip(old, layout.shape, strict=True):
        shape[dim] = extent
    return from_modes(shape, [_moved(mode, old[mode.digit.dim]) for mode in layout.modes], layout.optional_swizzle)


def shared_reshape(layout: SharedLayout, shape: Sequence[int]) -> SharedLayout:
    """The same elements, in row-major order, under another shape."""
    shape = shapes.reshaped(layout, layout.size, shape)
    row_major = [Digit(dim, 1, extent) for dim, extent in enumerate(shape)]
    modes: list[Mode] = []
    for mode in _flat(layout):
        readings = digits.read(row_major, mode.digit.stride, mode.digit.extent)
        if readings is None:
            raise LayoutOperationError(f"cannot reshape {layout} to shape {list(shape)}: it cuts through a mode")
        step = mode.step
        for through, stride, extent in reversed(readings):
            modes.append(Mode(through.part(stride, extent), step))
            step *= extent
    return from_modes(shape, modes, layout.optional_swizzle)


def _flat(layout: SharedLayout) -> tuple[Mode, ...]:
    """The modes of the row-major number of an element, where digits of neighboring dimensions fuse."""
    strides = [math.prod(layout.shape[dim + 1 :]) for dim in range(len(layout.shape))]
    return _merged(
        Mode(mode.digit.moved(lambda dim, stride: (0, stride * strides[dim])), mode.step) for mode in layout.modes
    )


def _packed(shape: Sequence[int], order: Iterable[int]) -> SharedLayout:
    """No gaps, the dimensions in `order`, the slowest first."""
    shape = shapes.extents("shape", shape)
    modes: list[Mode] = []
    step = 1
    for dim in reversed(list(order)):
        modes.append(Mode(Digit(dim, 1, shape[dim]), step))
        step *= shape[dim]
    return from_modes(shape, modes, None)


def _swizzle_or_none(value: object) -> Swizzle | None:
    """`value`, where it is a swizzle that moves something."""
    if not isinstance(value, Swizzle | None):
        raise LayoutOperationError(f"{value!r} is no Swizzle(base, bits, shift)")
    return None if value is None or value.bits == 0 else value


def _merged(modes: Iterable[Mode]) -> tuple[Mode, ...]:
    """The same sum with as few modes as it can be written with."""
    result: list[Mode] = []
    for mode in modes:
        if mode.digit.extent == 1:
            continue
        if result and mode.continues(result[-1]):
            extent = result[-1].digit.extent * mode.digit.extent
            result[-1] = Mode(mode.digit.part(1, extent), mode.step)
        else:
            result.append(mode)
    return tuple(result)


def _moved(mode: Mode, dim: int) -> Mode:
    return Mode(Digit(dim, mode.digit.stride, mode.digit.extent), mode.step)


def _named(layout: SharedLayout) -> str | None:
    """The call of the constructor that makes `layout`, where there is a short one."""
    shape, swizzle = layout.shape, layout.optional_swizzle
    if swizzle is None:
        arguments = ", ".join(map(str, shape))
        if layout == shared_row_major(*shape):
            return f"shared_row_major({arguments})"
        return f"shared_column_major({arguments})" if layout == shared_column_major(*shape) else None
    nbytes = VECTOR_NBYTES >> swizzle.base
    with contextlib.suppress(LayoutOperationError):
        if nbytes > 0 and layout == shared_row_major_swizzle(shape, nbytes):
            return f"shared_row_major_swizzle({list(shape)}, {nbytes})"
    return None
