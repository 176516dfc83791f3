# SPDX-License-Identifier: Apache-2.0
"""The named functions of the scalar language: what they take, and those whose values are exact, on Python numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from tilekit.dtypes import Number


class Domain(Enum):
    """Which dtypes a function takes."""

    FLOAT = "float"
    INT = "integer"
    NUMBER = "number"


class ScalarFunction(NamedTuple):
    """A function whose arguments have one dtype, which is the result's too unless it `tests` something."""

    arity: int
    domain: Domain
    tests: bool = False


FUNCTIONS: Mapping[str, ScalarFunction] = {
    **dict.fromkeys(
        ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
        ScalarFunction(1, Domain.FLOAT),
    ),
    **dict.fromkeys(("asin", "acos", "atan", "asinh", "acosh", "atanh"), ScalarFunction(1, Domain.FLOAT)),
    **dict.fromkeys(("floor", "ceil", "round", "trunc"), ScalarFunction(1, Domain.FLOAT)),
    **dict.fromkeys(("isnan", "isinf"), ScalarFunction(1, Domain.FLOAT, tests=True)),
    "pow": ScalarFunction(2, Domain.FLOAT),
    "abs": ScalarFunction(1, Domain.NUMBER),
    "minimum": ScalarFunction(2, Domain.NUMBER),
    "maximum": ScalarFunction(2, Domain.NUMBER),
    "c_div": ScalarFunction(2, Domain.INT),
    "c_mod": ScalarFunction(2, Domain.INT),
}


def ieee_div(x: float, y: float) -> float:
    """Division as machines do it, by zero too."""
    if y:
        return x / y
    return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1.0, y)


def _first(x: Number, y: Number, sign: int) -> Number:
    """The one of two numbers that comes first in the order of `sign`; a nan is first of all, and -0 is below +0."""
    for number in (x, y):
        if math.isnan(number):
            return number
    return min(x, y, key=lambda number: (sign * number, sign * math.copysign(1, number)))


def _integral(cut: Callable[[float], int]) -> Callable[[float], float]:
    """A rounding to whole numbers that leaves infinities, nans and the sign of zero alone."""
    return lambda x: math.copysign(float(cut(x)), x) if math.isfinite(x) else x


def _c_div(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


# what a function gives for numbers, before wrapping or rounding: only where the value is the same on every machine
EXACT: Mapping[str, Callable[..., Number]] = {
    "abs": abs,
    "minimum": lambda x, y: _first(x, y, 1),
    "maximum": lambda x, y: _first(x, y, -1),
    "floor": _integral(math.floor),
    "ceil": _integral(math.ceil),
    "trunc": _integral(math.trunc),
    "round": _integral(round),
    "isnan": math.isnan,
    "isinf": math.isinf,
    "c_div": _c_div,
    "c_mod": lambda x, y: x - y * _c_div(x, y),
}


def same_number(x: Number, y: Number) -> bool:
    """Equality that tells zeros by their sign and takes nans for equal."""
    if isinstance(x, float) and isinstance(y, float):
        return (math.isnan(x) and math.isnan(y)) or (x == y and math.copysign(1.0, x) == math.copysign(1.0, y))
    return type(x) is type(y) and x == y
