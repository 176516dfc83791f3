# SPDX-License-Identifier: Apache-2.0
"""`%%tilus` as a rewrite of the cell, not as a magic that swallows it.

The first line becomes a call, and the rest stays an ordinary IPython cell at its own line numbers: the last expression,
`Out`, `;`, `%timeit`, `!`, `?` and `await` work because nothing about them changes. The tree of such a cell has its
imports of tilus redirected and ends in a call that waits for the GPU and shows what was compiled.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Sequence

from tilekit import aliases
from tilekit.diag import errors

BEGIN = "__tilekit_begin__"
END = "__tilekit_end__"
_FIRST_LINE = re.compile(r"%%tilus(?=\s|$)(?P<options>[^\n]*)")
_HELP = re.compile(r"%%tilus\s*\?")


def rewrite_lines(lines: list[str]) -> list[str]:
    """Turn the first line of a `%%tilus` cell into the call that begins it; other cells stay as they are."""
    if not lines:
        return lines
    found = _FIRST_LINE.match(lines[0])
    if found is None:
        _refuse_later(lines)
        return lines
    return [f"{BEGIN}({found['options'].strip()!r})\n", *lines[1:]]


def _refuse_later(lines: Sequence[str]) -> None:
    late = [number for number, line in enumerate(lines, start=1) if _FIRST_LINE.match(line) and not _HELP.match(line)]
    if not late or lines[0].startswith("%%"):
        # below another cell magic the rest of the cell is that magic's, which hands it back to IPython as a cell
        return
    number = late[0]
    if number in _lines_in_strings("".join(lines)):
        return
    raise errors.LanguageError(
        "TK801",
        f"%%tilus is on line {number} of the cell, and must be on the first",
        help="move it to the top, or split the cell in two",
    )


def _lines_in_strings(text: str) -> set[int]:
    inside: set[int] = set()
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING:
                inside.update(range(token.start[0] + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError):
        # shell escapes and other IPython syntax: what was read so far decides
        pass
    return inside


class CellTransformer(ast.NodeTransformer):
    """Redirects the imports of a `%%tilus` cell and adds its end; any other tree passes through."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        if not node.body or not _is_begin(node.body[0]):
            return node
        tree = aliases.rewrite_imports(node)
        classes = [statement.name for statement in tree.body if isinstance(statement, ast.ClassDef)]
        last = tree.body[-1]
        shown = isinstance(last, ast.Expr) and len(tree.body) > 1
        value = last.value if isinstance(last, ast.Expr) and shown else ast.Constant(None)
        call = ast.Call(ast.Name(END, ast.Load()), [ast.Constant(tuple(classes)), value], [])
        end = ast.copy_location(ast.Expr(call), last)
        body = [*tree.body[:-1], end] if shown else [*tree.body, end]
        return ast.fix_missing_locations(ast.Module(body, tree.type_ignores))


def _is_begin(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name))):
            return name == BEGIN
        case _:
            return False
