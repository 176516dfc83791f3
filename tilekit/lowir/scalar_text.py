# SPDX-License-Identifier: Apache-2.0
"""Scalar expressions as Python text, and back: `(block_idx_x * i32(128) + i) < n`.

Literals carry their type, `f16(0.5)`, `f32("inf")`; the same form around anything else is a cast; functions and `where`
read as Python (`exp(x)`, `a if c else b`), and a cast to or from a pointer is `cast(p, "~f16")`. Reading calls the
constructors of `scalar`, never Python's operators, so what was printed comes back node by node.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping

from tilekit import dtypes
from tilekit.diag.errors import LanguageError
from tilekit.dtypes import DataType, Number, PointerType
from tilekit.lowir import scalar
from tilekit.lowir.functions import FUNCTIONS
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
    Var,
)

# Python's precedence, loosest first
_TERNARY, _OR, _AND, _NOT, _COMPARE, _BIT_OR, _BIT_XOR, _BIT_AND, _SHIFT, _SUM, _PRODUCT, _UNARY, _ATOM = range(13)

_OPERATORS: Mapping[type[BinaryExpr], tuple[str, int]] = {
    LogicalOr: ("or", _OR),
    LogicalAnd: ("and", _AND),
    LessThan: ("<", _COMPARE),
    LessEqual: ("<=", _COMPARE),
    Equal: ("==", _COMPARE),
    NotEqual: ("!=", _COMPARE),
    BitwiseOr: ("|", _BIT_OR),
    BitwiseXor: ("^", _BIT_XOR),
    BitwiseAnd: ("&", _BIT_AND),
    LeftShift: ("<<", _SHIFT),
    RightShift: (">>", _SHIFT),
    Add: ("+", _SUM),
    Sub: ("-", _SUM),
    Multiply: ("*", _PRODUCT),
    Div: ("/", _PRODUCT),
    Mod: ("%", _PRODUCT),
}


def to_text(e: Expr, name_of: Callable[[Var], str] = scalar.name_hint) -> str:
    """The text of an expression; `name_of` must give different variables different names."""
    return _print(e, name_of, _TERNARY)


def literal(dtype: DataType, value: Number) -> str:
    """A number with its type, as `from_text` reads it."""
    if dtype.is_boolean():
        return str(bool(value))
    if not isinstance(value, float):
        return f"{dtype.short_name}({value})"
    if not math.isfinite(value):
        return f'{dtype.short_name}("{value}")'
    return f"{dtype.short_name}({shortest(dtype, value)})"


def shortest(dtype: DataType, value: float) -> str:
    """The shortest decimal that is this finite number in this dtype."""
    texts = (repr(float(f"{value:.{digits}g}")) for digits in range(1, 18))
    return next(text for text in texts if dtypes.convert(float(text), dtype) == value)


def _print(e: Expr, name_of: Callable[[Var], str], outer: int) -> str:
    """The text of `e`, in parentheses if it binds less tightly than `outer`."""
    text, inner = _form(e, name_of)
    return f"({text})" if inner < outer else text


def _form(e: Expr, name_of: Callable[[Var], str]) -> tuple[str, int]:
    """The text of `e` and how tightly it binds."""
    match e:
        case Var():
            return name_of(e), _ATOM
        case Constant():
            dtype = scalar.dtype_of(e)
            assert isinstance(dtype, DataType)
            return literal(dtype, e.value), _ATOM
        case Cast():
            return _cast_text(e, name_of), _ATOM
        case Call():
            args = ", ".join(_print(arg, name_of, _TERNARY) for arg in e.args)
            return f"{scalar.function_name(e)}({args})", _ATOM
        case IfThenElse():
            then, condition = (_print(part, name_of, _OR) for part in (e.then_expr, e.cond))
            return f"{then} if {condition} else {_print(e.else_expr, name_of, _TERNARY)}", _TERNARY
        case LogicalNot():
            return f"not {_print(e.a, name_of, _NOT)}", _NOT
        case Neg():
            return f"-{_print(e.a, name_of, _UNARY)}", _UNARY
        case BitwiseNot():
            return f"~{_print(e.a, name_of, _UNARY)}", _UNARY
        case BinaryExpr():
            return _binary_form(e, name_of)
        case _:
            raise LanguageError("TK216", f"{type(e).__name__} is not part of the scalar language")


def _binary_form(e: BinaryExpr, name_of: Callable[[Var], str]) -> tuple[str, int]:
    symbol, level = _OPERATORS[type(e)]
    if isinstance(e, Div) and scalar.is_integer(scalar.dtype_of(e)):
        symbol = "//"
    if level == _COMPARE:  # both sides in parentheses: nobody has to know what binds tighter
        return f"{_print(e.a, name_of, _UNARY)} {symbol} {_print(e.b, name_of, _UNARY)}", level
    return f"{_print(e.a, name_of, level)} {symbol} {_print(e.b, name_of, level + 1)}", level


def _cast_text(e: Cast, name_of: Callable[[Var], str]) -> str:
    target, operand = scalar.dtype_of(e), _print(e.expr, name_of, _TERNARY)
    if isinstance(target, PointerType) or isinstance(scalar.dtype_of(e.expr), PointerType):
        return f'cast({operand}, "{target.short_name}")'
    return f"{target.short_name}({operand})"


# -------------------------------------------------------------------------------------------------------------- reading

_READ_BINARY: Mapping[type[ast.operator], Callable[[Expr, Expr], Expr]] = {
    ast.Add: scalar.add,
    ast.Sub: scalar.sub,
    ast.Mult: scalar.mul,
    ast.Div: scalar.div,
    ast.FloorDiv: scalar.floordiv,
    ast.Mod: scalar.mod,
    ast.BitAnd: scalar.bitwise_and,
    ast.BitOr: scalar.bitwise_or,
    ast.BitXor: scalar.bitwise_xor,
    ast.LShift: scalar.shl,
    ast.RShift: scalar.shr,
}

_READ_COMPARE: Mapping[type[ast.cmpop], Callable[[Expr, Expr], Expr]] = {
    ast.Lt: scalar.lt,
    ast.LtE: scalar.le,
    ast.Gt: scalar.gt,
    ast.GtE: scalar.ge,
    ast.Eq: scalar.eq,
    ast.NotEq: scalar.ne,
}

_READ_UNARY: Mapping[type[ast.unaryop], Callable[[Expr], Expr]] = {
    ast.USub: scalar.neg,
    ast.Invert: scalar.bitwise_not,
    ast.Not: scalar.logical_not,
}


def from_text(node: ast.expr, lookup: Callable[[str], Var]) -> Expr:
    """The expression that a piece of parsed text says; `lookup` gives the variable of a name."""
    match node:
        case ast.Name(name):
            return lookup(name)
        case ast.Constant(bool() as truth):
            return scalar.constant(dtypes.boolean, truth)
        case ast.BinOp(left, operator, right) if type(operator) in _READ_BINARY:
            return _READ_BINARY[type(operator)](from_text(left, lookup), from_text(right, lookup))
        case ast.UnaryOp(operator, operand):
            return _READ_UNARY[type(operator)](from_text(operand, lookup))
        case ast.Compare(left, [operator], [right]) if type(operator) in _READ_COMPARE:
            return _READ_COMPARE[type(operator)](from_text(left, lookup), from_text(right, lookup))
        case ast.BoolOp(operator, values):
            return _read_logic(operator, [from_text(value, lookup) for value in values])
        case ast.IfExp(condition, then, other):
            return scalar.where(from_text(condition, lookup), from_text(then, lookup), from_text(other, lookup))
        case ast.Call(ast.Name(name), args, []):
            return _read_call(name, args, lookup)
        case _:
            raise LanguageError("TK215", f"{ast.unparse(node)!r} is not the text of a scalar expression")


def _read_logic(operator: ast.boolop, values: list[Expr]) -> Expr:
    combine = scalar.logical_and if isinstance(operator, ast.And) else scalar.logical_or
    result = values[0]
    for value in values[1:]:
        result = combine(result, value)
    return result


def _read_call(name: str, args: list[ast.expr], lookup: Callable[[str], Var]) -> Expr:
    if name in FUNCTIONS:
        return scalar.call(name, [from_text(arg, lookup) for arg in args])
    match name, args:
        case "cast", [pointer, ast.Constant(str() as target)]:
            return scalar.cast(from_text(pointer, lookup), dtypes.parse_type(target))
        case _, [arg]:
            number = _number(arg)
            if number is not None:
                return scalar.constant(dtypes.parse(name), number)
            return scalar.cast(from_text(arg, lookup), dtypes.parse(name))
        case _:
            raise LanguageError("TK215", f"{name!r} is called with {len(args)} arguments, and no function is meant")


def _number(node: ast.expr) -> Number | None:
    """The number of a literal: `1`, `-1`, `0.5`, `"inf"`; None for anything else."""
    match node:
        case ast.Constant(int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Constant("inf" | "-inf" | "nan" as special):
            return float(special)
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
        case _:
            return None
