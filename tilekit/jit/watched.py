# SPDX-License-Identifier: Apache-2.0
"""What was watched: an array with its place in the kernel, as text and as a table that needs no script."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from tilekit.dtypes import DataType
from tilekit.ir.machine import Array, Mask
from tilekit.jit import tables
from tilekit.jit.tables import ALARM, MUTED, RULE, muted

# rows and columns at each end of a side that is too long to be shown
_EDGE_ROWS, _EDGE_COLUMNS = 8, 5
_UNDEFINED, _MINIMUM, _MAXIMUM = "·", "▾", "▴"

_CELL = "text-align:right;padding:0 6px;border:0;background:none;font:inherit;white-space:nowrap"


@dataclass(frozen=True)
class Place:
    """Where a value was taken: behind a line (None: before the first), its step, and the block."""

    line: int | None
    text: str
    file: str
    step: int
    block: tuple[int, int, int]

    def __str__(self) -> str:
        block = ", ".join(map(str, self.block))
        if self.line is None:
            return f"at the beginning of block ({block})"
        return f"after line {self.line} of {self.file}, step {self.step}, block ({block})"


@dataclass(frozen=True, eq=False, repr=False)
class Watched:
    """The value of a tensor or a scalar of a running kernel.

    Attributes
    ----------
    name, dtype
        What was asked for, and its type.
    array
        The values; of a scalar an array of no dimensions. Elements that were never written hold anything.
    defined
        Which elements were written.
    where
        The line with its text, the step, and the block.
    steps
        How often the line had run by then: in all, if no step was asked for.
    edited
        Whether a person's edit of `source.cu` runs in place of the program that this is a value of.
    notes
        What else there is to know.
    """

    name: str
    dtype: DataType
    array: Array
    defined: Mask
    where: Place
    steps: int
    edited: bool = False
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.array.shape))}]" if self.array.ndim else str(self.dtype)

    @property
    def figures(self) -> str:
        """Minimum, maximum and mean of what is finite, and how many elements are not."""
        values = _comparable(self.array)
        if self.array.dtype == np.bool_:
            return ", ".join([f"{int((self.array & self.defined).sum()):,} true", *self._missing(values)])
        finite = self.defined & np.isfinite(values)
        parts: list[str] = []
        if finite.any():
            low, high = self.extremes
            mean = float(values[finite].mean(dtype=np.float64))
            ends = (("min", low), ("max", high)) if self.array.ndim else (("value", low),)
            parts += [f"{word} {_number(values[at])}{_at(at)}" for word, at in ends]
            parts += [f"mean {mean:.4g}"] if self.array.ndim else []
        return ", ".join([*parts, *self._missing(values)])

    def _missing(self, values: Array) -> list[str]:
        counts = {
            "NaN": self.defined & np.isnan(values),
            "inf": self.defined & np.isinf(values),
            f"undefined ({_UNDEFINED})": ~self.defined,
        }
        return [f"{int(mask.sum()):,} {word}" for word, mask in counts.items() if mask.any()]

    @cached_property
    def extremes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The first index of the smallest and of the largest finite element."""
        values = _comparable(self.array)
        finite = self.defined & np.isfinite(values)
        low, high = _limits(values)
        return _index(np.argmin(np.where(finite, values, high)), values), _index(
            np.argmax(np.where(finite, values, low)), values
        )

    @property
    def remarks(self) -> list[str]:
        edit = ["an edit of source.cu runs in its place: this is a value of the program"] if self.edited else []
        return [*edit, *self.notes]

    # -------------------------------------------------------------------------------------------------------- shown

    def __repr__(self) -> str:
        lines = [f"{self.name}: {self.title} {self.where}"]
        lines += [f"    {self.where.text}"] if self.where.text else []
        lines += [line for line in (self.figures, *self.remarks) if line]
        for prefix, rows, columns, cells in self._tables():
            texts = [[text for text, _ in row] for row in cells]
            lines += [f"{self.name}[{', '.join(map(str, prefix))}]"] if prefix else []
            lines += _aligned([["", *columns], *([row, *line] for row, line in zip(rows, texts, strict=True))])
        return "\n".join(lines + self._left_out())

    def _repr_html_(self) -> str:
        parts = [tables.titled(self.name, f"{self.title} · {self.where}")]
        parts += [f"<div>{escape(self.where.text)}</div>"] if self.where.text else []
        parts += [f"<div>{muted(line)}</div>" for line in (self.figures, *self.remarks, *self._left_out()) if line]
        for prefix, rows, columns, cells in self._tables():
            corner = f"[{', '.join(map(str, prefix))}]" if prefix else ""
            head = "".join(f'<th style="{_CELL};{MUTED};font-weight:400">{text}</th>' for text in (corner, *columns))
            body = "".join(_row(row, line) for row, line in zip(rows, cells, strict=True))
            parts.append(tables.table(head, body))
        return tables.framed("watched", "".join(parts))

    def _tables(self) -> list[tuple[tuple[int, ...], list[str], list[str], list[list[tuple[str, str]]]]]:
        """The first and the last matrix: its index, the names of rows and columns, and cells with their marks."""
        if self.array.ndim == 0:
            return []
        *outer, rows, columns = (1, *self.array.shape) if self.array.ndim == 1 else self.array.shape
        prefixes = [tuple(0 for _ in outer), tuple(extent - 1 for extent in outer)]
        shown = _shown(rows, _EDGE_ROWS), _shown(columns, _EDGE_COLUMNS)
        tables: list[tuple[tuple[int, ...], list[str], list[str], list[list[tuple[str, str]]]]] = []
        for prefix in dict.fromkeys(prefixes):
            place = prefix if self.array.ndim > 1 else None
            cells = [[self._cell(place, row, column) for column in shown[1]] for row in shown[0]]
            names = [_label(row) for row in shown[0]] if self.array.ndim > 1 else [""]
            tables.append((prefix, names, [_label(column) for column in shown[1]], cells))
        return tables

    def _left_out(self) -> list[str]:
        matrices = int(np.prod(self.array.shape[:-2], dtype=np.int64))
        return [f"{matrices - 2:,} more matrices: .array has them all"] if matrices > 2 else []

    def _cell(self, prefix: tuple[int, ...] | None, row: int | None, column: int | None) -> tuple[str, str]:
        """The text of an element, and how it stands out."""
        if row is None or column is None:
            return "⋮" if row is None and column is not None else "…", "muted"
        index = (column,) if prefix is None else (*prefix, row, column)
        value = self.array[index]
        if not self.defined[index]:
            return _UNDEFINED, "muted"
        if self.array.dtype == np.bool_:
            return str(bool(value)).lower(), ""
        number = _comparable(np.asarray(value))
        if not np.isfinite(number):
            return _number(number), "alarm"
        sign = self._sign(index)
        return f"{_number(number)}{sign}", "end" if sign else ""

    def _sign(self, index: tuple[int, ...]) -> str:
        """The sign of an extreme; none where all is the same."""
        low, high = self.extremes
        if self.array[low] == self.array[high]:
            return ""
        return _MINIMUM if index == low else _MAXIMUM if index == high else ""


