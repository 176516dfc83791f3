# SPDX-License-Identifier: Apache-2.0
"""`%%tilus` as a rewrite of the cell, not as a magic that swallows it.

The first line becomes a string that says the same, and the rest stays an ordinary IPython cell at its own line numbers:
the last expression, `Out`, `;`, `%timeit`, `!`, `?` and `await` work because nothing about them changes. The tree of
such a cell begins with a call in place of the string, has its imports of tilus redirected, and ends in a call that
waits for the GPU and shows what was compiled.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

from tilekit.notebook import imports, options

_FIRST_LINE = re.compile(rf"(?P<indent>[ \t]*)(?P<text>{options.MAGIC}(?=\s|$)[^\r\n]*)")


@dataclass(frozen=True)
class Misplaced(Exception):
    """`%%tilus` stands on a line, counted from 1, that is not the first."""

    line: int
    text: str


def rewrite_lines(lines: list[str]) -> list[str]:
    """Turn the `%%tilus` line into a string on the first line; other cells stay as they are."""
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return lines
    found = _FIRST_LINE.match(lines[first])
    if found is None:
        _refuse_later(lines, first)
        return lines
    # blank lines above it come below it: IPython takes leading ones away, and the lines would be counted anew
    mark = f"{found['indent']}{found['text'].strip()!r}\n"
    return [mark, *(["\n"] * first), *lines[first + 1 :]]


def _refuse_later(lines: Sequence[str], first: int) -> None:
    if lines[first].startswith("%%"):
        # the rest of the cell belongs to that magic, which may hand it back to IPython as a cell
        return
    late = [number for number, line in enumerate(lines, start=1) if _FIRST_LINE.match(line)]
    if late and late[0] not in _lines_in_strings("".join(lines)):
        raise Misplaced(late[0], lines[late[0] - 1])


def _lines_in_strings(text: str) -> set[int]:
    inside: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            # from 3.12 on, a long f-string comes in pieces, each of which is one of these
            if token.type == tokenize.STRING or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        # shell escapes and other syntax of IPython: what was read so far decides
        pass
    return inside


def lines_above(outer: str, body: str) -> int | None:
    """How many lines of a cell lie above its `%%tilus`, if only other magics do and `body` is all that follows."""
    lines = outer.splitlines()
    for number, line in enumerate(lines):
        if _FIRST_LINE.match(line):
            return number if "\n".join(lines[number + 1 :]).rstrip() == body.rstrip() else None
        if line.strip() and not line.startswith("%%"):
            return None
    return None


def first_line(tree: ast.Module) -> str | None:
    """The `%%tilus` line of a rewritten cell; None for any other tree."""
    match tree.body[:1]:
        case [ast.Expr(value=ast.Constant(value=str(text)))] if _FIRST_LINE.match(text):
            return text
        case _:
            return None


def rewrite_tree(tree: ast.Module, *, show_assignment: bool = False) -> ast.Module:
    """Redirect the imports of a `%%tilus` cell, and put the calls around it.

    `show_assignment`: whether the shell shows the value of a cell that ends in an assignment.
    """
    line = first_line(tree)
    assert line is not None
    mark, *body = imports.rewrite_imports(tree).body
    # what a `from __future__` says must come first, also after the call that is put in front
    futures = [statement for statement in body if _is_future(statement)]
    body = [statement for statement in body if not _is_future(statement)]
    names = [ast.Constant(statement.name) for statement in body if isinstance(statement, ast.ClassDef)]
    value: ast.expr = ast.Constant(None)
    last = body[-1] if body else mark
    match last:
        case ast.Expr(value=shown) if body:
            value = shown
            body = body[:-1]
        case ast.Assign(targets=[*_, ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            value = ast.Name(name, ast.Load()) if show_assignment else value
        case ast.AugAssign(target=ast.Name(id=name)):
            value = ast.Name(name, ast.Load()) if show_assignment else value
        case _:
            pass
    begin = ast.copy_location(ast.Expr(call("begin", ast.Constant(line))), mark)
    told: list[ast.expr] = [ast.Constant(name) for name in options.BENCH_NAMES if any(_assigns(s, name) for s in body)]
    more = [ast.Tuple(told, ast.Load())] if told else []
    end = ast.copy_location(ast.Expr(call("end", ast.Tuple([*names], ast.Load()), value, *more)), last)
    return ast.fix_missing_locations(ast.Module([*futures, begin, *body, end], tree.type_ignores))


def call(method: str, *arguments: ast.expr) -> ast.Call:
    """A call of the extension, which hangs on the shell: so it needs no name of its own among the user's."""
    shell = ast.Call(ast.Name("get_ipython", ast.Load()), [], [])
    extension = ast.Attribute(shell, "tilekit", ast.Load())
    return ast.Call(ast.Attribute(extension, method, ast.Load()), list(arguments), [])


def _assigns(statement: ast.stmt, name: str) -> bool:
    """Whether a statement of the cell itself, not of a block in it, gives a name its value."""
    match statement:
        case ast.Assign(targets=targets):
            return any(isinstance(target, ast.Name) and target.id == name for target in targets)
        case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr()) | ast.FunctionDef(name=found):
            return found == name
        case _:
            return False


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__" and statement.level == 0
