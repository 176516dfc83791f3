# SPDX-License-Identifier: Apache-2.0
"""How types, literals and names are spelled in generated C++, the same for CUDA and for the CPU."""

from __future__ import annotations

import math

from tilekit import dtypes
from tilekit.diag.errors import CodegenError
from tilekit.dtypes import DataType, Number, PointerType, VoidType
from tilekit.lowir import scalar_text
from tilekit.lowir.types import Type

_TYPES = {
    dtypes.boolean: "bool",
    dtypes.int8: "int8_t",
    dtypes.int16: "int16_t",
    dtypes.int32: "int32_t",
    dtypes.int64: "int64_t",
    dtypes.uint8: "uint8_t",
    dtypes.uint16: "uint16_t",
    dtypes.uint32: "uint32_t",
    dtypes.uint64: "uint64_t",
    dtypes.float16: "half",
    dtypes.bfloat16: "nv_bfloat16",
    dtypes.float32: "float",
    dtypes.float64: "double",
    dtypes.tfloat32: "tk::tfloat32",
}


def type_name(type_: Type | VoidType, *, const: bool = False) -> str:
    """The C++ spelling of a type; `const` says that a pointer's target is only read."""
    match type_:
        case VoidType():
            return "void"
        case PointerType():
            return f"{'const ' if const else ''}{type_name(type_.base)} *"
        case DataType() if type_ in _TYPES:
            return _TYPES[type_]
        case DataType():
            raise CodegenError("TK403", f"{type_} has no type in generated code", help=_instead(type_))


def _instead(dtype: DataType) -> str:
    """What to do where a kernel cannot hold values of a type."""
    if dtype.is_integer():
        return "hold it in an integer of 8 bits: pack the tensor before the call, and take it apart with >> and &"
    convert = "use float16, and convert the tensor before the call with x.to(torch.float16)"
    if dtype.nbits < 8:
        return convert
    return f"{convert}; where the kernel only moves it, use uint8, and call it with x.view(torch.uint8)"


def declaration(type_: Type, name: str, *, const: bool = False) -> str:
    """`half *name`, `int32_t name`."""
    spelled = type_name(type_, const=const)
    return spelled + name if spelled.endswith("*") else f"{spelled} {name}"


def literal(dtype: DataType, value: Number) -> str:
    """A number of exactly this type, so that overloads and templates see the type that is meant."""
    if dtype.is_boolean():
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_literal(dtype, value)
    value = int(dtypes.convert(value, dtype))
    match dtype:
        case dtypes.int32:
            return f"({value + 1} - 1)" if value == dtypes.int32.min_value else str(value)
        case dtypes.uint32:
            return f"{value}u"
        case dtypes.int64 if value == dtypes.int64.min_value:
            return f"int64_t({value + 1}ll - 1)"
        case dtypes.int64 | dtypes.uint64:
            suffix = "" if -(2**31) < value < 2**31 else "ll" if dtype is dtypes.int64 else "ull"
            return f"{type_name(dtype)}({value}{suffix})"
        case _:
            return f"{type_name(dtype)}({value})"


def bare_integer(value: int) -> str | None:
    """An integer as people write it, for places where the other operand decides the type."""
    return str(value) if -(2**31) < value < 2**31 else None


def _float_literal(dtype: DataType, value: float) -> str:
    if math.isnan(value):
        return f"tk::nan<{type_name(dtype)}>()"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}tk::infinity<{type_name(dtype)}>()"
    text = scalar_text.shortest(dtype, value)
    match dtype:
        case dtypes.float32:
            return f"{text}f"
        case dtypes.float64:
            return text
        case _:
            return f"{type_name(dtype)}({text}f)"


def string(text: str) -> str:
    """A string literal of any text."""
    plain = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    characters = (
        plain.get(c) or (c if " " <= c <= "~" else "".join(f"\\{byte:03o}" for byte in c.encode())) for c in text
    )
    return f'"{"".join(characters)}"'
