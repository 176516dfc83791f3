# SPDX-License-Identifier: Apache-2.0
"""Where a person reads along while kernels compile: stderr, in the colors, characters and width that it has."""

from __future__ import annotations

import os
import sys
from enum import Enum
from typing import TextIO


class Style(Enum):
    """What a line is, by its color."""

    PLAIN = ""
    HEADING = "1"
    ADDED = "32"
    REMOVED = "31"
    PLACE = "36"
    FAILED = "1;31"


_ASCII = str.maketrans({"…": "...", "·": "-", "→": "->", "−": "-"})
_PLAIN_LOCALES = ("C", "POSIX")


class Console:
    """Prints lines, each at once."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    @property
    def stream(self) -> TextIO:
        # not kept: notebooks and tests put others in its place
        return self._stream or sys.stderr

    def say(self, line: str) -> None:
        """A sentence of ours, which is never cut."""
        self._write(f"tilekit: {self._own(line)}")

    def heading(self, line: str, style: Style = Style.HEADING) -> None:
        self._write(self._colored(self._fitted(self._own(line)), style))

    def text(self, line: str, style: Style = Style.PLAIN) -> None:
        """A line of a program, cut to the width of the terminal."""
        self._write(self._colored(self._fitted(line), style))

    def _write(self, line: str) -> None:
        stream = self.stream
        try:
            stream.write(f"{line}\n")
        except UnicodeEncodeError:
            stream.write(line.encode("ascii", "backslashreplace").decode() + "\n")
        stream.flush()

    def _colored(self, line: str, style: Style) -> str:
        return f"\x1b[{style.value}m{line}\x1b[0m" if style.value and self._has_colors() else line

    def _fitted(self, line: str) -> str:
        width = self._width()
        if width is None or len(line) <= width:
            return line
        end = self._own("…")
        return line[: max(width - len(end), 0)] + end

    def _own(self, line: str) -> str:
        """A line of ours in the characters that are there."""
        return line.translate(_ASCII) if self._is_ascii() else line

    def _has_colors(self) -> bool:
        if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            return False
        # a notebook shows colors, too
        return self.stream.isatty() or type(self.stream).__module__ == "ipykernel.iostream"

    def _width(self) -> int | None:
        """The columns of the terminal; None where it is none."""
        if not self.stream.isatty():
            return None
        told = os.environ.get("COLUMNS", "")
        if told.isdecimal() and int(told):  # 0 is what says nothing
            return int(told)
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or None
        except (OSError, ValueError):
            return None

    def _is_ascii(self) -> bool:
        encoding = (self.stream.encoding or "ascii").lower().replace("-", "")
        # where the locale is C, Python itself sets LC_CTYPE and makes its streams UTF-8
        category = os.environ.get("LC_CTYPE", "").replace("C.UTF-8", "")
        locale = os.environ.get("LC_ALL") or category or os.environ.get("LANG")
        return locale in _PLAIN_LOCALES or not encoding.startswith("utf")
