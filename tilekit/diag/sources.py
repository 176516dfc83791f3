# SPDX-License-Identifier: Apache-2.0
"""From a span to the line a person sees now: resolved through live code objects only when something is shown."""

from __future__ import annotations

import itertools
import linecache
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Protocol

from tilekit.diag.span import Span

_DEF = re.compile(r"\s*(async\s+)?def\b")


@dataclass(frozen=True, slots=True)
class Location:
    """A span in a file as it is now; lines count from 1, columns are byte offsets as in `ast`."""

    filename: str
    display_name: str
    line: int
    col: int
    end_line: int
    end_col: int
    text_line: str


class Locator(Protocol):
    """What rendering needs: the place of a span, or None when nobody knows it any more."""

    def locate(self, span: Span) -> Location | None: ...


# what a person calls a file: a notebook, where files are cells, replaces it
_display: list[Callable[[str], str]] = [str]


def set_display(display: Callable[[str], str] | None) -> None:
    """Let `display` turn file names into what people call them; None goes back to the path."""
    _display[0] = display or str


def display_name(filename: str) -> str:
    """What a person calls this file."""
    return _display[0](filename)


@dataclass
class Sources:
    """The functions of a program by name, each with the code object it was read from.

    `display` turns a file name into what a person calls it; without one, `set_display` decides.
    """

    display: Callable[[str], str] | None = None
    _codes: dict[str, CodeType] = field(default_factory=dict[str, CodeType])

    def register(self, name: str, code: CodeType) -> None:
        self._codes[name] = code

    def code(self, name: str) -> CodeType | None:
        """The code object of a function, if it was registered."""
        return self._codes.get(name)

    def locate(self, span: Span) -> Location | None:
        code = self._codes.get(span.function)
        if code is None:
            return None
        filename = code.co_filename
        start = def_line(code)
        line = start + span.line
        text = linecache.getline(filename, line).rstrip("\r\n")
        return Location(
            filename, (self.display or _display[0])(filename), line, span.col, start + span.end_line, span.end_col, text
        )


@dataclass(frozen=True)
class Located:
    """Places resolved beforehand: what is left of `Sources` when an error travels to another process."""

    places: Mapping[Span, Location]

    @staticmethod
    def resolve(sources: Locator, spans: Iterable[Span]) -> Located:
        found = ((span, sources.locate(span)) for span in spans)
        return Located({span: location for span, location in found if location is not None})

    def locate(self, span: Span) -> Location | None:
        return self.places.get(span)


@dataclass(frozen=True)
class Either:
    """Places that one of two knows."""

    first: Locator
    second: Locator

    def locate(self, span: Span) -> Location | None:
        return self.first.locate(span) or self.second.locate(span)


def running(code: CodeType, instruction: int) -> Location | None:
    """Where a function is when it has come to an instruction, as a frame counts them; None if no source is kept."""
    position = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
    line, end_line, col, end_col = position
    text = "" if line is None else linecache.getline(code.co_filename, line).rstrip("\r\n")
    if line is None or not text:
        return None
    name, end = display_name(code.co_filename), len(text.encode()) if end_col is None else end_col
    return Location(code.co_filename, name, line, col or 0, end_line or line, end, text)


def defined(code: CodeType) -> Location | None:
    """The name in the `def` line of a function; None if no source is kept."""
    line = def_line(code)
    text = linecache.getline(code.co_filename, line).rstrip("\r\n")
    found = re.search(rf"\bdef\s+({re.escape(code.co_name)})\b", text)
    if found is None:
        return None
    begin, end = (len(text[:place].encode()) for place in found.span(1))
    return Location(code.co_filename, display_name(code.co_filename), line, begin, line, end, text)


def def_line(code: CodeType) -> int:
    """The line of the function's `def`; a code object begins at the first decorator instead."""
    first = code.co_firstlineno
    if code.co_name == "<lambda>":
        return first
    lines = linecache.getlines(code.co_filename)
    for number in range(first, len(lines) + 1):
        if _DEF.match(lines[number - 1]):
            return number
    return first
