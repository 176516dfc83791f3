# SPDX-License-Identifier: Apache-2.0
"""Subscripts of tensors: `t[i, j]` and `t[:, k]` take dimensions away, each at one index.

A part of memory shows the elements of the whole tensor; a part of a tile is a tile of its own, as every tile is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import PointerType
from tilekit.ir.instructions.memory import GlobalViewInst
from tilekit.ir.instructions.register import AssignInst
from tilekit.ir.instructions.shared import SliceSharedInst
from tilekit.ir.instructions.transform import SliceAssignInst, SliceRegisterInst
from tilekit.ir.stmt import TensorItemPtrStmt
from tilekit.ir.surface import describe, index
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.lang import operators, values
from tilekit.lang.builder import Builder
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr

_WHOLE = slice(None)


@dataclass(frozen=True)
class Part:
    """Which part of a tensor a subscript means: for each dimension the index it is taken at, or None to keep it."""

    tensor: Tensor
    indices: tuple[Expr | None, ...]

    @property
    def dims(self) -> tuple[int, ...]:
        """The dimensions that are kept."""
        return tuple(dim for dim, at in enumerate(self.indices) if at is None)

    @property
    def offsets(self) -> tuple[Expr, ...]:
        """The index of the first element."""
        return tuple(scalar.constant(dtypes.int32, 0) if at is None else at for at in self.indices)

    @property
    def is_whole(self) -> bool:
        return all(at is None for at in self.indices)

    @property
    def is_element(self) -> bool:
        return not self.dims


def part_of(tensor: Tensor, subscript: Sequence[Any]) -> Part:
    """The part that these subscripts mean; dimensions without one are kept."""
    extents = shape_of(tensor)
    if len(subscript) > len(extents):
        raise errors.LanguageError(
            "TK213", f"{len(subscript)} subscripts for {describe(tensor)}, which has {_dimensions(len(extents))}"
        )
    given = [_index(tensor, dim, extents[dim], value) for dim, value in enumerate(subscript)]
    return Part(tensor, (*given, *[None] * (len(extents) - len(given))))


def shape_of(tensor: Tensor) -> tuple[int | Expr, ...]:
    assert isinstance(tensor, (RegisterTensor, SharedTensor, GlobalTensor))
    return tensor.shape


def limited(tensor: Tensor) -> errors.LanguageError:
    """The error for `t[a:b]`: a part has the whole of a dimension, or one index of it."""
    match tensor:
        case GlobalTensor():
            advice = "load the box that you need: self.load_global(g, offsets=[…], shape=[…])"
        case SharedTensor():
            advice = "give the tensor one more dimension and take it at an index: s[stage]"
        case _:
            advice = "take a dimension at an index, x[i], or the whole of it, x[:]"
    return errors.LanguageError("TK103", f"a slice of {describe(tensor)} cannot have limits", help=advice)


def _index(tensor: Tensor, dim: int, extent: int | Expr, value: Any) -> Expr | None:
    if isinstance(value, slice):
        if value != _WHOLE:
            raise limited(tensor)
        return None
    if value is None or value is ...:
        raise errors.LanguageError(
            "TK103",
            f"{'...' if value is ... else 'None'} cannot be a subscript of a tensor",
            help="write a : for each dimension to keep" if value is ... else "add a dimension with x.unsqueeze(dim)",
        )
    known = values.known(value)
    if isinstance(known, int) and not isinstance(known, bool):
        return _constant(dim, values.known(extent), known)
    return index("a subscript", scalar.as_expr(value) if isinstance(value, dtypes.Literal) else value)


def _constant(dim: int, extent: int | Expr, at: int) -> Expr:
    """An index known now, counted from the end if it is negative."""
    if isinstance(extent, Expr):
        return scalar.as_expr(at, dtypes.int32) if at >= 0 else _add(extent, at)
    if not -extent <= at < extent:
        raise errors.LanguageError("TK213", f"index {at} is outside of dimension {dim}, which has {extent} elements")
    return scalar.as_expr(at % extent, dtypes.int32)


def _add(expr: Expr, number: int) -> Expr:
    return scalar.add(*operators.paired(expr, number))


def _dimensions(rank: int) -> str:
    return f"{rank} dimension{'' if rank == 1 else 's'}"


# --------------------------------------------------------------------------------------------------- reading, writing


def read(builder: Builder, part: Part) -> Tensor:
    """The part as a tensor."""
    if part.is_whole:
        return part.tensor
    match part.tensor:
        case RegisterTensor() as tile:
            return builder.emit(SliceRegisterInst.create(tile, part.offsets, part.dims))
        case SharedTensor() as memory:
            return builder.emit(SliceSharedInst.create(memory, part.offsets, part.dims))
        case GlobalTensor() as memory:
            layout = GlobalLayout(
                tuple(memory.shape[dim] for dim in part.dims), tuple(memory.layout.strides[dim] for dim in part.dims)
            )
            view = GlobalTensor.create(memory.dtype, layout)
            return builder.emit(GlobalViewInst.create(view, address(builder, memory, part.offsets)))
        case other:
            raise AssertionError(f"{other} has no elements")


def address(builder: Builder, tensor: SharedTensor | GlobalTensor, offsets: Sequence[Expr]) -> Expr:
    """A pointer to the element at `offsets`."""
    known = builder.pointers.get(tensor) if isinstance(tensor, GlobalTensor) else None
    if known is not None:
        assert isinstance(tensor, GlobalTensor)
        return scalar.add(known, tensor.layout.offset(offsets))
    pointer = scalar.var("p", PointerType(tensor.dtype))
    builder.append(TensorItemPtrStmt(pointer, tensor, tuple(offsets), span=builder.span))
    return pointer


def write(builder: Builder, part: Part, value: Any) -> None:
    """Write a number or a tile over a part of a tile."""
    tile = part.tensor
    assert isinstance(tile, RegisterTensor)
    shape = tuple(tile.shape[dim] for dim in part.dims)
    if values.is_number(value):
        value = operators.filled(builder, value, tile, shape)
    if not isinstance(value, RegisterTensor):
        raise errors.LanguageError("TK215", f"cannot write {describe(value)} to a part of {describe(tile)}")
    if value.shape != shape:
        raise errors.LanguageError(
            "TK213", f"cannot write {describe(value)} to this part of {describe(tile)}, which has shape {list(shape)}"
        )
    if part.is_whole:
        builder.emit(AssignInst.create(tile, value))
    else:
        builder.emit(SliceAssignInst.create(tile, value, part.offsets, part.dims))
