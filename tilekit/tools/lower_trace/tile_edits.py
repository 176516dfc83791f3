# SPDX-License-Identifier: Apache-2.0
"""The tile IR after a pass as a text that a person edits: the same files and the same table as for a source."""

from __future__ import annotations

from tilekit import textdiff
from tilekit.diag import TilekitError
from tilekit.diag.span import Span
from tilekit.ir.prog import Program
from tilekit.ir.text import parser
from tilekit.tools.lower_trace.edit_table import Tag, Unfit
from tilekit.tools.lower_trace.edits import TILES, EditFolder


def folder_of(kernel: EditFolder, number: int, name: str) -> EditFolder:
    """The files of the program after a tile pass of a kernel, which is the `number`-th step of its compile."""
    return EditFolder(
        kernel.path / TILES,
        f"{number:02d}_{name}.tir",
        lambda generated, text: _unreadable(text),
        f"what {name} made",
    )


def read(text: str, generated: Program) -> Program:
    """The program of an edited text; lines that it shares with the generated one keep their places in the cell."""
    old, new = str(generated).split("\n"), text.split("\n")
    known = generated.line_spans()
    spans: list[Span | None] = [None] * len(new)
    for run in textdiff.align(old, new):
        if run.kind in (textdiff.Kind.SAME, textdiff.Kind.EDITED):
            spans[run.right : run.right + run.count] = known[run.left : run.left + run.count]
    return parser.parse_program(text, spans)


def _unreadable(text: str) -> Unfit | None:
    """Why a text is no program, with the place in it."""
    try:
        parser.parse_program(text)
    except TilekitError as error:
        line, column = error.data.get("line"), error.data.get("column")
        if not isinstance(line, int) or not isinstance(column, int):
            return Unfit(Tag.UNREADABLE, f"does not parse: {error.message}")
        why = f"does not parse: line {line}, column {column}: {error.data['message']}"
        lines = text.split("\n")
        shown = lines[line - 1] if line <= len(lines) else ""
        return Unfit(Tag.UNREADABLE, why, (f"    {shown}", f"    {' ' * (column - 1)}^"))
    return None
