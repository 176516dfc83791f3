# SPDX-License-Identifier: Apache-2.0
"""What the layout rule of an instruction may ask, and the layouts that several rules propose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tilekit.ir.layout import ops
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.machine import Access
from tilekit.ir.tensor import GlobalTensor, RegisterTensor
from tilekit.lowir.scalar import Expr


class LayoutContext(Protocol):
    """The thread group an instruction runs in, and what analysis knows there."""

    @property
    def num_threads(self) -> int: ...

    def vector_width(self, tile: RegisterTensor, access: Access) -> tuple[int, int]:
        """The dimension and the number of elements of one access: at most 16 bytes, aligned, the mask constant."""
        ...

    def address_of(self, tensor: GlobalTensor) -> Expr:
        """The pointer that `tensor` is a view of."""
        ...


def spread(shape: Sequence[int], num_threads: int) -> RegisterLayout:
    """The layout of a tile nobody cares about: neighbors in the last dimension to neighboring threads."""
    return ops.auto_local_spatial(num_threads, shape)


def vectorized(shape: Sequence[int], dim: int, width: int, num_threads: int) -> RegisterLayout:
    """Vectors of `width` elements along `dim` in one thread, the vectors spread over the threads."""
    if width == 1:
        return spread(shape, num_threads)
    outer = [extent // width if d == dim else extent for d, extent in enumerate(shape)]
    inner = [width if d == dim else 1 for d in range(len(shape))]
    return ops.compose(spread(outer, num_threads), ops.local(*inner))


def broadcast_to(layout: RegisterLayout, shape: Sequence[int]) -> RegisterLayout:
    """What an operand of `shape` looks like to threads that hold a result in `layout` (NumPy broadcasting)."""
    leading = len(layout.shape) - len(shape)
    dims = [d for d, extent in enumerate(layout.shape) if d < leading or (shape[d - leading] == 1 and extent != 1)]
    reduced = ops.reduce(layout, dims=dims, keepdims=True)
    return ops.squeeze(reduced, list(range(leading))) if leading else reduced
