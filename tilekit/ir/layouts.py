# SPDX-License-Identifier: Apache-2.0
"""What the layout rule of an instruction may ask, and the layouts that several rules propose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from tilekit.dtypes import DataType
from tilekit.ir.layout import ops, shapes
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.machine import Access
from tilekit.ir.tensor import GlobalTensor, RegisterTensor
from tilekit.lowir.scalar import Expr


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
