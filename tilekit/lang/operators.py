# SPDX-License-Identifier: Apache-2.0
"""What Python's operators mean on the values of a kernel: host values, scalar expressions and tiles."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Container, Mapping
from typing import Any, TypeAlias, cast

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
from tilekit.ir.instructions.register import AllocateRegisterInst
from tilekit.ir.surface import Number, describe, typed
from tilekit.ir.tensor import RegisterTensor, Tensor
from tilekit.lang import values
from tilekit.lang.builder import Builder
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr

Op: TypeAlias = "type[ast.AST]"


def _in(a: Any, b: Container[Any]) -> bool:
    return a in b


def _not_in(a: Any, b: Container[Any]) -> bool:
    return a not in b


# the operator module does not say what its functions take
_operator: Any = operator

HOST: Mapping[Op, Callable[..., Any]] = {
    ast.Add: _operator.add, ast.Sub: _operator.sub, ast.Mult: _operator.mul, ast.Div: _operator.truediv,
    ast.FloorDiv: _operator.floordiv, ast.Mod: _operator.mod, ast.Pow: _operator.pow, ast.MatMult: _operator.matmul,
    ast.LShift: _operator.lshift, ast.RShift: _operator.rshift, ast.BitAnd: _operator.and_, ast.BitOr: _operator.or_,
    ast.BitXor: _operator.xor, ast.Eq: _operator.eq, ast.NotEq: _operator.ne, ast.Lt: _operator.lt,
    ast.LtE: _operator.le, ast.Gt: _operator.gt, ast.GtE: _operator.ge, ast.Is: _operator.is_,
    ast.IsNot: _operator.is_not, ast.USub: _operator.neg, ast.UAdd: _operator.pos, ast.Invert: _operator.invert,
    ast.Not: _operator.not_, ast.In: _in, ast.NotIn: _not_in,
}  # fmt: skip

IN_PLACE: Mapping[Op, Callable[..., Any]] = {
    ast.Add: _operator.iadd, ast.Sub: _operator.isub, ast.Mult: _operator.imul, ast.Div: _operator.itruediv,
    ast.FloorDiv: _operator.ifloordiv, ast.Mod: _operator.imod, ast.Pow: _operator.ipow,
    ast.MatMult: _operator.imatmul, ast.LShift: _operator.ilshift, ast.RShift: _operator.irshift,
    ast.BitAnd: _operator.iand, ast.BitOr: _operator.ior, ast.BitXor: _operator.ixor,
}  # fmt: skip

SCALAR: Mapping[Op, Callable[[Expr, Expr], Expr]] = {
    ast.Add: scalar.add, ast.Sub: scalar.sub, ast.Mult: scalar.mul, ast.Div: scalar.div,
    ast.FloorDiv: scalar.floordiv, ast.Mod: scalar.mod, ast.LShift: scalar.shl, ast.RShift: scalar.shr,
    ast.BitAnd: scalar.bitwise_and, ast.BitOr: scalar.bitwise_or, ast.BitXor: scalar.bitwise_xor,
    ast.Eq: scalar.eq, ast.NotEq: scalar.ne, ast.Lt: scalar.lt, ast.LtE: scalar.le,
    ast.Gt: scalar.gt, ast.GtE: scalar.ge,
}  # fmt: skip

LOGICAL: Mapping[Op, Callable[[Expr, Expr], Expr]] = {
    ast.BitAnd: scalar.logical_and, ast.BitOr: scalar.logical_or, ast.BitXor: scalar.ne,
}  # fmt: skip

TILE_CLASSES: Mapping[Op, type[AddInst | SubInst | MulInst | DivInst]] = {
    ast.Add: AddInst, ast.Sub: SubInst, ast.Mult: MulInst, ast.Div: DivInst,
}  # fmt: skip

TILE_OPS: Mapping[Op, str] = {
    ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.LShift: "left_shift", ast.RShift: "right_shift",
    ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal",
}  # fmt: skip

SYMBOLS: Mapping[Op, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~",
    ast.Not: "not",
}  # fmt: skip

ADVICE: Mapping[Op, str] = {
    ast.Pow: "multiply, or use self.exp and self.log",
    ast.MatMult: "multiply matrices with self.dot",
}


def binary(op: ast.AST, a: Any, b: Any, builder: Builder, out: RegisterTensor | None = None) -> Any:
    """`a op b`; on tiles the result goes to `out` if it is given."""
    kind = type(op)
    if kind in (ast.Is, ast.IsNot):
        return HOST[kind](a, b)
    if kind in (ast.FloorDiv, ast.Mod) and values.is_runtime(a) and _is_zero(b):
        raise errors.LanguageError("TK714", f"{_shown(a)} {SYMBOLS[kind]} 0 divides by zero")
    if isinstance(a, RegisterTensor) or isinstance(b, RegisterTensor):
        return _tile_binary(kind, a, b, builder, out)
    return scalar_binary(kind, a, b)


def scalar_binary(kind: Op, a: Any, b: Any) -> Any:
    """An operator on host values and scalar expressions."""
    if kind in (ast.In, ast.NotIn) and (values.is_runtime(a) or _holds_runtime(b)):
        raise errors.LanguageError("TK106", f"{SYMBOLS[kind]} looks only for values that are known at compile time")
    if not any(isinstance(side, (Expr, Tensor, dtypes.Literal)) for side in (a, b)):
        return HOST[kind](a, b)
    if kind not in SCALAR or not (values.is_number(a) and values.is_number(b)):
        raise _unsupported(kind, a, b)
    if kind is ast.Div and not _is_float(a) and not _is_float(b):
        raise errors.LanguageError(
            "TK214",
            "cannot divide run-time integers with /",
            help="use // for the integer quotient, or float32(a) / float32(b)",
        )
    if kind in (ast.LShift, ast.RShift):
        return _shift(kind, a, b)
    if isinstance(_dtype(a), PointerType) or isinstance(_dtype(b), PointerType):
        return _on_pointer(kind, a, b)
    left, right = paired(a, b)
    if scalar.dtype_of(left) is dtypes.boolean and scalar.dtype_of(right) is dtypes.boolean:
        return _on_truths(kind, left, right)
    return SCALAR[kind](left, right)


def _on_truths(kind: Op, left: Expr, right: Expr) -> Expr:
    """As Python's bool: `& | ^` give a truth value, arithmetic gives an integer."""
    if kind in LOGICAL:
        return LOGICAL[kind](left, right)
    if kind in (ast.Eq, ast.NotEq):
        return SCALAR[kind](left, right)
    return SCALAR[kind](scalar.cast(left, dtypes.int32), scalar.cast(right, dtypes.int32))


