# SPDX-License-Identifier: Apache-2.0
"""Our types and hidet's, one to one and by name."""

from __future__ import annotations

from functools import cache
from typing import Any

from tilekit import dtypes
from tilekit.diag.errors import LanguageError
from tilekit.dtypes import DataType, PointerType, VoidType
from tilekit.lowir import _load
from tilekit.lowir.nodes import (
    BaseType,
    HDataType,
    HFuncType,
    HPointerType,
    HTensorPointerType,
    HTensorType,
    HVoidType,
)

Type = DataType | PointerType

_hidet_types: Any = _load.load("ir.dtypes")
_base_type: Any = _load.load("ir.type")


@cache
def to_hidet(type_: Type | VoidType) -> BaseType:
    """hidet's type for one of ours; the same object every time."""
    match type_:
        case VoidType():
            return HVoidType()
        case PointerType():
            return HPointerType(to_hidet(type_.base))
        case DataType():
            return _hidet_types.name2dtype.get(type_.name) or _make(type_)


def from_hidet(type_: BaseType) -> Type:
    """Our type for one of hidet's; a pointer to a tensor is a pointer to its elements."""
    if isinstance(type_, HDataType):
        return dtypes.parse(type_.name)
    if isinstance(type_, HPointerType):
        base = type_.base_type
        return dtypes.void_p if isinstance(base, HVoidType) else PointerType(from_hidet(base))
    if isinstance(type_, HTensorPointerType):
        return PointerType(dtypes.parse(type_.tensor_type.dtype.name))
    raise LanguageError("TK205", f"hidet's type {type_!r} is no scalar and no pointer, and tilekit has nothing like it")


@cache
def array(dtype: DataType, length: int) -> HTensorType:
    """The type of `length` registers."""
    return _base_type.tensor_type(to_hidet(dtype), [length])


def function(params: tuple[Type, ...], result: Type | VoidType) -> HFuncType:
    return HFuncType([to_hidet(param) for param in params], to_hidet(result))


def _make(dtype: DataType) -> HDataType:
    """A hidet type for a dtype that hidet 0.6.1 has not got."""
    if dtype.is_vector():
        return _hidet_types.vector.VectorType(to_hidet(dtype.element), dtype.lanes)
    if dtype.is_integer():
        signed, low, high = dtype.is_signed(), dtype.min_value, dtype.max_value
        return _hidet_types.integer_subbyte.IntegerSubbyteType(
            dtype.name, dtype.short_name, _hidet_types.uint8, dtype.nbits, signed, low, high
        )
    return _SmallFloat(dtype)


class _SmallFloat(_hidet_types.floats.FloatType):  # type: ignore[misc, name-defined]  # hidet has no types
    """A float below eight bits."""

    def __init__(self, dtype: DataType) -> None:
        normal = dtype.smallest_normal
        super().__init__(dtype.name, dtype.short_name, 1, dtype.min_value, dtype.max_value, dtype.eps, normal)
        self._nbits = dtype.nbits

    @property
    def nbits(self) -> int:
        return self._nbits

    @property
    def nbytes(self) -> int:
        raise TypeError(f"{self.name} has no whole number of bytes")
