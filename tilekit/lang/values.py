# SPDX-License-Identifier: Apache-2.0
"""The values of a kernel: host values, which exist while it is compiled, and run-time scalars and tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard, cast

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.surface import describe
from tilekit.ir.tensor import RegisterTensor, Tensor
from tilekit.lang.classes import Class
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr

HOST_TYPES = (int, float, bool, str)


def is_runtime(value: object) -> bool:
    """Whether the value exists only when the kernel runs."""
    return isinstance(value, (Expr, Tensor))


def is_number(value: object) -> TypeGuard[bool | int | float | Expr | dtypes.Literal]:
    return isinstance(value, (bool, int, float, Expr, dtypes.Literal))


def known(value: Any) -> Any:
    """The Python number that a constant expression is; anything else as it is."""
    constant = scalar.constant_value(value) if isinstance(value, Expr) else None
    return value if constant is None else constant


def same(a: Any, b: Any) -> bool:
    """Whether two values are one, without asking run-time values whether they are equal."""
    if a is b:
        return True
    if is_runtime(a) or is_runtime(b) or type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a.hex() == b.hex()  # as numbers 0.0 is -0.0, and a nan not even itself
    if isinstance(a, (tuple, list)):
        ours, theirs = cast("list[Any]", a), cast("list[Any]", b)
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(a, dict):
        mine, others = cast("Mapping[Any, Any]", a), cast("Mapping[Any, Any]", b)
        return mine.keys() == others.keys() and all(same(mine[key], others[key]) for key in mine)
    try:
        return bool(a == b)
    except Exception:  # whatever a user's class does when it is compared
        return False


def truth(value: Any) -> bool | Expr:
    """The value as a condition: a Python bool where it is known now, else a boolean expression."""
    if isinstance(value, Tensor):
        raise errors.LanguageError(
            "TK215",
            f"{describe(value)} is no single truth value",
            help="use self.where for a choice per element, or self.any and self.all"
            if isinstance(value, RegisterTensor)
            else None,
        )
    if not isinstance(value, Expr):
        return bool(value)
    constant = scalar.constant_value(value)
    return bool(constant) if constant is not None else scalar.cast(value, dtypes.boolean)


def is_exact(number: float | dtypes.Literal, dtype: DataType) -> bool:
    """Whether a Python number keeps its meaning as a `dtype`: no lost fraction, no overflow."""
    plain = number.rounded if isinstance(number, dtypes.Literal) else number
    if dtype.is_boolean():
        return isinstance(plain, bool)
    if dtype.is_float():
        return True
    return not isinstance(plain, float) and dtype.min_value <= plain <= dtype.max_value


def converted(value: bool | int | float | Expr | dtypes.Literal, dtype: DataType, name: str) -> Expr:
    """The number that `name`, annotated with `dtype`, is given; a float never becomes an integer unasked."""
    if not isinstance(value, Expr):
        if not is_exact(value, dtype):
            shown = value.value if isinstance(value, dtypes.Literal) else value
            raise errors.LanguageError("TK202", f"{name} is {dtype} and cannot hold {shown}")
        return scalar.cast(scalar.as_expr(value, None if isinstance(value, dtypes.Literal) else dtype), dtype)
    given = scalar.dtype_of(value)
    if isinstance(given, DataType) and given.is_float() and not dtype.is_float():
        raise errors.LanguageError(
            "TK212", f"{name} is {dtype}, but its value is {given}", help=f"convert it: {dtype}(…)"
        )
    return scalar.cast(value, dtype)


def annotated(value: Any, annotation: Any, name: str) -> Any:
    """The value that `name` has with an annotation: typed, checked, or as it is."""
    if isinstance(annotation, str):
        raise errors.LanguageError(
            "TK103",
            f"the type of {name} is the string {annotation!r}, not a type",
            help="remove the quotes, or `from __future__ import annotations`, which turns every type into a string",
        )
    if isinstance(annotation, DataType) and is_number(value):
        return converted(value, annotation, name)
    if annotation in HOST_TYPES:
        return _host_value(value, annotation, name)
    is_class = isinstance(annotation, (DataType, PointerType)) or (
        isinstance(annotation, type) and issubclass(annotation, (Tensor, Class))
    )
    if is_class and not _suits(value, annotation):
        wanted = annotation.__name__ if isinstance(annotation, type) else annotation
        raise errors.LanguageError("TK215", f"{name} is annotated as {wanted}, but its value is {describe(value)}")
    return value


def _suits(value: Any, annotation: Any) -> bool:
    if isinstance(annotation, type):
        return isinstance(value, annotation)
    if not isinstance(value, Expr):
        return False
    given = scalar.dtype_of(value)
    is_raw = isinstance(annotation, PointerType) and annotation.is_raw()
    return isinstance(given, PointerType) if is_raw else given == annotation


def _host_value(value: Any, kind: type, name: str) -> Any:
    found = known(value)
    if is_runtime(found):
        raise errors.LanguageError(
            "TK106",
            f"{name} is a compile-time {kind.__name__}, but its value exists only at run time",
            help="annotate it as a run-time type, for example int32",
        )
    if kind is float and isinstance(found, int) and not isinstance(found, bool):
        return float(found)
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        raise errors.LanguageError(
            "TK215", f"{name} is a compile-time {kind.__name__}, but its value is {describe(found)}"
        )
    return found