def _shift(kind: Op, a: Any, b: Any) -> Expr:
    amount = scalar.as_expr(b)
    left = scalar.as_expr(a) if values.is_runtime(a) or isinstance(a, dtypes.Literal) else _like(a, amount)
    return SCALAR[kind](left, scalar.cast(amount, scalar.dtype_of(left)))


def _on_pointer(kind: Op, a: Any, b: Any) -> Expr:
    if kind is ast.Add and not isinstance(_dtype(a), PointerType):
        a, b = b, a
    if kind not in (ast.Add, ast.Sub, ast.Eq, ast.NotEq) or not isinstance(a, Expr):
        raise _unsupported(kind, a, b)
    return SCALAR[kind](a, scalar.as_expr(b))


def _holds_runtime(container: Any) -> bool:
    if isinstance(container, (tuple, list, set, frozenset)):
        return any(map(_holds_runtime, cast("list[Any]", container)))
    if isinstance(container, dict):
        return any(map(_holds_runtime, cast("dict[Any, Any]", container)))
    return values.is_runtime(container)


def _dtype(value: Any) -> DataType | PointerType | None:
    if isinstance(value, dtypes.Literal):
        return value.dtype
    return scalar.dtype_of(value) if isinstance(value, Expr) else None


def _is_zero(value: Any) -> bool:
    known = values.known(value)
    return isinstance(known, int) and not isinstance(known, bool) and known == 0


def _is_float(value: Any) -> bool:
    dtype = _dtype(value)
    return isinstance(value, float) if dtype is None else isinstance(dtype, DataType) and dtype.is_float()


