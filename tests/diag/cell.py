# SPDX-License-Identifier: Apache-2.0
"""A notebook cell with one function, as the error machinery sees it."""

import ast
import itertools
import linecache
from types import CodeType

from tilekit.diag import Sources, Span

_numbers = itertools.count()


class Cell:
    """Compiles `text` as cell 2 and gives spans of stretches of the function called `name`."""

    def __init__(self, text: str, name: str):
        self.text = text
        self.name = name
        self.filename = f"<cell {next(_numbers)}>"
        self.sources = Sources(display=lambda filename: "Cell In[2]" if filename == self.filename else filename)
        self.run(text)

    def run(self, text: str):
        """Run the cell again, perhaps with other text."""
        self.text = text
        linecache.cache[self.filename] = (len(text), None, text.splitlines(keepends=True), self.filename)
        module = compile(text, self.filename, "exec")
        self.sources.register(self.name, _function(module, self.name))

    def forget(self):
        del linecache.cache[self.filename]

    def span(self, piece: str, end: str | None = None, caller: Span | None = None) -> Span:
        """The span from the first time `piece` stands below the def to its end, or to the end of `end` after it."""
        raw = self.text.encode()
        start = raw.index(piece.encode(), self._def_offset())
        last = piece if end is None else end
        stop = raw.index(last.encode(), start) + len(last.encode())
        (line, col), (end_line, end_col) = (self._place(raw, offset) for offset in (start, stop))
        first = self._def_line()
        return Span(self.name, line - first, col, end_line - first, end_col, caller)

    def _node(self) -> ast.FunctionDef:
        wanted = self.name.split(".")[-1]
        nodes = ast.walk(ast.parse(self.text))
        return next(node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == wanted)

    def _def_line(self) -> int:
        return self._node().lineno

    def _def_offset(self) -> int:
        return len("".join(self.text.splitlines(keepends=True)[: self._def_line() - 1]).encode())

    @staticmethod
    def _place(raw: bytes, offset: int) -> tuple[int, int]:
        before = raw[:offset]
        return before.count(b"\n") + 1, offset - (before.rfind(b"\n") + 1)


def _function(code: CodeType, qualname: str) -> CodeType:
    for const in code.co_consts:
        if not isinstance(const, CodeType):
            continue
        if const.co_qualname == qualname:
            return const
        try:
            return _function(const, qualname)
        except LookupError:
            continue
    raise LookupError(qualname)
