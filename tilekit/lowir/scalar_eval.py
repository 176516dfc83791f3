# SPDX-License-Identifier: Apache-2.0
"""What a scalar expression is worth: on NumPy values, one or a whole array at a time, and as integer Python text.

Every operation rounds or wraps to its dtype at once, as the machine's instructions do. Small floats are `ml_dtypes`.
Both branches of `where`, and both sides of `and` and `or`, are evaluated: expressions have no effects, and what has no
meaning (a shift by more than the width) gives something here instead of an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilekit import dtypes
from tilekit.diag.errors import LanguageError
from tilekit.dtypes import DataType, PointerType
from tilekit.lowir import functions, scalar
from tilekit.lowir.nodes import (
    Add,
    BinaryExpr,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Call,
    Cast,
    Constant,
    Div,
    Equal,
    Expr,
    IfThenElse,
    LeftShift,
    LessEqual,
    LessThan,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    Mod,
    Multiply,
    Neg,
    NotEqual,
    RightShift,
    Sub,
    UnaryExpr,
    Var,
)


def evaluate(e: Expr, env: Mapping[Var, Any]) -> Any:
    """The value of an expression, where `env` gives each variable a NumPy value of its dtype, a scalar or an array.

    Arrays broadcast against each other. A pointer is an address in bytes.
    """
    with np.errstate(all="ignore"):
        return _Evaluation(env).value(e)


def number(given: Any, dtype: DataType) -> Any:
    """A Python or NumPy number, or a literal, as the NumPy value of a variable of this dtype."""
    plain = given.item() if isinstance(given, np.generic) else given
    plain = plain.rounded if isinstance(plain, dtypes.Literal) else plain
    return dtypes.quantize(np.asarray(dtype.constant(plain).value), dtype)


class _Evaluation:
    """One evaluation; a shared part of the expression is computed once."""

    def __init__(self, env: Mapping[Var, Any]) -> None:
        self.env = env
        self.known: dict[int, Any] = {}

    def value(self, e: Expr) -> Any:
        if id(e) not in self.known:
            self.known[id(e)] = _typed(self.compute(e), scalar.dtype_of(e))
        return self.known[id(e)]

    def compute(self, e: Expr) -> Any:
        """The value in any NumPy dtype that holds it; `value` wraps or rounds it."""
        match e:
            case Constant():
                return e.value
            case Var():
                return self.env[e]
            case Cast():
                return self.value(e.expr)
            case IfThenElse():
                return np.where(self.value(e.cond), self.value(e.then_expr), self.value(e.else_expr))
            case BinaryExpr() if isinstance(scalar.dtype_of(e.a), PointerType):
                return self.pointers(e)
            case BinaryExpr() | UnaryExpr() | Call():
                return _operation(e)(*(functions.wide(self.value(part)) for part in scalar.children(e)))
            case _:
                raise LanguageError("TK216", f"{type(e).__name__} has no value outside a kernel")

    def pointers(self, e: BinaryExpr) -> Any:
        a, b, pointer = self.value(e.a), self.value(e.b), scalar.dtype_of(e.a)
        if isinstance(e, (Add, Sub)) and isinstance(pointer, PointerType):
            b = np.multiply(b, pointer.base.nbytes, dtype=np.int64).astype(np.uint64)  # type: ignore[union-attr]
        return _OPERATIONS[type(e)](a, b)


def _typed(value: Any, type_: scalar.Type) -> Any:
    """`value` as a NumPy value of `type_`: converted, wrapped or rounded as `dtypes.convert` says."""
    if isinstance(type_, PointerType):
        return np.asarray(value).astype(np.uint64)[()]
    return dtypes.quantize(np.asarray(value), type_)


# ---------------------------------------------------------------------------------------------------------- operations


def _operation(e: Expr) -> Callable[..., Any]:
    if isinstance(e, Call):
        return functions.FUNCTIONS[scalar.function_name(e)].numpy
    dtype = scalar.dtype_of(e)
    if isinstance(e, Div) and isinstance(dtype, DataType) and dtype.is_integer():
        return np.floor_divide
    return _OPERATIONS[type(e)]


_OPERATIONS: Mapping[type[Expr], Callable[..., Any]] = {
    Neg: np.negative,
    BitwiseNot: np.invert,
    LogicalNot: np.logical_not,
    Add: np.add,
    Sub: np.subtract,
    Multiply: np.multiply,
    Div: np.divide,
    Mod: np.remainder,
    BitwiseAnd: np.bitwise_and,
    BitwiseOr: np.bitwise_or,
    BitwiseXor: np.bitwise_xor,
    LeftShift: np.left_shift,
    RightShift: np.right_shift,
    LessThan: np.less,
    LessEqual: np.less_equal,
    Equal: np.equal,
    NotEqual: np.not_equal,
    LogicalAnd: np.logical_and,
    LogicalOr: np.logical_or,
}

# ---------------------------------------------------------------------------------------------------------- host text


def to_host(e: Expr, name_of: Callable[[Var], str]) -> str:
    """Integer Python text over parameter names with the meaning of `e`, as far as its integers do not overflow.

    Only what a launch needs: `+ - * // % min max abs`, shifts and masks by constants, comparisons, truth values,
    `if … else`; casts between integers vanish. Anything else is an error.
    """
    match e:
        case Constant() if not scalar.dtype_of(e).is_float():  # type: ignore[union-attr]  # constants are no pointers
            return repr(e.value) if e.value >= 0 else f"({e.value})"
        case Var():
            return name_of(e)
        case Cast() if not _involves_float(e) and scalar.dtype_of(e) != dtypes.boolean:
            return to_host(e.expr, name_of)
        case IfThenElse():
            then, condition, other = (to_host(part, name_of) for part in (e.then_expr, e.cond, e.else_expr))
            return f"({then} if {condition} else {other})"
        case LogicalNot():
            return f"(not {to_host(e.a, name_of)})"
        case Neg():
            return f"(-{to_host(e.a, name_of)})"
        case LeftShift() | RightShift() if isinstance(e.b, Constant):
            return f"({to_host(e.a, name_of)} {'*' if isinstance(e, LeftShift) else '//'} {1 << e.b.value})"
        case BitwiseAnd() if (mask := _low_bits(e.b)) is not None:
            return f"({to_host(e.a, name_of)} % {mask + 1})"
        case BitwiseAnd() if (mask := _low_bits(scalar.bitwise_not(e.b))) is not None:
            return f"({to_host(e.a, name_of)} // {mask + 1} * {mask + 1})"
        case BinaryExpr() if type(e) in _HOST_OPERATORS and not _involves_float(e):
            return f"({to_host(e.a, name_of)} {_HOST_OPERATORS[type(e)]} {to_host(e.b, name_of)})"
        case Call() if scalar.function_name(e) in _HOST_CALLS and not _involves_float(e):
            args = [to_host(arg, name_of) for arg in e.args]
            return _HOST_CALLS[scalar.function_name(e)].format(*args)
        case _:
            raise LanguageError(
                "TK214",
                f"{type(e).__name__} on {scalar.dtype_of(e)} cannot be computed before a launch",
                help="the grid is made of integer parameters with + - * // % min max and comparisons",
            )


def _low_bits(e: Expr) -> int | None:
    """The number that a constant is, if it is a mask of low bits: 2^k - 1."""
    value = scalar.constant_value(e)
    return value if value is not None and value > 0 and value & (value + 1) == 0 else None


def _involves_float(e: Expr) -> bool:
    """Whether a part of the operation is a float, which host text does not compute with."""
    types = [scalar.dtype_of(part) for part in (e, *scalar.children(e))]
    return any(isinstance(type_, PointerType) or type_.is_float() for type_ in types)


_HOST_OPERATORS: Mapping[type[BinaryExpr], str] = {
    Add: "+",
    Sub: "-",
    Multiply: "*",
    Div: "//",
    Mod: "%",
    LessThan: "<",
    LessEqual: "<=",
    Equal: "==",
    NotEqual: "!=",
    LogicalAnd: "and",
    LogicalOr: "or",
}

_HOST_CALLS: Mapping[str, str] = {
    "minimum": "min({}, {})",
    "maximum": "max({}, {})",
    "abs": "max({0}, -{0})",
    "c_div": "({} // {})",
    "c_mod": "({} % {})",
}
