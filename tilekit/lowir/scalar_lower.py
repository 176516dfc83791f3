# SPDX-License-Identifier: Apache-2.0
"""From the scalar language to Hidet IR, whose operators mean what C's mean when they are printed.

Division is the difference: `//` and `%` become C's operators where it is known that the dividend is not negative and
that the divisor is positive, and calls of `tk::floordiv` and `tk::floormod` elsewhere. C has no meaning for a division
by zero: a compiler would conclude that no divisor ever is zero, and leave out the `where` around it. Conversions for
which C has no meaning, or none for half, become `tk::cast`. Functions are looked up in `prims`, so a dtype that has
none there is an error here.
"""

from __future__ import annotations

from collections.abc import Callable

from tilekit import dtypes
from tilekit.dtypes import DataType
from tilekit.lowir import cxx, prims, scalar
from tilekit.lowir.functions import FUNCTIONS
from tilekit.lowir.nodes import (
    Add,
    Address,
    Call,
    Cast,
    Constant,
    Dereference,
    Div,
    Expr,
    Mod,
    Multiply,
    Neg,
    Sub,
    TensorElement,
    Var,
)

# answers for integers of the scalar language whether no value of theirs is below a number
AtLeast = Callable[[Expr, int], bool]


def lower(e: Expr, at_least: AtLeast) -> Expr:
    """`e` with C's meaning; `e` itself where it has that already."""
    match e:
        case Var() | Constant():
            return e
        case Div() | Mod() if scalar.is_integer(scalar.dtype_of(e)):
            plain = at_least(e.a, 0) and at_least(e.b, 1)
            a, b = lower(e.a, at_least), lower(e.b, at_least)
            return _division(e, a, b) if plain else prims.call(_FLOOR[type(e)], a, b)
        case Call() if scalar.function_name(e) in ("c_div", "c_mod"):
            a, b = (lower(arg, at_least) for arg in e.args)
            return Div(a, b) if scalar.function_name(e) == "c_div" else Mod(a, b)
        case Call() if scalar.function_name(e) in FUNCTIONS:
            return prims.call(e.func_var.name or "", *(lower(arg, at_least) for arg in e.args))
        case Cast():
            return _lower_cast(e, lower(e.expr, at_least))
        case _:
            return _with_parts(e, [lower(part, at_least) for part in scalar.children(e)])


def wrapping(e: Expr, may_wrap: Callable[[Expr], bool]) -> Expr:
    """`e` with calls of `tk::add` and its like where a signed result may not fit; no index is touched."""
    if isinstance(e, TensorElement):
        return e
    parts = [wrapping(part, may_wrap) for part in scalar.children(e)]
    if not isinstance(e, (Add, Sub, Multiply, Neg)) or not _overflows_in_c(e) or not may_wrap(e):
        return _with_parts(e, parts)
    match e:
        case Neg():
            return prims.call("tk::negate", *parts)
        case _:
            return prims.call(_WRAPPING[type(e)], *parts)


_WRAPPING: dict[type[Expr], str] = {Add: "tk::add", Sub: "tk::sub", Multiply: "tk::mul"}


def _overflows_in_c(e: Expr) -> bool:
    """Whether C computes in a signed type that does not hold every result: narrow numbers are computed in int.

    It does so right with a negative int16, too, and a compiler for GPUs does not: see `tk::negate`.
    """
    dtype = scalar.dtype_of(e)
    if not isinstance(dtype, DataType) or not dtype.is_integer():
        return False
    if isinstance(e, Neg) and dtype == dtypes.int16:
        return True
    return dtype.nbits >= 32 if dtype.is_signed() else dtype.nbits == 16 and isinstance(e, Multiply)


_FLOOR: dict[type[Expr], str] = {Div: "tk::floordiv", Mod: "tk::floormod"}


def _division(e: Div | Mod, a: Expr, b: Expr) -> Expr:
    return e if a is e.a and b is e.b else type(e)(a, b)


def _lower_cast(e: Cast, operand: Expr) -> Expr:
    source, target = scalar.dtype_of(e.expr), scalar.dtype_of(e)
    if isinstance(source, DataType) and isinstance(target, DataType) and not _is_plain(source, target):
        return prims.call(f"tk::cast<{cxx.type_name(target)}>", operand)
    return e if operand is e.expr else Cast(operand, e.target_type)


def _is_plain(source: DataType, target: DataType) -> bool:
    """Whether C's conversion is the scalar language's: all but float to integer, and but those of the 16-bit floats."""
    if source.is_any_float16() or target.is_any_float16():
        return False
    return not source.is_float() or target in (dtypes.float32, dtypes.float64)


def _with_parts(e: Expr, parts: list[Expr]) -> Expr:
    """`e` with lowered operands, unfolded: constructors know the scalar language only."""
    if all(new is old for new, old in zip(parts, scalar.children(e), strict=True)):
        return e
    match e:
        case Call():
            return Call(e.func_var, tuple(parts))
        case Cast():
            return Cast(parts[0], e.target_type)
        case TensorElement():
            return TensorElement(parts[0], tuple(parts[1:]))
        case Address():
            return Address(parts[0])
        case Dereference():
            return Dereference(parts[0])
        case _:
            return type(e)(*parts)
