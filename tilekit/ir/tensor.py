# SPDX-License-Identifier: Apache-2.0
"""Tensors of the tile IR: typed, shaped, compared by identity, each in one memory space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shared_layout import SharedLayout
from tilekit.ir.node import Node
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr


@dataclass(frozen=True, eq=False)
class Tensor(Node):
    """A tensor of one dtype; `name` is the user's name for it and reaches the generated source."""

    dtype: DataType
    name: str = field(default="", kw_only=True)


@dataclass(frozen=True, eq=False)
class RegisterTensor(Tensor):
    """A tensor spread over the registers of a thread group; the layout says which thread holds which element."""

    shape: tuple[int, ...]
    optional_layout: RegisterLayout | None = None

    @staticmethod
    def create(
        dtype: DataType, shape: Sequence[int], optional_layout: RegisterLayout | None = None, *, name: str = ""
    ) -> RegisterTensor:
        extents = _checked("a tile", "a register tensor", dtype, shape, optional_layout)
        return RegisterTensor(dtype, extents, optional_layout, name=name)

    @property
    def layout(self) -> RegisterLayout:
        if self.optional_layout is None:
            raise errors.LayoutError("TK302", f"register tensor {self.name or '(unnamed)'} has no layout yet")
        return self.optional_layout

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class SharedTensor(Tensor):
    """A tensor in the memory that the threads of a block share; the layout says at which offset an element lies.

    A slice, a permutation and a reshape are tensors of their own that show the elements of another one.
    """

    shape: tuple[int, ...]
    optional_layout: SharedLayout | None = None

    @staticmethod
    def create(
        dtype: DataType, shape: Sequence[int], optional_layout: SharedLayout | None = None, *, name: str = ""
    ) -> SharedTensor:
        extents = _checked("a shared tensor", "a shared tensor", dtype, shape, optional_layout)
        return SharedTensor(dtype, extents, optional_layout, name=name)

    @property
    def layout(self) -> SharedLayout:
        if self.optional_layout is None:
            raise errors.LayoutError("TK302", f"shared tensor {self.name or '(unnamed)'} has no layout yet")
        return self.optional_layout

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes of its elements, without what a layout leaves between them."""
        return self.size * self.dtype.nbytes


# the tensors for which a layout is chosen, and what is chosen
LaidOut: TypeAlias = RegisterTensor | SharedTensor
Layout: TypeAlias = RegisterLayout | SharedLayout


def _checked(
    one: str, kind: str, dtype: object, shape: Sequence[object], layout: RegisterLayout | SharedLayout | None
) -> tuple[int, ...]:
    """The extents of a new tensor; raises where type, shape and layout make none."""
    _check_element(one, dtype)
    extents = tuple(extent for extent in shape if _is_extent(extent))
    if len(extents) != len(shape):
        raise errors.LanguageError(
            "TK217",
            f"{kind} needs a shape of positive compile-time integers, got {list(shape)}",
            help="make the extents constants: pass them to __init__, or annotate the parameter as int",
        )
    if layout is not None and tuple(layout.shape) != extents:
        raise errors.LayoutError("TK301", f"a layout of shape {list(layout.shape)} cannot hold {list(extents)}")
    return extents


def _check_element(one: str, dtype: object) -> None:
    if not isinstance(dtype, DataType):
        raise errors.LanguageError("TK215", f"{one} needs a type such as float32, got {dtype!r}")
    if dtype.is_vector():
        raise errors.LanguageError(
            "TK215", f"{one} has elements of one number each, not of {dtype}", help="give it one more dimension"
        )


def check_bytes(one: str, dtype: DataType) -> None:
    """Refuse memory whose elements are no whole bytes."""
    if dtype.is_subbyte():
        raise errors.LanguageError(
            "TK203",
            f"{one} has elements of whole bytes, and {dtype} has {dtype.nbits} bits",
            help="hold several of them in a uint8, and take them apart with >> and &",
        )


def _is_extent(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


@dataclass(frozen=True, eq=False)
class GlobalLayout:
    """Where element (i, j, …) lies: at `sum(index * stride)` elements, the strides and the sum in int64."""

    shape: tuple[Expr, ...]
    strides: tuple[Expr, ...]

    @staticmethod
    def row_major(shape: Sequence[Expr]) -> GlobalLayout:
        strides: list[Expr] = []
        stride: Expr = scalar.constant(dtypes.int64, 1)
        for extent in reversed(shape):
            strides.append(stride)
            stride = scalar.mul(stride, scalar.cast(extent, dtypes.int64))
        return GlobalLayout(tuple(shape), tuple(reversed(strides)))

    def offset(self, index: Sequence[Expr]) -> Expr:
        """The element offset of `index` as an int64 expression: it does not overflow past 2^31 elements."""
        total: Expr = scalar.constant(dtypes.int64, 0)
        for component, stride in zip(index, self.strides, strict=True):
            total = scalar.add(total, scalar.mul(scalar.cast(component, dtypes.int64), stride))
        return total


@dataclass(frozen=True, eq=False)
class GlobalTensor(Tensor):
    """A strided view of global memory."""

    layout: GlobalLayout

    @staticmethod
    def create(dtype: DataType, layout: GlobalLayout, *, name: str = "") -> GlobalTensor:
        _check_element("a global tensor", dtype)
        return GlobalTensor(dtype, layout, name=name)

    @property
    def shape(self) -> tuple[Expr, ...]:
        return self.layout.shape
