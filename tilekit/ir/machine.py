# SPDX-License-Identifier: Apache-2.0
"""What the NumPy meaning of an instruction may ask of the evaluator that runs it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilekit.diag import errors
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.lowir.scalar import Expr, Var

Array = NDArray[Any]
Mask = NDArray[np.bool_]

# An instruction runs as a generator: each `yield` gives the turn to another thread group.
Steps = Generator[None, None, None]


# The numbers of the elements of a shared tensor, picked and ordered as a view of it shows them.
Pick: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.int64]]


class Access(NamedTuple):
    """One access per position of a tile: element `offset` from `pointer`, where `mask` holds (everywhere if None)."""

    pointer: Expr
    axes: tuple[Var, ...]
    offset: Expr
    mask: Expr | None


class Value(NamedTuple):
    """The contents of a tensor and, element by element, whether they were ever written."""

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

    def load_word(self, pointer: Expr) -> Any:
        """The present value of the element behind a pointer to global memory."""
        ...

    def store_word(self, pointer: Expr, value: Any) -> None:
        """Set the element behind a pointer to global memory."""
        ...

    def bind_workspace(self, tensor: GlobalTensor) -> None:
        """Make `tensor` stand for the memory that the launch lent for it."""
        ...

    def global_value(self, tensor: GlobalTensor) -> Value:
        """The present contents of a whole global tensor."""
        ...

    def allocate_shared(self, tensor: SharedTensor) -> None:
        """Make `tensor` new shared memory, which nobody has written."""
        ...

    def free_shared(self, tensor: SharedTensor) -> None:
        """End the memory behind `tensor`: it can be neither read nor written any more."""
        ...

    def show_shared(self, view: SharedTensor, of: SharedTensor, pick: Pick) -> None:
        """Make `view` stand for elements of `of`."""
        ...

    def load_shared(self, tensor: SharedTensor) -> Value:
        """The present contents of a shared tensor; what copies bring is undefined until somebody waited for them."""
        ...

    def store_shared(self, tensor: SharedTensor, value: Value) -> None:
        """Set a whole shared tensor."""
        ...

    def start_copy(self, dst: SharedTensor, access: Access) -> None:
        """Begin to copy global memory to a shared tensor, zero where the mask is false."""
        ...

    def commit_copies(self) -> None:
        """Make a group of the copies started since the last one."""
        ...

    def wait_for_copies(self, pending: int | None) -> None:
        """Finish every group of copies but the `pending` youngest; None: every copy, in a group or not."""
        ...

    def offset_of(self, what: str, offset: Expr, extent: int, size: int) -> int:
        """The value of an offset, if `extent` elements from there on lie inside of the `size` that there are."""
        ...

    def barrier(self) -> Steps:
        """Wait for every thread group of the block."""
        ...

    def wait_until(self, ready: Callable[[], bool], what: str) -> Steps:
        """Give the turn to others until `ready` says so; `what` is being waited for, in the words of an error."""
        ...

    def print(self, text: str) -> None:
        """Print text, as one thread."""
        ...

    @property
    def num_threads(self) -> int:
        """The number of threads of the group."""
        ...

    def refuse(self, code: str, kind: str, message: str) -> errors.KernelError:
        """The error of a kernel that does wrong here."""
        ...

    def name_of(self, tensor: Tensor) -> str:
        """The name of a tensor in text."""
        ...
