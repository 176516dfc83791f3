# SPDX-License-Identifier: Apache-2.0
"""How tables of ours look, as text and on a page: with styles alone, which a saved notebook keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

FONT = (
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);font-size:11.5px;line-height:18px;"
    "font-variant-numeric:tabular-nums"
)
MUTED = "color:var(--jp-ui-font-color2,#757575)"
ALARM = "color:var(--jp-error-color1,#d32f2f)"
LINE = "var(--jp-border-color2,#e0e0e0)"
RULE = f"1px solid {LINE}"
CELL = "padding:0 14px 0 0;border:0;background:none;font:inherit;white-space:nowrap;vertical-align:top"
_BAR = "display:inline-block;height:7px;border-radius:2px"


def text_lines(rows: Sequence[Sequence[str]], aligns: Sequence[str]) -> list[str]:
    """Rows of which each column is as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def joined(row: Sequence[str]) -> str:
        padded = zip(row, widths, aligns, strict=True)
        cells = (text.rjust(width) if align == "right" else text.ljust(width) for text, width, align in padded)
        return "  ".join(cells).rstrip()

    return list(map(joined, rows))


def muted(text: str) -> str:
    return f'<span style="{MUTED}">{escape(text)}</span>'


def remarks(texts: Iterable[str], style: str = MUTED) -> str:
    """A line for each."""
    return "".join(f'<div style="{style}">{escape(text)}</div>' for text in texts)


def head_cells(texts: Sequence[str], aligns: Sequence[str]) -> str:
    return "".join(
        f'<th style="{CELL};{MUTED};font-weight:400;text-align:{align}">{escape(text)}</th>'
        for text, align in zip(texts, aligns, strict=True)
    )


def cells(texts: Sequence[str], aligns: Sequence[str], style: str) -> str:
    return "".join(
        f'<td style="{CELL};text-align:{align};{style}">{escape(text)}</td>'
        for text, align in zip(texts, aligns, strict=True)
    )


def bar(width: float, style: str) -> str:
    """A bar so many pixels long; nothing where that is none."""
    return f'<span style="{_BAR};width:{width:.0f}px;{style}"></span>' if width else ""


def table(head: str, body: str) -> str:
    """Rows under one row of titles, which scroll sideways."""
    return (
        f'<div style="overflow-x:auto;margin:4px 0"><table style="margin:0;border:0;border-collapse:collapse;'
        f'font:inherit"><thead style="border-bottom:{RULE}"><tr style="background:none">{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def framed(kind: str, content: str) -> str:
    """What a value shows of itself on a page."""
    return f'<div class="tk-{kind}" style="{FONT}">{content}</div>'


def titled(title: str, about: str) -> str:
    return f"<div><b>{escape(title)}</b> {muted(about)}</div>"
