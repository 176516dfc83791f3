# SPDX-License-Identifier: Apache-2.0
"""The tile IR after a pass as a text that a person edits: the same files and the same table as for a source."""

from __future__ import annotations

from tilekit.diag import TilekitError
from tilekit.ir.text import parser
from tilekit.tools.lower_trace.edit_table import Tag, Unfit
from tilekit.tools.lower_trace.edits import TILES, EditFolder
from tilekit.transforms import edits


def folder_of(kernel: EditFolder, number: int, name: str) -> EditFolder:
    """The files of the program after a tile pass of a kernel, the `number`-th from 1."""
    return EditFolder(
        kernel.path / TILES,
        f"{edits.tile_file(number, name)}.tir",
        lambda generated, text: _unreadable(text),
        f"what {name} made",
        durable=False,  # a compile has many of them
    )


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