def paired(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Both sides as expressions of one dtype; a Python number takes the dtype of the other side where it fits."""
    if isinstance(a, Expr) and not isinstance(b, (Expr, dtypes.Literal)):
        return scalar.promote(a, _like(b, a))
    if isinstance(b, Expr) and not isinstance(a, (Expr, dtypes.Literal)):
        return scalar.promote(_like(a, b), b)
    return scalar.promote(scalar.as_expr(a), scalar.as_expr(b))


def _like(number: Any, other: Expr) -> Expr:
    dtype = scalar.dtype_of(other)
    if isinstance(dtype, PointerType) or dtype.is_boolean() or not values.is_exact(number, dtype):
        return scalar.as_expr(number)
    return scalar.constant(dtype, number)


def _tile_binary(kind: Op, a: Any, b: Any, builder: Builder, out: RegisterTensor | None) -> Any:
    if kind in (ast.Gt, ast.GtE):
        return _tile_binary(ast.Lt if kind is ast.Gt else ast.LtE, b, a, builder, out)
    if kind not in TILE_CLASSES and kind not in TILE_OPS:
        raise _unsupported(kind, a, b)
    if kind in (ast.LShift, ast.RShift) and isinstance(a, RegisterTensor):
        _check_shift(kind, a.dtype, values.known(b))
    x, y = _tiles(kind, a, b, builder)
    if kind in TILE_CLASSES:
        return builder.emit(TILE_CLASSES[kind].create(x, y, out))
    return builder.emit(ElementwiseBinaryInst.create(x, y, TILE_OPS[kind], out))


def _check_shift(kind: Op, dtype: DataType, amount: Any) -> None:
    """Refuse to shift every element of a tile by a number of bits that it does not have."""
    if isinstance(amount, int) and dtype.is_integer() and not 0 <= amount < dtype.nbits:
        raise errors.LanguageError("TK722", f"{SYMBOLS[kind]} {amount} shifts {dtype}, which has {dtype.nbits} bits")


def _tiles(kind: Op, a: Any, b: Any, builder: Builder) -> tuple[RegisterTensor, RegisterTensor]:
    """Both operands as tiles: a scalar takes the dtype of the tile."""
    if isinstance(a, RegisterTensor) and isinstance(b, RegisterTensor):
        return a, b
    if isinstance(a, RegisterTensor) and values.is_number(b):
        return a, filled(builder, b, a)
    if isinstance(b, RegisterTensor) and values.is_number(a):
        return filled(builder, a, b), b
    raise _unsupported(kind, a, b)


def filled(builder: Builder, value: Number, like: RegisterTensor, shape: tuple[int, ...] = ()) -> RegisterTensor:
    """A tile that holds `value` everywhere, in the dtype of `like`; one without dimensions suits every operator."""
    given = _dtype(value)
    if isinstance(given, DataType) and _narrows(given, like.dtype):
        raise errors.LanguageError(
            "TK212",
            f"the scalar is {given} and the tile is {like.dtype}, which may not hold it",
            help=f"cast the tile to {given}, or write {like.dtype}(…)",
        )
    tile = RegisterTensor.create(like.dtype, shape)
    return builder.emit(AllocateRegisterInst.create(tile, lambda _: typed(value, like.dtype)))


def product(a: Any, b: Any) -> Any:
    """`a * b` of numbers or expressions."""
    return scalar_binary(ast.Mult, a, b)


def _narrows(given: DataType, wanted: DataType) -> bool:
    """Whether an integer would be cut to a narrower one."""
    return given.is_integer() and wanted.is_integer() and given.nbits > wanted.nbits


def unary(op: ast.AST, value: Any, builder: Builder) -> Any:
    kind = type(op)
    if isinstance(value, RegisterTensor) and kind in (ast.USub, ast.Not):
        name = "neg" if kind is ast.USub else "logical_not"
        return builder.emit(ElementwiseUnaryInst.create(value, name))
    if isinstance(value, RegisterTensor) and kind is ast.Invert:
        return _inverted(value, builder)
    return scalar_unary(kind, value)


def _inverted(tile: RegisterTensor, builder: Builder) -> RegisterTensor:
    """`~tile`: what was true is false, or every bit of an integer the other way round."""
    if tile.dtype.is_boolean():
        return builder.emit(ElementwiseUnaryInst.create(tile, "logical_not"))
    ones = filled(builder, -1 if tile.dtype.is_signed() else tile.dtype.max_value, tile)
    return builder.emit(ElementwiseBinaryInst.create(tile, ones, "bitwise_xor"))


def scalar_unary(kind: Op, value: Any) -> Any:
    """An operator on a host value or a scalar expression."""
    if isinstance(value, dtypes.Literal):
        value = scalar.as_expr(value)
    if not values.is_runtime(value):
        return HOST[kind](value)
    if kind is ast.UAdd:
        return value
    if isinstance(value, Expr) and kind is ast.USub:
        is_truth = scalar.dtype_of(value) is dtypes.boolean
        return scalar.neg(scalar.cast(value, dtypes.int32) if is_truth else value)
    if isinstance(value, Expr) and kind is ast.Invert and scalar.dtype_of(value) is not dtypes.boolean:
        return scalar.bitwise_not(value)
    if isinstance(value, Expr) and kind is ast.Not:
        condition = values.truth(value)
        return scalar.logical_not(condition) if isinstance(condition, Expr) else not condition
    raise errors.LanguageError("TK214", f"cannot compute {SYMBOLS[kind]} of {describe(value)}")


def _unsupported(kind: Op, a: Any, b: Any) -> errors.LanguageError:
    return errors.LanguageError(
        "TK214", f"cannot compute {_shown(a)} {SYMBOLS[kind]} {_shown(b)}", help=ADVICE.get(kind)
    )


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, (bool, int, float, str)) else describe(value)


def set_item(container: Any, key: Any, value: Any) -> None:
    """`container[key] = value`."""
    container[key] = value