def _comparable(array: Array) -> Array:
    """The values in a type that NumPy itself knows, exactly: other floats are short, other integers under a byte."""
    if array.dtype.kind in "biuf":
        return array
    return array.astype(np.int64 if "int" in array.dtype.name else np.float32)


def _limits(values: Array) -> tuple[Any, Any]:
    if values.dtype.kind == "b":
        return False, True
    if values.dtype.kind in "iu":
        info = np.iinfo(values.dtype)
        return info.min, info.max
    return -np.inf, np.inf


def _index(flat: Any, values: Array) -> tuple[int, ...]:
    return tuple(int(at) for at in np.unravel_index(int(flat), values.shape)) if values.ndim else ()


def _number(value: Any) -> str:
    return f"{value:.4g}" if np.asarray(value).dtype.kind == "f" else str(value)


def _at(index: tuple[int, ...]) -> str:
    return f" at [{', '.join(map(str, index))}]" if index else ""


def _shown(extent: int, edge: int) -> list[int | None]:
    """The numbers of rows or columns; None stands for those that are left out."""
    if extent <= 2 * edge + 1:
        return list(range(extent))
    return [*range(edge), None, *range(extent - edge, extent)]


def _label(number: int | None) -> str:
    return "…" if number is None else str(number)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    # the sign of an extreme hangs behind the column, so that digits stay under digits
    bare = [[cell.rstrip(_MINIMUM + _MAXIMUM) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in itertools.zip_longest(*bare, fillvalue="")]
    return [
        "".join(
            plain.rjust(width) + (cell[len(plain) :] or " ") + " "
            for cell, plain, width in zip(row, line, widths, strict=True)
        ).rstrip()
        for row, line in zip(rows, bare, strict=True)
    ]


def _row(name: str, cells: Sequence[tuple[str, str]]) -> str:
    styles = {"": "", "muted": f";{MUTED}", "alarm": f";{ALARM};font-weight:600", "end": ";font-weight:600"}
    inner = "".join(f'<td style="{_CELL}{styles[mark]}">{escape(text)}</td>' for text, mark in cells)
    head = f'<th style="{_CELL};{MUTED};font-weight:400;border-right:{RULE}">{name}</th>'
    return f'<tr style="background:none">{head}{inner}</tr>'
