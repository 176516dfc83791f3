# SPDX-License-Identifier: Apache-2.0
"""What a kernel may ask of a tensor: `x.shape`, `x.to(float16)`, `s.transpose()`, `g[i].item()`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.stmt import TensorItemValueStmt
from tilekit.ir.surface import describe
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.lang import operators, subscripts, values
from tilekit.lang.builder import Builder
from tilekit.lang.methods import KernelMethods
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr

# a list of more scalars than this is no program that anybody wants
_MOST_ITEMS = 64


T = TypeVar("T", bound=Tensor)


class TensorMethods(Generic[T]):
    """What tensors of all kinds have."""

    def __init__(self, kernel: KernelMethods, builder: Builder, tensor: T) -> None:
        self._kernel = kernel
        self._builder = builder
        self._tensor = tensor

    @property
    def dtype(self) -> DataType:
        """The type of an element."""
        return self._tensor.dtype

    @property
    def shape(self) -> tuple[int | Expr, ...]:
        """The extents: compile-time integers, of a global tensor expressions."""
        return subscripts.shape_of(self._tensor)

    @property
    def size(self) -> Any:
        """The number of elements."""
        count: Any = 1
        for extent in map(values.known, self.shape):
            count = operators.product(count, extent)
        return count

    @property
    def nbytes(self) -> Any:
        """The bytes of all elements."""
        return operators.product(self.size, self.dtype.nbytes)


M = TypeVar("M", bound=SharedTensor | GlobalTensor)


class _OfMemory(TensorMethods[M]):
    """What tensors in memory have: elements with an address."""

    def item(self) -> Expr:
        """Return the one element as a scalar, which every thread reads.

        Memory with several elements is indexed first: `g[i, j].item()`.
        """
        return _item(self._builder, self._tensor, self._offsets("item"))

    def item_ptr(self) -> Expr:
        """Return a pointer to the one element.

        Memory with several elements is indexed first: `g[i, j].item_ptr()`, which is also `~g[i, j]`.
        """
        return subscripts.address(self._builder, self._tensor, self._offsets("item_ptr"))

    def _offsets(self, method: str) -> Sequence[Expr]:
        _single(method, self._tensor)
        return [scalar.constant(dtypes.int32, 0)] * len(self.shape)


class GlobalTensorMethods(_OfMemory[GlobalTensor]):
    """What a tensor in global memory has."""


class SharedTensorMethods(_OfMemory[SharedTensor]):
    """What a tensor in shared memory has."""

    def permute(self, dims: Sequence[int]) -> SharedTensor:
        """Return a view with the dimensions in another order; no element moves.

        Parameters
        ----------
        dims
            Which dimension of this tensor each dimension of the view is.
        """
        return self._kernel.permute_shared(self._tensor, dims)

    def transpose(self) -> SharedTensor:
        """Return a view of a matrix with rows for columns; no element moves."""
        if len(self._tensor.shape) != 2:
            raise errors.LanguageError(
                "TK213",
                f"transpose needs a tensor of two dimensions, got {describe(self._tensor)}",
                help="exchange dimensions of a larger one with s.permute(dims=[…])",
            )
        return self._kernel.permute_shared(self._tensor, [1, 0])


class Element(_OfMemory[M]):
    """One element of memory, `t[i, j]` with an index for every dimension, that no instruction has asked for yet."""

    def __init__(self, kernel: KernelMethods, builder: Builder, tensor: M, offsets: Sequence[Expr]) -> None:
        super().__init__(kernel, builder, tensor)
        self._at = offsets

    def _offsets(self, method: str) -> Sequence[Expr]:
        return self._at


class RegisterTensorMethods(TensorMethods[RegisterTensor]):
    """What a tile has."""

    def item(self) -> Expr:
        """Return the one element of a tile as a scalar, which every thread of the group gets."""
        _single("item", self._tensor)
        return _item(self._builder, self._tensor, ())

    def tolist(self) -> Any:
        """Return the elements as a list of scalars, nested by dimensions; for tiles of a few elements."""
        tile = self._tensor
        if tile.size > _MOST_ITEMS:
            raise errors.LanguageError("TK213", f"tolist is for at most {_MOST_ITEMS} elements, got {describe(tile)}")
        positions = itertools.product(*map(range, tile.shape))
        return _nested([self._element(at) for at in positions], tile.shape)

    def _element(self, at: Sequence[int]) -> Expr:
        element = subscripts.read(self._builder, subscripts.part_of(self._tensor, at))
        assert isinstance(element, RegisterTensor)
        return _item(self._builder, element, ())

    def squeeze(self, dim: int | Sequence[int]) -> RegisterTensor:
        """Return the tile without one or several dimensions of extent 1.

        Parameters
        ----------
        dim
            The dimensions to drop, counted from the end if negative.
        """
        return self._kernel.squeeze(self._tensor, dim=dim)

    def unsqueeze(self, dim: int | Sequence[int]) -> RegisterTensor:
        """Return the tile with one or several dimensions of extent 1 added.

        Parameters
        ----------
        dim
            Where the new dimensions are in the result, counted from its end if negative.
        """
        return self._kernel.unsqueeze(self._tensor, dim=dim)

    def transpose(self) -> RegisterTensor:
        """Return a matrix with rows for columns; no element moves to another thread."""
        return self._kernel.transpose(self._tensor)

    def to(self, dtype: DataType) -> RegisterTensor:
        """Return the values of the tile in another dtype.

        Parameters
        ----------
        dtype
            The type of the result.
        """
        return self._kernel.cast(self._tensor, dtype)


def methods_of(kernel: KernelMethods, builder: Builder, tensor: Tensor) -> TensorMethods[Any]:
    """What `tensor` can be asked."""
    match tensor:
        case RegisterTensor():
            return RegisterTensorMethods(kernel, builder, tensor)
        case SharedTensor():
            return SharedTensorMethods(kernel, builder, tensor)
        case GlobalTensor():
            return GlobalTensorMethods(kernel, builder, tensor)
        case _:
            raise AssertionError(f"{tensor} has no methods")


def name_of(owner: object, named: Mapping[Tensor, str]) -> str:
    """What a person calls the object of a method: `self`, or the name of the tensor."""
    if not isinstance(owner, TensorMethods):
        return "self"
    return named.get(vars(owner)["_tensor"], "t")


def names(methods: TensorMethods[Any]) -> list[str]:
    """The public names of a tensor's methods."""
    return [name for name in dir(methods) if not name.startswith("_")]


def _single(method: str, tensor: Tensor) -> None:
    extents = list(map(values.known, subscripts.shape_of(tensor)))
    if any(extent != 1 if isinstance(extent, int) else True for extent in extents):
        letters = ", ".join("ijklmnop"[: len(extents)])
        raise errors.LanguageError(
            "TK213", f"{method} needs one element, got {describe(tensor)}", help=f"index it: t[{letters}].{method}()"
        )


def _item(builder: Builder, tensor: RegisterTensor | SharedTensor | GlobalTensor, offsets: Sequence[Expr]) -> Expr:
    variable = scalar.var("item", tensor.dtype)
    builder.append(TensorItemValueStmt(variable, tensor, tuple(offsets), span=builder.span))
    return variable


def _nested(flat: list[Any], shape: Sequence[int]) -> Any:
    if not shape:
        return flat[0]
    step = math.prod(shape[1:])
    return [_nested(flat[at : at + step], shape[1:]) for at in range(0, len(flat), step)]
