# SPDX-License-Identifier: Apache-2.0
"""Layouts read back from the expression that they print as."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TypeVar

from tilekit.ir.layout import register_layout, shared_layout
from tilekit.ir.layout.register_layout import LayoutOperationError, RegisterLayout
from tilekit.ir.layout.shared_layout import SharedLayout, Swizzle

Layout = RegisterLayout | SharedLayout
Made = TypeVar("Made", RegisterLayout, SharedLayout, Swizzle)

REGISTER_CONSTRUCTORS: dict[str, Callable[..., RegisterLayout]] = {
    "local": register_layout.local,
    "spatial": register_layout.spatial,
    "column_local": register_layout.column_local,
    "column_spatial": register_layout.column_spatial,
    "replicated": register_layout.replicated,
    "register_layout": register_layout.register_layout,
}
SHARED_CONSTRUCTORS: dict[str, Callable[..., SharedLayout]] = {
    "shared_row_major": shared_layout.shared_row_major,
    "shared_column_major": shared_layout.shared_column_major,
    "shared_row_major_swizzle": shared_layout.shared_row_major_swizzle,
    "shared_layout": shared_layout.shared_layout,
}


def parse_layout(text: str) -> Layout:
    """The layout that prints as `text`: `local(2, 1).spatial(8, 4)`, or `shared_row_major(64, 32)`."""
    try:
        return from_ast(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as error:
        raise LayoutOperationError(f"not a layout: {text!r}") from error


def from_ast(node: ast.expr) -> Layout:
    """The layout of a call of a constructor, or of a chain of them; nothing else is evaluated."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in SHARED_CONSTRUCTORS:
            return _call(SHARED_CONSTRUCTORS[name], node)
        case ast.Call(func=ast.Name(id=name)) if name in REGISTER_CONSTRUCTORS:
            return _call(REGISTER_CONSTRUCTORS[name], node)
        case ast.Call(func=ast.Attribute(value=ast.expr() as prefix, attr=name)):
            return _chained(from_ast(prefix), name, node)
        case ast.Call(func=ast.Name(id=name)):
            raise _unknown(name, node)
        case _:
            raise LayoutOperationError(f"not a layout: {ast.unparse(node)}")


def register_layout_from_ast(node: ast.expr) -> RegisterLayout:
    """As `from_ast`, for the place of a register tensor."""
    layout = from_ast(node)
    if not isinstance(layout, RegisterLayout):
        raise LayoutOperationError(f"{layout} is the layout of a shared tensor, not of a register tensor")
    return layout


def shared_layout_from_ast(node: ast.expr) -> SharedLayout:
    """As `from_ast`, for the place of a shared tensor."""
    layout = from_ast(node)
    if not isinstance(layout, SharedLayout):
        raise LayoutOperationError(f"{layout} is the layout of a register tensor, not of a shared tensor")
    return layout


def _chained(prefix: Layout, name: str, node: ast.Call) -> Layout:
    match prefix:
        case RegisterLayout() if name in REGISTER_CONSTRUCTORS:
            return register_layout.compose(prefix, _call(REGISTER_CONSTRUCTORS[name], node))
        case SharedLayout() if name == "transpose":
            return _call(prefix.transpose, node)
        case SharedLayout() if name == "apply_swizzle":
            return _call(prefix.apply_swizzle, node)
        case _:
            raise _unknown(name, node)


def _call(make: Callable[..., Made], node: ast.Call) -> Made:
    try:
        arguments = [_argument(argument) for argument in node.args]
        options = {keyword.arg: _argument(keyword.value) for keyword in node.keywords if keyword.arg}
        return make(*arguments, **options)
    except (TypeError, ValueError) as error:
        raise LayoutOperationError(f"not a layout: {ast.unparse(node)}: {error}") from error


def _argument(node: ast.expr) -> object:
    match node:
        case ast.Call(func=ast.Name(id="Swizzle")):
            return _call(Swizzle, node)
        case _:
            return ast.literal_eval(node)


def _unknown(name: str, node: ast.Call) -> LayoutOperationError:
    known = ", ".join([*REGISTER_CONSTRUCTORS, *SHARED_CONSTRUCTORS])
    return LayoutOperationError(f"no layout constructor {name!r} in {ast.unparse(node)}: there are {known}")
