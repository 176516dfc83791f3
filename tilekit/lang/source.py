# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a function, found through its code object: it works for notebook cells and never asks a class."""

from __future__ import annotations

import ast
import inspect
import linecache
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any

from tilekit.diag import errors
from tilekit.diag.sources import Sources
from tilekit.diag.span import Span
from tilekit.lang import syntax


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

    @cached_property
    def places(self) -> tuple[Span, ...]:
        """The place of every node in the function, in an order that only its meaning decides; its name comes first."""
        parts = (part for part in ast.walk(self.node) if isinstance(part, (ast.expr, ast.stmt, ast.arg)))
        return (self.header, *map(self.span, parts))

    @cached_property
    def numbers(self) -> Mapping[Span, int]:
        """The number of each place among `places`: the first, where nodes share one."""
        return {place: number for number, place in reversed(list(enumerate(self.places)))}

    @cached_property
    def local_names(self) -> frozenset[str]:
        """The names that Python takes for local ones because the function binds them."""
        arguments = (argument.arg for argument in ast.walk(self.node.args) if isinstance(argument, ast.arg))
        return frozenset(arguments) | syntax.bound(self.node.body).names


# By identity: Python calls two code objects equal although their functions differ in an annotation or in their file.
_known: dict[int, FunctionSource] = {}


def qualified_name(code: CodeType) -> str:
    """What spans call this function: its qualified name, without the places it is nested in."""
    return code.co_qualname.rpartition("<locals>.")[2]


def plain(function: Callable[..., Any]) -> FunctionType:
    """The Python function behind a method or a decorator that keeps what it wraps."""
    found = inspect.unwrap(getattr(function, "__func__", function))
    if not isinstance(found, FunctionType):
        raise errors.LanguageError("TK111", f"{function!r} is not a Python function, so it has no source to compile")
    return found


def read(function: Callable[..., Any]) -> FunctionSource:
    """The source of a plain function or of the function behind a method."""
    return read_code(plain(function).__code__)


def read_code(code: CodeType) -> FunctionSource:
    """The source of the function that a code object belongs to."""
    found = _known.get(id(code))
    if found is None or found.code is not code:
        found = _known[id(code)] = _parse(code)
    return found


def _parse(code: CodeType) -> FunctionSource:
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    if not lines:
        raise errors.LanguageError(
            "TK111",
            f"the source of {qualified_name(code)} is not available",
            help="define kernels in a notebook cell or in a file, not through exec or in the plain Python prompt",
        )
    try:
        block = inspect.getblock(lines[code.co_firstlineno - 1 :])
        indented = bool(block) and block[0][:1].isspace()
        tree = ast.parse("".join(["if 1:\n", *block]) if indented else "".join(block))
    except (SyntaxError, tokenize.TokenError):
        raise (_is_lambda(code) if code.co_name == "<lambda>" else _changed(code)) from None
    first = tree.body[0] if tree.body else None
    node = first.body[0] if isinstance(first, ast.If) else first
    if isinstance(node, ast.AsyncFunctionDef):
        raise _is_async(node, code)
    if code.co_name == "<lambda>":
        raise _is_lambda(code)
    if not isinstance(node, ast.FunctionDef):
        raise _changed(code)
    ast.increment_lineno(node, code.co_firstlineno - (2 if indented else 1))
    if (owner := _class_around(code)) is not None:
        _Mangling(owner).mangle(node)
    if not _is_of(node, code):
        raise _changed(code)
    return FunctionSource(qualified_name(code), code, node)


def _class_around(code: CodeType) -> str | None:
    """The class whose body a function stands in, also inside of another function there."""
    around = code.co_qualname.split(".")[:-1]
    while around and around[-1] == "<locals>":
        around = around[:-2]
    return around[-1] if around else None


class _Mangling(ast.NodeVisitor):
    """Gives private names in a class, `__x`, the name that Python gives them: `_Class__x`."""

    def __init__(self, owner: str) -> None:
        self.prefix = f"_{owner.lstrip('_')}"

    def mangle(self, function: ast.FunctionDef) -> None:
        if self.prefix != "_":
            self.generic_visit(function)

    def _mangled(self, name: str) -> str:
        return self.prefix + name if name.startswith("__") and not name.endswith("__") else name

    def visit_Name(self, node: ast.Name) -> None:
        node.id = self._mangled(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        node.attr = self._mangled(node.attr)
        self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        node.arg = self._mangled(node.arg)
        self.generic_visit(node)


def _is_of(node: ast.FunctionDef, code: CodeType) -> bool:
    """Whether a tree can be that of a code object: its name, its arguments, and the lines of its body."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    if node.name != code.co_name or tuple(a.arg for a in arguments) != code.co_varnames[: len(arguments)]:
        return False
    written = {line for part in ast.walk(node) for line in _lines(part)}
    return all(line is None or line in written or line == code.co_firstlineno for _, _, line in code.co_lines())


def _is_async(node: ast.AsyncFunctionDef, code: CodeType) -> errors.LanguageError:
    name, start = qualified_name(code), node.col_offset
    sources = Sources()
    sources.register(name, code)
    at = Span(name, 0, start, 0, start + len("async"))
    return errors.LanguageError("TK103", f"{name} is async: a kernel awaits nothing", at=at).with_sources(sources)


def _lines(node: ast.AST) -> Iterable[int]:
    """The lines that code of this node may be said to stand on: its first, its last, and every one of a string."""
    first: int | None = getattr(node, "lineno", None)
    if first is None:
        return ()
    last: int = getattr(node, "end_lineno", first)
    return range(first, last + 1) if isinstance(node, (ast.JoinedStr, ast.Constant)) else (first, last)


def _is_lambda(code: CodeType) -> errors.LanguageError:
    return errors.LanguageError(
        "TK111",
        f"this method is a lambda, of line {code.co_firstlineno} of its file",
        help="write it with def, so that it has lines to compile",
    )


def _changed(code: CodeType) -> errors.LanguageError:
    return errors.LanguageError(
        "TK111",
        f"the file of {qualified_name(code)} changed since it was loaded, so its source no longer matches",
        help="reload the module, or run the cell again",
    )
