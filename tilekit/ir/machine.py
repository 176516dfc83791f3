# SPDX-License-Identifier: Apache-2.0
"""What the NumPy meaning of an instruction may ask of the evaluator that runs it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tilekit.ir.tensor import GlobalTensor, RegisterTensor
from tilekit.lowir.scalar import Expr, Var

Array = NDArray[Any]
Mask = NDArray[np.bool_]

# An instruction runs as a generator: each `yield` gives the turn to another thread group.
Steps = Generator[None, None, None]


class Access(NamedTuple):
    """One access per position of a tile: element `offset` from `pointer`, where `mask` holds (everywhere if None)."""

    pointer: Expr
    axes: tuple[Var, ...]
    offset: Expr
    mask: Expr | None


class Value(NamedTuple):
    """The contents of a register tensor and, element by element, whether they were ever written."""

    data: Array
    defined: Mask


class Machine(Protocol):
    """One thread group of one block, in the evaluator."""

    def read(self, tensor: RegisterTensor) -> Value:
        """The tensor's present value; every element undefined if it was never written."""
        ...

    def write(self, tensor: RegisterTensor, data: Array, defined: Mask) -> None:
        """Set the tensor, rounding to its dtype and broadcasting to its shape."""
        ...

    def scalar(self, expr: Expr) -> Any:
        """The value of a scalar expression here, a NumPy scalar."""
        ...

    def over(self, axes: Sequence[Var], shape: Sequence[int], expr: Expr) -> Array:
        """The value of `expr` at every point of the box `shape`, the axes running over it."""
        ...

    def bind_view(self, tensor: GlobalTensor, pointer: Expr) -> None:
        """Make `tensor` stand for the memory at `pointer`."""
        ...

    def address_of(self, tensor: GlobalTensor) -> Expr:
        """The pointer that `tensor` was bound to."""
        ...

    def load(self, tile: RegisterTensor, access: Access) -> None:
        """Read global memory into `tile`, one element per position; zero where the mask is false."""
        ...

    def store(self, tile: RegisterTensor, access: Access) -> None:
        """Write `tile` to global memory, one element per position where the mask is true."""
        ...

    def barrier(self) -> Steps:
        """Wait for every thread group of the block."""
        ...
