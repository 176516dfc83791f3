# SPDX-License-Identifier: Apache-2.0
"""A diagnostic as plain text, as ANSI and as HTML: one list of styled lines, three ways of painting it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from html import escape

from tilekit.diag.diagnostic import Diagnostic
from tilekit.diag.sources import Location, Locator
from tilekit.diag.span import Span

_TAB = 4


class Tone(Enum):
    """What a piece of text is; its values are the ANSI code and the CSS, which takes its colors from the notebook."""

    PLAIN = ("", "")
    ERROR = ("1;31", "color:var(--jp-error-color1,#c62828);font-weight:bold")
    PLACE = ("1", "font-weight:bold")
    NOTE = ("1;34", "font-weight:bold")
    HELP = ("1;32", "font-weight:bold")
    QUOTE = ("2", "color:var(--jp-ui-font-color2,#757575)")


@dataclass(frozen=True, slots=True)
class Piece:
    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Piece, ...]


def text(diagnostic: Diagnostic, sources: Locator | None = None, title: str = "") -> str:
    """Plain text; `title` is the word in front of the code, usually the error's class."""
    return "\n".join("".join(piece.text for piece in line) for line in _lines(diagnostic, sources, title))


def ansi(diagnostic: Diagnostic, sources: Locator | None = None, title: str = "", *, colors: bool = True) -> str:
    """Text for a terminal: bold, and in colors or in the one of its surroundings."""
    return "\n".join(
        "".join(_ansi_piece(piece, colors) for piece in line) for line in _lines(diagnostic, sources, title)
    )


def html(diagnostic: Diagnostic, sources: Locator | None = None, title: str = "") -> str:
    """One `<pre>` that carries its own style and reads the same without it."""
    return _pre(_lines(diagnostic, sources, title))


def html_notes(diagnostic: Diagnostic, sources: Locator | None = None, summary: str = "details") -> str:
    """The notes alone, folded to a line; empty where there are none."""
    lines = _notes(diagnostic, sources)
    if not lines:
        return ""
    head = f'<summary style="{_FONT};cursor:pointer">{escape(summary)}</summary>'
    return f'<details style="margin:4px 0">{head}{_pre(lines)}</details>'


def text_notes(diagnostic: Diagnostic, sources: Locator | None = None) -> str:
    """The notes alone."""
    return "\n".join("".join(piece.text for piece in line) for line in _notes(diagnostic, sources))


_FONT = (
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);"
    "font-size:var(--jp-code-font-size,13px);line-height:1.45"
)


def _pre(lines: Iterable[Line]) -> str:
    body = "\n".join("".join(map(_html_piece, line)) for line in lines)
    return f'<pre style="margin:0;{_FONT};white-space:pre-wrap">{body}</pre>'


def _ansi_piece(piece: Piece, colors: bool) -> str:
    code = piece.tone.value[0] if colors else piece.tone.value[0].partition(";")[0]
    return f"\x1b[{code}m{piece.text}\x1b[0m" if code and piece.text else piece.text


def _html_piece(piece: Piece) -> str:
    style = piece.tone.value[1]
    return f'<span style="{style}">{escape(piece.text)}</span>' if style and piece.text else escape(piece.text)


def _lines(diagnostic: Diagnostic, sources: Locator | None, title: str) -> list[Line]:
    head = f"{title} {diagnostic.code}" if title else diagnostic.code
    at = diagnostic.at
    if at is None:
        lines = _headed((Piece(head, Tone.ERROR), Piece(": ")), diagnostic.message)
    else:
        place = Piece(f"{at.function}, {describe(at, sources)}", Tone.PLACE)
        lines = _headed((Piece(head, Tone.ERROR), Piece(" in "), place, Piece(": ")), diagnostic.message)
        lines += _excerpt(at, sources, "    ")
        for caller in at.callers():
            lines += _headed(_NOTE_HEAD, f"called from {caller.function}, {describe(caller, sources)}")
            lines += _excerpt(caller, sources, "      ")
    lines += _notes(diagnostic, sources)
    if diagnostic.help is not None:
        lines += _headed(_HELP_HEAD, diagnostic.help)
    return lines


def _headed(head: Line, message: str) -> list[Line]:
    """A message after its head; its further lines are indented under it."""
    first, *rest = message.split("\n")
    return [(*head, Piece(first)), *((Piece(f"    {line}"),) for line in rest)]


_NOTE_HEAD: Line = (Piece("  "), Piece("note", Tone.NOTE), Piece(": "))
_HELP_HEAD: Line = (Piece("  "), Piece("help", Tone.HELP), Piece(": "))


def _notes(diagnostic: Diagnostic, sources: Locator | None) -> list[Line]:
    return [line for message, at in diagnostic.notes for line in _note(message, at, sources)]


def _note(message: str, at: Span | None, sources: Locator | None) -> list[Line]:
    """A sentence with its place, the line that it points at, and what the note quotes."""
    sentence, *quotes = message.split("\n")
    head: Line = (*_NOTE_HEAD, Piece(sentence))
    quoted: list[Line] = [(Piece(f"      {quote}", Tone.QUOTE),) for quote in quotes]
    if at is None:
        return [head, *quoted]
    place = Piece(f" ({describe(at, sources)})", Tone.PLACE)
    return [(*head, place), *_excerpt(at, sources, "      "), *quoted]


def describe(at: Span, sources: Locator | None = None) -> str:
    """Where a span is, in words: `Cell In[2], line 14`, or the distance from its `def` when the file is unknown."""
    location = None if sources is None else sources.locate(at)
    if location is not None:
        return f"{location.display_name}, line {location.line}"
    if at.line == 0:
        return "at its def"
    return f"{at.line} line{'s' if at.line > 1 else ''} below its def"


def _excerpt(at: Span, sources: Locator | None, indent: str) -> list[Line]:
    """The source line and the carets under it; nothing when the line is not to be had."""
    location = None if sources is None else sources.locate(at)
    if location is None or not location.text_line.strip():
        return []
    shown, carets = underline(location)
    return [(Piece(indent + shown),), (Piece(indent), Piece(carets, Tone.ERROR))]


def underline(location: Location) -> tuple[str, str]:
    """The location's line without its indentation, and the carets for it, as wide as a terminal shows them."""
    raw = location.text_line.encode()
    body = location.text_line.strip()
    margin = len(raw) - len(location.text_line.lstrip().encode())
    several = location.end_line > location.line
    begin = min(max(location.col, margin), len(raw))
    end = len(location.text_line.rstrip().encode()) if several else min(location.end_col, len(raw))
    before = raw[margin:begin].decode(errors="replace")
    under = raw[begin:end].decode(errors="replace")
    start = _width(before)
    width = max(1, _width(under, start))
    tail = f" ... through line {location.end_line}" if several else ""
    return _expand(body), f"{' ' * start}{'^' * width}{tail}"


def _expand(line: str) -> str:
    """The line with tabs as spaces, so that carets meet it whatever the terminal's tab stops."""
    out = ""
    for char in line:
        out += " " * (_TAB - _width(out) % _TAB) if char == "\t" else char
    return out


def _width(chars: str, start: int = 0) -> int:
    """Terminal columns that `chars` take when they begin at column `start`."""
    column = start
    for char in chars:
        if char == "\t":
            column += _TAB - column % _TAB
        elif unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
            continue
        else:
            column += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return column - start
