# SPDX-License-Identifier: Apache-2.0
"""The grid of a launch, a function of its integer arguments: integer Python, read with `ast`, compiled once, no `eval`.

What a manifest may say is a short list: whole numbers, parameters, `+ - * // %`, `-x`, `min`, `max`, comparisons,
`and or not`, and `a if c else b`. Anything else is refused, so a manifest cannot do more than count.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

from tilekit.diag import LaunchError
from tilekit.target import MAX_GRID

Grid = tuple[int, int, int]
GridFunction = Callable[..., Grid]

_MAX_LENGTH = 20_000  # of one expression: the parser is recursive

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_SIGNS = (ast.USub, ast.UAdd, ast.Not)
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
# Called under names that no parameter can have, for a kernel may well have a parameter called `max`.
_FUNCTIONS: dict[str, Callable[..., int]] = {"min": min, "max": max}


def compile_grid(expressions: Sequence[str], integers: Sequence[str]) -> GridFunction:
    """Return a function of the integer parameters, by position, that gives the three extents unchecked."""
    return compile_counts(expressions, integers)


def compile_counts(expressions: Sequence[str], integers: Sequence[str]) -> Callable[..., Any]:
    """Return a function of the integer parameters, by position, that gives a tuple of as many integers."""
    extents = [_read(expression, frozenset(integers)) for expression in expressions]
    arguments = ast.arguments([ast.arg(name) for name in integers], [], None, [], [], None, [])
    function = ast.Lambda(arguments, ast.Tuple(extents, ast.Load()))
    module = compile(ast.fix_missing_locations(ast.Expression(function)), "<grid>", "eval")
    (code,) = (constant for constant in module.co_consts if isinstance(constant, CodeType))
    return FunctionType(code, {f" {name}": found for name, found in _FUNCTIONS.items()})


def check_grid(grid: Grid, kernel: str) -> None:
    """Refuse a grid that no GPU launches; a zero is fine, and means that there is nothing to do."""
    x, y, z = grid
    if 0 <= x <= MAX_GRID[0] and 0 <= y <= MAX_GRID[1] and 0 <= z <= MAX_GRID[2]:
        return  # every launch passes here
    for axis, extent, limit in zip("xyz", grid, MAX_GRID, strict=True):
        if not 0 <= extent <= limit:
            wrong = "negative" if extent < 0 else f"more than the {limit} that CUDA allows"
            raise LaunchError("TK621", f"{kernel}: the grid has {extent} blocks along {axis}, {wrong}")


def _read(expression: str, integers: frozenset[str]) -> ast.expr:
    if len(expression) > _MAX_LENGTH:
        raise LaunchError("TK620", f"a grid expression of {len(expression)} characters is too long")
    try:
        tree = ast.parse(expression, mode="eval").body
        return _Whitelist(expression, integers).visit(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise LaunchError("TK620", f"grid expression {_shorten(expression)} cannot be read: {error}") from None


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


class _Whitelist(ast.NodeTransformer):
    """Pass what is allowed, refuse the rest, and rename the two functions."""

    def __init__(self, expression: str, integers: frozenset[str]) -> None:
        self.expression = expression
        self.integers = integers

    def refuse(self, what: str) -> LaunchError:
        return LaunchError(
            "TK620",
            f"grid expression {_shorten(self.expression)} uses {what}",
            help="a grid counts with + - * // %, min, max, comparisons, and, or, not, and a if c else b",
        )

    def generic_visit(self, node: ast.AST) -> ast.AST:
        match node:
            case ast.BinOp(op=operator) | ast.UnaryOp(op=operator) | ast.BoolOp(op=operator) if isinstance(
                operator, (*_OPERATORS, *_SIGNS, ast.And, ast.Or)
            ):
                return self.descend(node)
            case ast.Compare(ops=operators) if all(isinstance(operator, _COMPARISONS) for operator in operators):
                return self.descend(node)
            case ast.IfExp():
                return self.descend(node)
            case ast.Constant(value=bool()):
                return node
            case ast.Constant(value=int()):
                return node
            case ast.Name(id=name):
                if name not in self.integers:
                    raise self.refuse(f"{name}, which is no integer parameter")
                return node
            case ast.Call(func=ast.Name(id=name), args=[_, _, *_] as given, keywords=[]) if name in _FUNCTIONS:
                return ast.Call(ast.Name(f" {name}", ast.Load()), [self.visit(argument) for argument in given], [])
            case _:
                raise self.refuse(ast.unparse(node))

    def descend(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                setattr(node, name, self.visit(value))
            elif isinstance(value, list):
                setattr(node, name, [self.visit(item) if isinstance(item, ast.expr) else item for item in value])
        return node
