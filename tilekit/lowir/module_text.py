# SPDX-License-Identifier: Apache-2.0
"""Hidet IR as hidet prints it, for people, with the statement that each line shows; it is not read back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tilekit.lowir import _load
from tilekit.lowir.build import Mark
from tilekit.lowir.nodes import IRModule, SeqStmt, Stmt

_printer = _load.load("ir.tools.printer")
_doc = _load.load("utils.doc")

_TAG = re.compile("\0([0-9]+)\0")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the text: the statement that it belongs to, and the number of the tile instruction behind that."""

    text: str
    stmt: Stmt | None = None
    origin: int | None = None


class _TaggingPrinter(_printer.IRPrinter):
    """Prints as hidet does, with a tag at the beginning of each statement that says which one it is."""

    def __init__(self) -> None:
        super().__init__()
        self.statements: list[Stmt] = []

    def visit(self, node: Any) -> Any:
        doc = super().visit(node)
        if isinstance(node, Stmt) and not (isinstance(node, SeqStmt) and node.seq):
            at = next((i for i, token in enumerate(doc.docs, 1) if isinstance(token, _doc.NewLineToken)), 0)
            doc.docs.insert(at, f"\0{len(self.statements)}\0")
            self.statements.append(node)
        return doc


def to_text(module: IRModule) -> str:
    """The module as text."""
    return "\n".join(line.text for line in to_lines(module)) + "\n"


def to_lines(module: IRModule) -> list[Line]:
    """The module line by line."""
    with _load.lock():
        printer = _TaggingPrinter()
        printed = str(printer.astext(module)).splitlines()
    # the statement at each depth, with the number in force: a mark holds for what follows it in its block
    open_: list[tuple[int, Stmt, int | None]] = []
    lines: list[Line] = []
    for tagged in printed:
        tag, text = _TAG.search(tagged), _TAG.sub("", tagged)
        depth = len(text) - len(text.lstrip()) if tag is None else tag.start()
        if text.startswith("# kind:", depth):
            continue
        while open_ and open_[-1][0] > depth:
            open_.pop()
        if tag is not None:
            stmt = printer.statements[int(tag[1])]
            origin = stmt.origin if isinstance(stmt, Mark) else open_[-1][2] if open_ else None
            open_ = [*(one for one in open_ if one[0] < depth), (depth, stmt, origin)]
        # what has no tag is the rest of a statement of several lines
        lines.append(Line(text, *open_[-1][1:]) if open_ else Line(text))
    return lines
