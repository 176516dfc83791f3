# SPDX-License-Identifier: Apache-2.0
"""What the layout rule of an instruction may ask, and the layouts that several rules propose."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from tilekit import dtypes
from tilekit.dtypes import DataType
from tilekit.ir.layout import ops, shapes
from tilekit.ir.layout.digits import Digit
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shared_layout import Mode, SharedLayout, from_modes
from tilekit.ir.machine import Access
from tilekit.ir.tensor import GlobalTensor, RegisterTensor
from tilekit.lowir.scalar import Expr

# register tensors with register layouts and shared tensors with shared layouts: pairs that `Mapping` cannot tell apart
Layouts: TypeAlias = Mapping[Any, Any]


class LayoutContext(Protocol):
    """The thread group an instruction runs in, and what analysis knows there."""

    @property
    def num_threads(self) -> int: ...

    @property
    def insists(self) -> bool:
        """Whether this instruction's check failed before: it may now ask for layouts on less than it likes to know."""
        ...

    def vector_width(self, tile: RegisterTensor, access: Access) -> tuple[int, int]:
        """The dimension and the number of elements of one access: at most 16 bytes, aligned, the mask constant."""
        ...

    def address_of(self, tensor: GlobalTensor) -> Expr:
        """The pointer that `tensor` is a view of."""
        ...

    def is_loaded(self, tile: RegisterTensor) -> bool:
        """Whether memory is where all elements of `tile` come from, so that no thread computes them."""
        ...

    def divisor(self, expr: Expr) -> int:
        """A number that divides an integer expression; 0 if it is 0."""
        ...

    def because(self, why: str) -> None:
        """Say why the layouts are proposed; without it, to suit those that are known."""
        ...


def spread(shape: Sequence[int], num_threads: int) -> RegisterLayout:
    """The layout of a tile nobody cares about: neighbors in the last dimension to neighboring threads.

    Every shape has one. Threads hold copies where there are more of them than elements, or where the extents do not
    divide their number: 96 elements on 128 threads lie 3 in each thread, in 4 copies.
    """
    return ops.auto_local_spatial(num_threads, shape)


def vectorized(shape: Sequence[int], dim: int, width: int, num_threads: int) -> RegisterLayout:
    """Vectors of `width` elements along `dim` in one thread, neighbors along `dim` to neighboring threads."""
    if width == 1:
        return spread(shape, num_threads)
    rank = len(shape)
    order = [*(d for d in range(rank) if d != dim), dim]
    vectors = [shape[d] // width if d == dim else shape[d] for d in order]
    layout = ops.compose(spread(vectors, num_threads), ops.local(*(width if d == dim else 1 for d in order)))
    return ops.permute(layout, [order.index(d) for d in range(rank)])


def broadcast_to(layout: RegisterLayout, shape: Sequence[int]) -> RegisterLayout:
    """What an operand of `shape` looks like to threads that hold a result in `layout` (NumPy broadcasting)."""
    return ops.reduce_to(layout, shape)


def broadcast_from(layout: RegisterLayout, shape: Sequence[int], dtype: DataType) -> RegisterLayout:
    """A layout of `shape` that finds an operand in `layout` where it needs it; 16 bytes side by side if it can be."""
    leading, stretched = shapes.broadcast(layout.shape, shape)
    last = len(shape) - 1
    if last not in (*range(leading), *stretched):
        return ops.expand(layout, shape)
    per_thread = shape[last] // math.gcd(shape[last], layout.num_replicas)
    width = math.gcd(per_thread, max(128 // dtype.nbits, 1))
    vectors = ops.expand(layout, [*shape[:last], shape[last] // width])
    return ops.compose(vectors, ops.local(*[1] * last, width))


# ---------------------------------------------------------------------------------------------------------------- dots


def dot_operand(dtype: DataType) -> DataType:
    """What a matrix instruction takes operands of a dtype as."""
    return dtypes.tfloat32 if dtype is dtypes.float32 else dtype


# -------------------------------------------------------------------------------------------------------------- shared


def vectors_of(shared: SharedLayout, dtype: DataType, num_threads: int) -> RegisterLayout:
    """The tile that is read from shared memory in the widest vectors that leave no thread idle."""
    beside = [mode for mode in shared.modes if mode.step == 1 and mode.digit.stride == 1]
    if not beside:
        return spread(shared.shape, num_threads)
    swizzle = shared.optional_swizzle
    digit = beside[0].digit
    width = math.gcd(
        digit.extent,
        max(128 // dtype.nbits, 1),
        spread(shared.shape, num_threads).local_size,
        0 if swizzle is None else 1 << swizzle.base,
    )
    return vectorized(shared.shape, digit.dim, width, num_threads)


def part_of(layout: SharedLayout, dims: Sequence[int], shape: Sequence[int]) -> SharedLayout | None:
    """The layout of a slice along `dims`, of `shape`; None where an extent cuts through a digit."""
    whole = ops.shared_slice(layout, dims)
    modes: list[Mode] = []
    for mode in whole.modes:
        extent, digit = shape[mode.digit.dim], mode.digit
        if digit.end <= extent:
            modes.append(mode)
        elif digit.stride < extent:
            if extent % digit.stride != 0:
                return None
            modes.append(Mode(Digit(digit.dim, digit.stride, extent // digit.stride), mode.step))
    return from_modes(shape, modes, layout.optional_swizzle)


def whole_of(part: SharedLayout, dims: Sequence[int], shape: Sequence[int]) -> SharedLayout | None:
    """A layout of `shape` whose slices along `dims` lie as `part` does, one after the other; None if none does."""
    rank = len(shape)
    extents = [1] * rank
    for dim, extent in zip(dims, part.shape, strict=True):
        extents[dim] = extent
    if any(extent % inside for extent, inside in zip(shape, extents, strict=True)):
        return None
    ordered = ops.shared_permute(part, sorted(range(len(dims)), key=lambda d: dims[d]))
    inner = ops.shared_unsqueeze(ordered, [d for d in range(rank) if d not in dims])
    outer = ops.shared_row_major(*(extent // inside for extent, inside in zip(shape, extents, strict=True)))
    return ops.shared_compose(outer, inner)
