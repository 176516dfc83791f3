# SPDX-License-Identifier: Apache-2.0
"""Register layouts read back from the expression that they print as."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tilekit.ir.layout import register_layout
from tilekit.ir.layout.register_layout import LayoutOperationError, RegisterLayout

CONSTRUCTORS: dict[str, Callable[..., RegisterLayout]] = {
    "local": register_layout.local,
    "spatial": register_layout.spatial,
    "column_local": register_layout.column_local,
    "column_spatial": register_layout.column_spatial,
    "replicated": register_layout.replicated,
    "register_layout": register_layout.register_layout,
}


def parse_layout(text: str) -> RegisterLayout:
    """The layout that prints as `text`: `local(2, 1).spatial(8, 4)`, or `register_layout(shape=[6], ...)`."""
    try:
        return from_ast(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as error:
        raise LayoutOperationError(f"not a layout: {text!r}") from error


def from_ast(node: ast.expr) -> RegisterLayout:
    """The layout of a call of a constructor, or of a chain of them; nothing else is evaluated."""
    match node:
        case ast.Call(func=ast.Name(id=name)):
            outer = None
        case ast.Call(func=ast.Attribute(value=ast.expr() as prefix, attr=name)):
            outer = from_ast(prefix)
        case _:
            raise LayoutOperationError(f"not a layout: {ast.unparse(node)}")
    if name not in CONSTRUCTORS:
        raise LayoutOperationError(
            f"no layout constructor {name!r} in {ast.unparse(node)}: there are {', '.join(CONSTRUCTORS)}"
        )
    try:
        arguments = [ast.literal_eval(argument) for argument in node.args]
        options = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg}
        inner = CONSTRUCTORS[name](*arguments, **options)
    except (TypeError, ValueError) as error:
        raise LayoutOperationError(f"not a layout: {ast.unparse(node)}: {error}") from error
    return inner if outer is None else register_layout.compose(outer, inner)
