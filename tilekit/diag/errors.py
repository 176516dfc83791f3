# SPDX-License-Identifier: Apache-2.0
"""The errors of every room: a code, a sentence, a place, and what to do; they pickle, and render in three lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, cast

from tilekit.diag import render
from tilekit.diag.diagnostic import Diagnostic, Note
from tilekit.diag.sources import Either, Located, Locator
from tilekit.diag.span import Span


class TilekitError(Exception):
    """Anything that tilekit has to tell the one who must act."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        at: Span | None = None,
        notes: Sequence[str | Note] = (),
        help: str | None = None,
        data: Mapping[str, object] | None = None,
    ) -> None:
        placed = tuple((note, None) if isinstance(note, str) else note for note in notes)
        self.diagnostic = Diagnostic(code, message, at, placed, help)
        self.sources: Locator | None = None
        self.data: dict[str, object] = dict(data or {})
        super().__init__(code, message)

    @property
    def code(self) -> str:
        return self.diagnostic.code

    @property
    def message(self) -> str:
        return self.diagnostic.message

    def located(self, at: Span | None) -> Self:
        """This error, placed at `at` unless it already knows a place of its own."""
        if self.diagnostic.at is None and at is not None:
            self.diagnostic = replace(self.diagnostic, at=at)
        return self

    def noted(self, text: str, at: Span | None = None) -> Self:
        """This error with one more note."""
        self.diagnostic = replace(self.diagnostic, notes=(*self.diagnostic.notes, (text, at)))
        return self

    def with_notes(self, notes: Sequence[Note]) -> Self:
        """This error with these notes in place of its own."""
        self.diagnostic = replace(self.diagnostic, notes=tuple(notes))
        return self

    def with_sources(self, sources: Locator) -> Self:
        """This error, able to show its source lines; the nearest compile that caught it wins."""
        if self.sources is None:
            self.sources = sources
        return self

    # Python puts the class in front of str(), so only the other forms name it.
    def __str__(self) -> str:
        return render.text(self.diagnostic, self.sources)

    def to_text(self) -> str:
        return render.text(self.diagnostic, self.sources, type(self).__name__)

    def to_ansi(self) -> str:
        return render.ansi(self.diagnostic, self.sources, type(self).__name__)

    def _repr_html_(self) -> str:
        return render.html(self.diagnostic, self.sources, type(self).__name__)

    # whether a notebook prints it: in its own color, and the notes of a kernel's error in an output of their own
    in_notebook = False

    @property
    def _printed(self) -> Diagnostic:
        """What of it a traceback says."""
        return self.diagnostic

    def _render_traceback_(self) -> list[str]:
        """What IPython prints in place of a traceback."""
        text = render.ansi(self._printed, self.sources, type(self).__name__, colors=not self.in_notebook)
        return text.split("\n")

    def __reduce__(self) -> tuple[object, ...]:
        places = None if self.sources is None else Located.resolve(self.sources, self.diagnostic.spans())
        return _rebuild, (type(self), self.diagnostic, places, self.data)


def _rebuild(
    cls: type[TilekitError], diagnostic: Diagnostic, sources: Located | None, data: dict[str, object]
) -> TilekitError:
    error = cls(
        diagnostic.code, diagnostic.message, at=diagnostic.at, notes=diagnostic.notes, help=diagnostic.help, data=data
    )
    error.sources = sources
    return error


class LanguageError(TilekitError):
    """The kernel says something that the language does not have."""


def too_deep() -> LanguageError:
    """What a compiler that recurses says where Python lets it go no deeper."""
    return LanguageError(
        "TK115",
        "the kernel is nested too deeply for the compiler",
        help="name the parts of a long expression, and shorten chains of elif",
    )


class VerificationError(TilekitError):
    """A program breaks a rule of the IR."""


class LayoutError(TilekitError):
    """No layout suits every instruction that touches a tensor."""


class PassError(TilekitError):
    """A pass of a person's own failed or broke the program, or cannot stand where it shall."""

    def with_sources(self, sources: Locator) -> Self:
        """This error, able to show lines of the pass and of the kernel."""
        self.sources = sources if self.sources is None else Either(self.sources, sources)
        return self


class CodegenError(TilekitError):
    """An instruction has no code on this target."""


class ToolchainError(TilekitError):
    """A compiler is missing, or refused the source; `data["messages"]` holds what it said."""


class LaunchError(TilekitError):
    """A compiled kernel could not be started."""


class ArgumentError(TilekitError):
    """A call's arguments do not suit the kernel's parameters."""


class KernelError(TilekitError):
    """A running kernel did wrong; `data` says what: kind, tensor, index, first, second, hint, block, thread, line.

    `first` and `second` are the two accesses: block, thread, verb, the line of `source.cu` with its text, the tile
    instruction, and its place in the cell. As HTML its first sentence stands alone, and the notes are folded.
    """

    @property
    def kind(self) -> str:
        return str(self.data.get("kind", ""))

    @property
    def notes_title(self) -> str:
        """One line for what the notes tell."""
        if self.kind == "deadlock":
            return "who waits where for what"
        first, second = (cast("dict[str, Any] | None", self.data.get(end)) for end in ("first", "second"))
        if first is None or second is None:
            return "where it happened"
        names = [f"thread {access['thread']}" for access in (first, second)]
        if first["block"] != second["block"]:
            names = [f"{name} of block {access['block']}" for name, access in zip(names, (first, second), strict=True)]
        return f"the two accesses: {names[0]} {first['verb']}, then {names[1]} {second['verb']}"

    @property
    def _brief(self) -> Diagnostic:
        """What is wrong, where and what to do, without the notes."""
        return replace(self.diagnostic, notes=())

    @property
    def _printed(self) -> Diagnostic:
        return self._brief if self.in_notebook else self.diagnostic

    def html_notes(self) -> str:
        return render.html_notes(self.diagnostic, self.sources, self.notes_title)

    def text_notes(self) -> str:
        return render.text_notes(self.diagnostic, self.sources)

    def _repr_html_(self) -> str:
        return render.html(self._brief, self.sources, type(self).__name__) + self.html_notes()


class CacheError(TilekitError):
    """The cache folder cannot be used."""


class ConfigError(TilekitError):
    """An option or an environment variable has a value that means nothing."""


for _error in (
    TilekitError,
    LanguageError,
    VerificationError,
    LayoutError,
    PassError,
    CodegenError,
    ToolchainError,
    LaunchError,
    ArgumentError,
    KernelError,
    CacheError,
    ConfigError,
):
    # a traceback reads `tilekit.diag.LanguageError`, the name people import
    _error.__module__ = "tilekit.diag"
