# SPDX-License-Identifier: Apache-2.0
"""The named functions of the scalar language: what they take, and what they mean on NumPy values.

A new one is a row here and, under the same name, a function in `tk/math.h` for each of its dtypes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from tilekit import dtypes
from tilekit.dtypes import DataType, Number


class Domain(Enum):
    """Which dtypes a function takes."""

    FLOAT = "float"
    INT = "integer"
    NUMBER = "number"


class ScalarFunction(NamedTuple):
    """A function whose arguments have one dtype, which is the result's too unless it `tests` something."""

    arity: int
    domain: Domain
    numpy: Callable[..., Any]
    exact: bool = False  # the value is the same on every machine, so constants fold
    tests: bool = False


def _single(function: Callable[..., Any]) -> Callable[..., Any]:
    """Computed in float32, or in float64 where the values are, as the library does for the small floats."""

    def compute(*args: Any) -> Any:
        return function(*(arg if arg.dtype == np.float64 else arg.astype(np.float32) for arg in args))

    return compute


def _minimum(a: Any, b: Any) -> Any:
    """NumPy gives a nan for a nan too, but either of two zeros."""
    if a.dtype.kind != "f":
        return np.minimum(a, b)
    return np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))


def _maximum(a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        return np.maximum(a, b)
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def _c_div(a: Any, b: Any) -> Any:
    return np.floor_divide(a, b) + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0)))


def _c_mod(a: Any, b: Any) -> Any:
    return a - b * _c_div(a, b)


def _exp2(x: Any) -> Any:
    """2 to the power of x; a float32 result below the smallest normal number is 0, as machines give it."""
    power = np.exp2(x)
    return power if x.dtype == np.float64 else np.where(x < -126, np.float32(0), power)


def _transcendental(function: Callable[..., Any]) -> ScalarFunction:
    return ScalarFunction(1, Domain.FLOAT, _single(function))


FUNCTIONS: Mapping[str, ScalarFunction] = {
    "exp": _transcendental(np.exp),
    "exp2": _transcendental(_exp2),
    "log": _transcendental(np.log),
    "log2": _transcendental(np.log2),
    "sqrt": ScalarFunction(1, Domain.FLOAT, _single(np.sqrt), exact=True),
    "rsqrt": _transcendental(lambda x: 1 / np.sqrt(x.astype(np.float64))),
    "sin": _transcendental(np.sin),
    "cos": _transcendental(np.cos),
    "tan": _transcendental(np.tan),
    "asin": _transcendental(np.arcsin),
    "acos": _transcendental(np.arccos),
    "atan": _transcendental(np.arctan),
    "sinh": _transcendental(np.sinh),
    "cosh": _transcendental(np.cosh),
    "tanh": _transcendental(np.tanh),
    "asinh": _transcendental(np.arcsinh),
    "acosh": _transcendental(np.arccosh),
    "atanh": _transcendental(np.arctanh),
    "pow": ScalarFunction(2, Domain.FLOAT, _single(np.power)),
    "floor": ScalarFunction(1, Domain.FLOAT, np.floor, exact=True),
    "ceil": ScalarFunction(1, Domain.FLOAT, np.ceil, exact=True),
    "trunc": ScalarFunction(1, Domain.FLOAT, np.trunc, exact=True),
    "round": ScalarFunction(1, Domain.FLOAT, np.rint, exact=True),
    "isnan": ScalarFunction(1, Domain.FLOAT, np.isnan, exact=True, tests=True),
    "isinf": ScalarFunction(1, Domain.FLOAT, np.isinf, exact=True, tests=True),
    "abs": ScalarFunction(1, Domain.NUMBER, np.abs, exact=True),
    "minimum": ScalarFunction(2, Domain.NUMBER, _minimum, exact=True),
    "maximum": ScalarFunction(2, Domain.NUMBER, _maximum, exact=True),
    "c_div": ScalarFunction(2, Domain.INT, _c_div, exact=True),
    "c_mod": ScalarFunction(2, Domain.INT, _c_mod, exact=True),
}

# the functions that Python's math module has too, under the same name
MATH = tuple(name for name, function in FUNCTIONS.items() if function.arity == 1 and hasattr(math, name))


def wide(value: Any) -> Any:
    """A NumPy value in a dtype that NumPy computes with: exactly, where the result is then rounded once."""
    array = np.asarray(value)
    if array.dtype.kind != "V":  # all of ml_dtypes
        return value
    return array.astype(np.int64 if "int" in array.dtype.name else np.float64)[()]


def fold(function: ScalarFunction, dtype: DataType, numbers: list[Number]) -> Number:
    """What an exact function gives for numbers of a dtype."""
    values = [wide(np.asarray(number).astype(dtypes.numpy_dtype(dtype))[()]) for number in numbers]
    with np.errstate(all="ignore"):
        result = np.asarray(function.numpy(*values))
    return dtypes.quantize(result, dtypes.boolean if function.tests else dtype).item()


def ieee_div(x: float, y: float) -> float:
    """Division as machines do it, by zero too."""
    if y:
        return x / y
    return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1.0, y)


def same_number(x: Number, y: Number) -> bool:
    """Equality that tells zeros by their sign and takes nans for equal."""
    if isinstance(x, float) and isinstance(y, float):
        return (math.isnan(x) and math.isnan(y)) or (x == y and math.copysign(1.0, x) == math.copysign(1.0, y))
    return type(x) is type(y) and x == y
