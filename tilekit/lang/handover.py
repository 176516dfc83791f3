# SPDX-License-Identifier: Apache-2.0
"""Run-time scalars in the hands of ordinary Python functions.

A function outside of the kernel, such as `cdiv`, runs while the kernel is compiled. It may compute with run-time
scalars, but not look at them: an `if` on one would be decided by an object, not by a number.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NoReturn, cast

import numpy as np

from tilekit.dtypes import CastRequest
from tilekit.lang import operators, values
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr


def _binary(op: type[ast.AST]) -> Callable[[Handed, Any], Any]:
    def compute(self: Handed, other: Any) -> Any:
        return hand(operators.scalar_binary(op, self.expr, take(other)))

    return compute


def _reflected(op: type[ast.AST]) -> Callable[[Handed, Any], Any]:
    def compute(self: Handed, other: Any) -> Any:
        return hand(operators.scalar_binary(op, take(other), self.expr))

    return compute


def _unary(op: type[ast.AST]) -> Callable[[Handed], Any]:
    def compute(self: Handed) -> Any:
        return hand(operators.scalar_unary(op, self.expr))

    return compute


class Asked(TypeError):
    """A function wants to know the value of a run-time scalar."""


class Handed:
    """A run-time scalar that has the operators of the kernel language, and refuses to be a Python number."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    __add__, __radd__ = _binary(ast.Add), _reflected(ast.Add)
    __sub__, __rsub__ = _binary(ast.Sub), _reflected(ast.Sub)
    __mul__, __rmul__ = _binary(ast.Mult), _reflected(ast.Mult)
    __truediv__, __rtruediv__ = _binary(ast.Div), _reflected(ast.Div)
    __floordiv__, __rfloordiv__ = _binary(ast.FloorDiv), _reflected(ast.FloorDiv)
    __mod__, __rmod__ = _binary(ast.Mod), _reflected(ast.Mod)
    __pow__, __rpow__ = _binary(ast.Pow), _reflected(ast.Pow)
    __lshift__, __rlshift__ = _binary(ast.LShift), _reflected(ast.LShift)
    __rshift__, __rrshift__ = _binary(ast.RShift), _reflected(ast.RShift)
    __and__, __rand__ = _binary(ast.BitAnd), _reflected(ast.BitAnd)
    __or__, __ror__ = _binary(ast.BitOr), _reflected(ast.BitOr)
    __xor__, __rxor__ = _binary(ast.BitXor), _reflected(ast.BitXor)
    __lt__, __le__, __gt__, __ge__ = _binary(ast.Lt), _binary(ast.LtE), _binary(ast.Gt), _binary(ast.GtE)
    __neg__, __pos__, __invert__ = _unary(ast.USub), _unary(ast.UAdd), _unary(ast.Invert)

    def __eq__(self, other: object) -> Any:
        return hand(operators.scalar_binary(ast.Eq, self.expr, take(other)))

    def __ne__(self, other: object) -> Any:
        return hand(operators.scalar_binary(ast.NotEq, self.expr, take(other)))

    __hash__ = object.__hash__

    def __abs__(self) -> Handed:
        return Handed(scalar.call("abs", [self.expr]))

    def _refuse(self) -> NoReturn:
        raise Asked("this value exists only at run time")

    def __bool__(self) -> bool:
        self._refuse()

    def __int__(self) -> int:
        self._refuse()

    def __float__(self) -> float:
        self._refuse()

    def __index__(self) -> int:
        self._refuse()

    def __repr__(self) -> str:
        return f"<run-time {scalar.dtype_of(self.expr)}>"


def hand(value: Any) -> Any:
    """A value for an ordinary Python function."""
    found = values.known(value)
    return Handed(found) if isinstance(found, Expr) else found


class Loan:
    """The arguments of one call of a Python function; a list that it changes is changed for the kernel too."""

    def __init__(self) -> None:
        self._lists: list[tuple[list[Any], list[Any], list[Any]]] = []

    def hand(self, value: Any) -> Any:
        if type(value) not in (list, tuple):  # pyright: ignore[reportUnknownArgumentType]
            return hand(value)
        given = [self.hand(part) for part in value]
        if all(map(_is, given, value)):
            return value
        if type(value) is tuple:
            return tuple(given)
        self._lists.append((value, given, list(given)))
        return given

    def settle(self) -> None:
        for ours, theirs, before in self._lists:
            if len(theirs) != len(before) or not all(map(_is, theirs, before)):
                ours[:] = map(take, theirs)


def unwrap(value: Any) -> Any:
    """A value from a Python object, as the kernel uses it."""
    if isinstance(value, Handed):
        return value.expr
    if isinstance(value, np.generic):
        return cast("Any", value).item()
    return value


def take(value: Any) -> Any:
    """What an ordinary Python function returned, as the kernel uses it."""
    value = unwrap(value)
    if isinstance(value, CastRequest):
        return scalar.cast(scalar.as_expr(take(value.value)), value.dtype)
    if isinstance(value, Expr):
        return scalar.normalize(value)
    if type(value) in (tuple, list):  # pyright: ignore[reportUnknownArgumentType]
        parts = cast("tuple[Any, ...] | list[Any]", value)
        taken = [take(part) for part in parts]
        return value if all(map(_is, taken, parts)) else type(parts)(taken)
    return value


def _is(a: object, b: object) -> bool:
    return a is b
