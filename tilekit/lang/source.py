# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a function, found through its code object: it works for notebook cells and never asks a class."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from tilekit.diag import errors
from tilekit.diag.span import Span


@dataclass(frozen=True)
class FunctionSource:
    """A function's tree; line numbers in it are those of its file."""

    name: str
    code: CodeType
    node: ast.FunctionDef

    def span(self, node: ast.expr | ast.stmt | ast.arg, caller: Span | None = None) -> Span:
        return Span.of(node, self.name, self.node.lineno, caller)

    @property
    def header(self) -> Span:
        """The name in the `def` line."""
        start = self.node.col_offset + len("def ")
        return Span(self.name, 0, start, 0, start + len(self.node.name))


def qualified_name(code: CodeType) -> str:
    """What spans call this function: its qualified name, without the places it is nested in."""
    return code.co_qualname.rpartition("<locals>.")[2]


def read(function: Callable[..., Any]) -> FunctionSource:
    """The source of a plain function or of the function behind a method."""
    plain = inspect.unwrap(getattr(function, "__func__", function))
    if not isinstance(plain, FunctionType):
        raise errors.LanguageError("TK111", f"{function!r} is not a Python function, so it has no source to compile")
    return _read(plain.__code__)


@functools.lru_cache(maxsize=4096)
def _read(code: CodeType) -> FunctionSource:
    lines = linecache.getlines(code.co_filename)
    if not lines:
        raise errors.LanguageError(
            "TK111",
            f"the source of {code.co_qualname} is not available",
            help="define kernels in a notebook cell or in a file, not through exec or in the plain Python prompt",
        )
    block = inspect.getblock(lines[code.co_firstlineno - 1 :])
    indented = block[:1] and block[0][:1].isspace()
    text = "".join(["if 1:\n", *block]) if indented else "".join(block)
    try:
        tree = ast.parse(text)
    except SyntaxError:
        raise _changed(code) from None
    node = tree.body[0].body[0] if isinstance(tree.body[0], ast.If) else tree.body[0]
    if not isinstance(node, ast.FunctionDef) or node.name != code.co_name:
        raise _changed(code)
    ast.increment_lineno(node, code.co_firstlineno - (2 if indented else 1))
    return FunctionSource(qualified_name(code), code, node)


def _changed(code: CodeType) -> errors.LanguageError:
    return errors.LanguageError(
        "TK111",
        f"the file of {code.co_qualname} changed since it was loaded, so its source no longer matches",
        help="reload the module, or run the cell again",
    )
