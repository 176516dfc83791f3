# SPDX-License-Identifier: Apache-2.0
"""What reading printed IR asks of a syntax tree, and complaints that name their line and column in the text."""

from __future__ import annotations

import ast
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from tilekit.diag import errors, suggest
from tilekit.ir.layout import LayoutOperationError

CODE = "TK190"


def identifier(node: ast.expr) -> str:
    if not isinstance(node, ast.Name):
        fail(node, f"expected a name, got {ast.unparse(node)}")
    return node.id


def annotation(arg: ast.arg) -> ast.expr:
    if arg.annotation is None:
        fail(arg, f"parameter {arg.arg} needs a type: {arg.arg}: i32")
    return arg.annotation


def integer(node: ast.expr) -> int:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if not isinstance(value, bool):
            return -value
        case _:
            fail(node, f"expected an integer, got {ast.unparse(node)}")


def elements(node: ast.expr) -> list[ast.expr]:
    """The elements of a list, of an index `[a, b]` or `[a]`."""
    return node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]


def keywords(call: ast.Call, what: str, allowed: Sequence[str]) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for keyword in call.keywords:
        name = keyword.arg or "**"
        if name not in allowed:
            near = suggest(name, allowed)
            fail(keyword.value, f"{what} takes no {name}=", f"did you mean {near}?" if near else None)
        found[name] = keyword.value
    return found


def complaint(line: int, column: int, message: str, help: str | None = None) -> errors.LanguageError:
    place = f"line {line}, column {column + 1}"
    return errors.LanguageError(
        CODE, f"tile IR, {place}: {message}", help=help, data={"line": line, "column": column + 1, "message": message}
    )


def fail(node: ast.stmt | ast.expr | ast.arg, message: str, help: str | None = None) -> NoReturn:
    raise complaint(node.lineno, node.col_offset, message, help)


@contextmanager
def placed(node: ast.expr) -> Generator[None]:
    """Gives what goes wrong inside, and knows no place, the place of `node`."""
    try:
        yield
    except LayoutOperationError as problem:
        raise complaint(node.lineno, node.col_offset, str(problem)) from problem
    except errors.TilekitError as problem:
        if problem.code == CODE:
            raise
        raise complaint(node.lineno, node.col_offset, problem.message, problem.diagnostic.help) from problem
