# SPDX-License-Identifier: Apache-2.0
"""All operations on layouts: what changes the dimensions of register layouts is here, the rest is re-exported."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from tilekit.ir.layout import digits, shapes
from tilekit.ir.layout.banks import conflicts
from tilekit.ir.layout.digits import AnyPlace, Digit, Place, Replica
from tilekit.ir.layout.register_layout import (
    RegisterLayout,
    canonicalize,
    column_local,
    column_spatial,
    compose,
    divide,
    from_digits,
    left_divide,
    local,
    register_layout,
    replicated,
    spatial,
)
from tilekit.ir.layout.shapes import LayoutOperationError
from tilekit.ir.layout.shared_layout import (
    SharedLayout,
    Swizzle,
    shared_column_major,
    shared_compose,
    shared_layout,
    shared_permute,
    shared_reshape,
    shared_row_major,
    shared_row_major_swizzle,
    shared_slice,
    shared_unsqueeze,
)

__all__ = [
    "LayoutOperationError",
    "spatial",
    "column_spatial",
    "local",
    "column_local",
    "replicated",
    "register_layout",
    "auto_local_spatial",
    "canonicalize",
    "compose",
    "divide",
    "left_divide",
    "reduce",
    "reduce_to",
    "expand",
    "permute",
    "concat",
    "reshape",
    "flatten",
    "squeeze",
    "unsqueeze",
    "with_shape",
    "locate_at",
    "vector_extent",
    "SharedLayout",
    "Swizzle",
    "shared_row_major",
    "shared_column_major",
    "shared_row_major_swizzle",
    "shared_layout",
    "shared_compose",
    "shared_permute",
    "shared_reshape",
    "shared_slice",
    "shared_unsqueeze",
    "conflicts",
]


def auto_local_spatial(num_threads: int, shape: Sequence[int]) -> RegisterLayout:
    """All elements of `shape`, once each where it can be, over `num_threads` threads, neighbors to neighboring threads.

    From the last dimension on each takes as many of the threads as divide it; the elements left over go to further
    registers, the threads left over to replicas.
    """
    (free,) = shapes.extents("num_threads", [num_threads])
    threads: list[int] = []
    for extent in reversed(shapes.extents("shape", shape)):
        threads.insert(0, math.gcd(free, extent))
        free //= threads[0]
    registers = [extent // taken for extent, taken in zip(shape, threads, strict=True)]
    return replicated(num_workers=free) * local(*registers) * spatial(*threads)


def reduce(layout: RegisterLayout, dims: Sequence[int], *, keepdims: bool = False) -> RegisterLayout:
    """One element for all of `dims`: their digits become replicas in the thread number, and vanish in the register."""
    dims = shapes.dimensions(dims, len(layout.shape))
    reduced = from_digits(
        [1 if dim in dims else extent for dim, extent in enumerate(layout.shape)],
        [Replica(p.extent) if isinstance(p, Digit) and p.dim in dims else p for p in layout.spatial_digits],
        [digit for digit in layout.local_digits if digit.dim not in dims],
    )
    return reduced if keepdims else squeeze(reduced, dims)


def reduce_to(layout: RegisterLayout, shape: Sequence[int]) -> RegisterLayout:
    """What an operand of `shape` looks like to the threads of a result in `layout` that it is broadcast to."""
    leading, stretched = shapes.broadcast(shape, layout.shape)
    reduced = reduce(layout, [*range(leading), *stretched], keepdims=True)
    return squeeze(reduced, range(leading))


def expand(layout: RegisterLayout, shape: Sequence[int]) -> RegisterLayout:
    """A layout of `shape`, to which the tile is broadcast, that needs no element of another thread.

    New elements are spread over the replicas as far as these divide them, the last dimension first; the rest of them
    go to further registers.
    """
    shape = shapes.extents("shape", shape)
    leading, stretched = shapes.broadcast(layout.shape, shape)
    spatial = _renamed(layout.spatial_digits, lambda dim: dim + leading)
    local = _renamed(layout.local_digits, lambda dim: dim + leading)
    for dim in reversed([*range(leading), *stretched]):
        spatial, given = _given_away(spatial, dim, shape[dim])
        local.insert(0, Digit(dim, given, shape[dim] // given))
    return from_digits(shape, spatial, local)


def _given_away(places: Sequence[Place], dim: int, extent: int) -> tuple[list[Place], int]:
    """The places with digits of `dim` for replicas, least significant first, and up to which stride of `extent`."""
    result: list[Place] = []
    stride = 1
    for place in reversed(places):
        if isinstance(place, Digit):
            result.append(place)
            continue
        taken = math.gcd(place.extent, extent // stride)
        result += [Digit(dim, stride, taken), Replica(place.extent // taken)]
        stride *= taken
    return result[::-1], stride


def permute(layout: RegisterLayout, dims: Sequence[int]) -> RegisterLayout:
    """Dimension `i` of the result is dimension `dims[i]` of `layout`."""
    dims = shapes.permutation(dims, len(layout.shape))
    return _with_dims(layout, [layout.shape[dim] for dim in dims], dims.index)


def concat(lhs: RegisterLayout, rhs: RegisterLayout) -> RegisterLayout:
    """The dimensions of `lhs`, whose indices are the high part of thread and register number, then those of `rhs`."""
    rank = len(lhs.shape)
    return from_digits(
        lhs.shape + rhs.shape,
        [*lhs.spatial_digits, *_renamed(rhs.spatial_digits, lambda dim: dim + rank)],
        [*lhs.local_digits, *_renamed(rhs.local_digits, lambda dim: dim + rank)],
    )


def reshape(layout: RegisterLayout, shape: Sequence[int]) -> RegisterLayout:
    """The same elements, in row-major order, under another shape."""
    shape = shapes.reshaped(layout, layout.size, shape)
    strides = [math.prod(layout.shape[dim + 1 :]) for dim in range(len(layout.shape))]
    # Through one dimension, where digits of neighboring dimensions fuse: their bounds are no bounds of the new shape.
    flat = from_digits(
        [layout.size],
        [place.moved(lambda dim, stride: (0, stride * strides[dim])) for place in layout.spatial_digits],
        [digit.moved(lambda dim, stride: (0, stride * strides[dim])) for digit in layout.local_digits],
    )
    spatial: list[Place] = []
    for place in flat.spatial_digits:
        spatial += _reshaped(place, layout, shape) if isinstance(place, Digit) else [place]
    return from_digits(shape, spatial, [p for digit in flat.local_digits for p in _reshaped(digit, layout, shape)])


def _reshaped(flat: Digit, layout: RegisterLayout, shape: Sequence[int]) -> list[Digit]:
    row_major = [Digit(dim, 1, extent) for dim, extent in enumerate(shape)]
    readings = digits.read(row_major, flat.stride, flat.extent)
    if readings is None:
        raise LayoutOperationError(f"cannot reshape {layout} to shape {list(shape)}: it cuts through a mode")
    return [through.part(stride, extent) for through, stride, extent in readings]


def flatten(layout: RegisterLayout, start_dim: int = 0, end_dim: int = -1) -> RegisterLayout:
    """The dimensions from `start_dim` to `end_dim`, both included and counted from the end if negative, made one."""
    rank = len(layout.shape)
    first, last = (dim + rank if dim < 0 else dim for dim in (start_dim, end_dim))
    if rank == 0:
        return with_shape(layout, [1])
    if not 0 <= first <= last < rank:
        raise LayoutOperationError(f"cannot flatten dimensions {start_dim} to {end_dim} of shape {list(layout.shape)}")
    middle = math.prod(layout.shape[first : last + 1])
    return reshape(layout, [*layout.shape[:first], middle, *layout.shape[last + 1 :]])


def with_shape(layout: RegisterLayout, shape: Sequence[int]) -> RegisterLayout:
    """The same layout under a shape that differs only by dimensions of extent 1."""
    shape = shapes.extents("shape", shape)
    old, new = ([dim for dim, extent in enumerate(s) if extent != 1] for s in (layout.shape, shape))
    if [layout.shape[dim] for dim in old] != [shape[dim] for dim in new]:
        raise LayoutOperationError(
            f"shapes {list(layout.shape)} and {list(shape)} differ by more than dimensions of extent 1"
        )
    return _with_dims(layout, shape, dict(zip(old, new, strict=True)).__getitem__)


def squeeze(layout: RegisterLayout, dims: Sequence[int]) -> RegisterLayout:
    """The layout without `dims`, which have extent 1."""
    dims = shapes.dimensions(dims, len(layout.shape))
    if any(layout.shape[dim] != 1 for dim in dims):
        raise LayoutOperationError(f"cannot squeeze dims {list(dims)} of {list(layout.shape)}: not all have extent 1")
    return with_shape(layout, [extent for dim, extent in enumerate(layout.shape) if dim not in dims])


def unsqueeze(layout: RegisterLayout, dims: Sequence[int]) -> RegisterLayout:
    """The layout with dimensions of extent 1 added, which are `dims` of the result."""
    rank = len(layout.shape) + len(dims)
    dims = shapes.dimensions(dims, rank)
    extents = iter(layout.shape)
    return with_shape(layout, [1 if dim in dims else next(extents) for dim in range(rank)])


def locate_at(layout: RegisterLayout, global_index: Sequence[int], spatial_index: int) -> bool:
    """Whether thread `spatial_index` holds the element at `global_index`."""
    return spatial_index in layout.get_spatial(global_index)


def vector_extent(layout: RegisterLayout, dim: int) -> int:
    """How many neighbors along `dim`, from a multiple of their number on, lie in as many consecutive registers."""
    last = layout.local_digits[-1:]
    return last[0].extent if last and (last[0].dim, last[0].stride) == (dim, 1) else 1


def _with_dims(layout: RegisterLayout, shape: Sequence[int], new_dim: Callable[[int], int]) -> RegisterLayout:
    return from_digits(shape, _renamed(layout.spatial_digits, new_dim), _renamed(layout.local_digits, new_dim))


def _renamed(places: Iterable[AnyPlace], new_dim: Callable[[int], int]) -> list[AnyPlace]:
    return [place.moved(lambda dim, stride: (new_dim(dim), stride)) for place in places]
