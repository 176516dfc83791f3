# SPDX-License-Identifier: Apache-2.0
"""Which dtype two operands meet in, when the front end must make them one."""

from __future__ import annotations

from tilekit import dtypes
from tilekit.diag.errors import LanguageError
from tilekit.dtypes import DataType

_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_INTEGERS = (dtypes.int16, dtypes.int32, dtypes.int64)


def common(left: DataType, right: DataType) -> DataType:
    """The narrowest dtype that holds all values of both.

    Truth values become numbers, an integer becomes the other side's float whatever its width, and a signed and an
    unsigned integer meet in a signed one; `uint64` and a signed integer have nothing in common.
    """
    for dtype in (left, right):
        if dtype.is_vector():
            raise LanguageError("TK211", f"{dtype} is a vector, and this works on scalars")
    if left is right:
        return left
    if left.is_boolean() or right.is_boolean():
        return right if left.is_boolean() else left
    if left.is_float() != right.is_float():
        return left if left.is_float() else right
    for dtype in (left, right, *(_FLOATS if left.is_float() else _INTEGERS)):
        if _holds(dtype, left) and _holds(dtype, right):
            return dtype
    raise LanguageError(
        "TK212", f"{left} and {right} have no common type", help="cast one of them, and so say how it may wrap"
    )


def _holds(dtype: DataType, other: DataType) -> bool:
    """Whether every value of `other` is one of `dtype`."""
    if dtype.is_float():
        return dtype.exponent_nbits >= other.exponent_nbits and dtype.mantissa_nbits >= other.mantissa_nbits
    return dtype.min_value <= other.min_value and other.max_value <= dtype.max_value
