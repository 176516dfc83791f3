# SPDX-License-Identifier: Apache-2.0
"""What Python's operators mean on the values of a kernel: host values, scalar expressions and tiles."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.instructions.elementwise import (
    AddInst,
    DivInst,
    ElementwiseBinaryInst,
    ElementwiseUnaryInst,
    MulInst,
    SubInst,
)
from tilekit.ir.surface import describe
from tilekit.ir.tensor import RegisterTensor, Tensor
from tilekit.lang.methods import KernelMethods
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr

HOST: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.MatMult: operator.matmul,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip

SCALAR: Mapping[type[ast.AST], Callable[[Expr, Expr], Expr]] = {
    ast.Add: scalar.add, ast.Sub: scalar.sub, ast.Mult: scalar.mul, ast.Div: scalar.div,
    ast.FloorDiv: scalar.floordiv, ast.Mod: scalar.mod, ast.LShift: scalar.shl, ast.RShift: scalar.shr,
    ast.BitAnd: scalar.bitwise_and, ast.BitOr: scalar.bitwise_or, ast.BitXor: scalar.bitwise_xor,
    ast.Eq: scalar.eq, ast.NotEq: scalar.ne, ast.Lt: scalar.lt, ast.LtE: scalar.le,
    ast.Gt: scalar.gt, ast.GtE: scalar.ge,
}  # fmt: skip

TILE_CLASSES = {ast.Add: AddInst, ast.Sub: SubInst, ast.Mult: MulInst, ast.Div: DivInst}
TILE_OPS: Mapping[type[ast.AST], str] = {
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.LShift: "left_shift", ast.RShift: "right_shift",
    ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal",
}  # fmt: skip

SYMBOLS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not",
}  # fmt: skip


def is_runtime(value: object) -> bool:
    """Whether the value exists only when the kernel runs."""
    return isinstance(value, (Expr, Tensor))


def is_number(value: object) -> bool:
    return isinstance(value, (bool, int, float, Expr, dtypes.Literal))


def binary(op: ast.AST, a: Any, b: Any, kernel: KernelMethods, out: RegisterTensor | None = None) -> Any:
    """`a op b`; on tiles the result goes to `out` if it is given."""
    kind = type(op)
    if isinstance(a, RegisterTensor) or isinstance(b, RegisterTensor):
        return _tile_binary(kind, a, b, kernel, out)
    if not is_runtime(a) and not is_runtime(b) and not _literals(a, b):
        return HOST[kind](a, b)
    if kind in (ast.Is, ast.IsNot):
        return HOST[kind](a, b)
    if kind not in SCALAR or not (is_number(a) and is_number(b)):
        raise _unsupported(kind, a, b)
    if kind is ast.Div and not _is_float(a) and not _is_float(b):
        raise errors.LanguageError(
            "TK214",
            "cannot divide run-time integers with /",
            help="use // for the integer quotient, or float32(a) / float32(b)",
        )
    left, right = paired(a, b)
    if kind in (ast.LShift, ast.RShift):
        right = scalar.cast(right, scalar.dtype_of(left))
    return SCALAR[kind](left, right)


def _literals(a: object, b: object) -> bool:
    return isinstance(a, dtypes.Literal) or isinstance(b, dtypes.Literal)


def _is_float(value: Any) -> bool:
    if isinstance(value, Expr):
        dtype = scalar.dtype_of(value)
        return isinstance(dtype, DataType) and dtype.is_float()
    return value.dtype.is_float() if isinstance(value, dtypes.Literal) else isinstance(value, float)


def paired(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Both sides as expressions of one dtype; a Python number takes the dtype of the other side where it fits."""
    if isinstance(a, Expr) and not isinstance(b, (Expr, dtypes.Literal)):
        return scalar.promote(a, _like(b, a))
    if isinstance(b, Expr) and not isinstance(a, (Expr, dtypes.Literal)):
        return scalar.promote(_like(a, b), b)
    return scalar.promote(scalar.as_expr(a), scalar.as_expr(b))


def _like(number: Any, other: Expr) -> Expr:
    dtype = scalar.dtype_of(other)
    if isinstance(dtype, PointerType) or dtype.is_boolean():
        return scalar.as_expr(number)
    if isinstance(number, float) and not dtype.is_float():
        return scalar.as_expr(number)
    if isinstance(number, int) and dtype.is_integer() and not dtype.min_value <= number <= dtype.max_value:
        return scalar.as_expr(number)
    return scalar.constant(dtype, number)


def _tile_binary(kind: type[ast.AST], a: Any, b: Any, kernel: KernelMethods, out: RegisterTensor | None) -> Any:
    if kind in (ast.Gt, ast.GtE):
        return _tile_binary(ast.Lt if kind is ast.Gt else ast.LtE, b, a, kernel, out)
    if not all(isinstance(side, RegisterTensor) or is_number(side) for side in (a, b)):
        raise _unsupported(kind, a, b)
    if kind not in TILE_CLASSES and kind not in TILE_OPS:
        raise _unsupported(kind, a, b)
    x, y = kernel._tiles(SYMBOLS[kind], a, b)
    if kind in TILE_CLASSES:
        return kernel._emit(TILE_CLASSES[kind].create(x, y, out))
    return kernel._emit(ElementwiseBinaryInst.create(x, y, TILE_OPS[kind], out))


def unary(op: ast.AST, value: Any, kernel: KernelMethods) -> Any:
    kind = type(op)
    if isinstance(value, dtypes.Literal):
        value = scalar.as_expr(value)
    if not is_runtime(value):
        return HOST[kind](value)
    if isinstance(value, RegisterTensor) and kind in (ast.USub, ast.Not):
        name = "neg" if kind is ast.USub else "logical_not"
        return kernel._emit(ElementwiseUnaryInst.create(value, name))
    if isinstance(value, Expr) and kind is ast.USub:
        return scalar.neg(value)
    if isinstance(value, Expr) and kind is ast.Not:
        return scalar.logical_not(truth(value))
    if isinstance(value, Expr) and kind is ast.Invert:
        return scalar.bitwise_not(value)
    if kind is ast.UAdd and is_runtime(value):
        return value
    raise errors.LanguageError("TK214", f"cannot compute {SYMBOLS[kind]} of {describe(value)}")


def truth(value: Any) -> Any:
    """The value as a condition: a Python bool where it is known now, else a boolean expression."""
    if isinstance(value, dtypes.Literal):
        return bool(value)
    if isinstance(value, Tensor):
        raise errors.LanguageError(
            "TK215",
            f"{describe(value)} is no single truth value",
            help="use self.where for a choice per element, or self.any and self.all",
        )
    if not isinstance(value, Expr):
        return bool(value)
    constant = scalar.constant_value(value)
    return bool(constant) if constant is not None else scalar.cast(value, dtypes.boolean)


def _unsupported(kind: type[ast.AST], a: Any, b: Any) -> errors.LanguageError:
    return errors.LanguageError("TK214", f"cannot compute {describe(a)} {SYMBOLS[kind]} {describe(b)}")
