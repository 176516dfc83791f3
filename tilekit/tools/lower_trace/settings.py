# SPDX-License-Identifier: Apache-2.0
"""What a person asks of the trace: in the environment, in a call, or not at all."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final, TypeVar

from tilekit import config
from tilekit.cache.scripts import snake_case
from tilekit.config import TraceMode
from tilekit.diag import ConfigError
from tilekit.tools.lower_trace.edit_table import Policy

FOLDER = Path("tmp", "lower_trace_dir")
MAX_LINES = 200
# patterns that begin with it are for passes, not for kernels
_OF_PASSES = "pass:"

_T = TypeVar("_T")


class NotGiven(Enum):
    """In place of an argument for which None means something."""

    NOT_GIVEN = "not given"

    def __repr__(self) -> str:
        return "…"


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


class Cached(Enum):
    """What becomes of a kernel that the cache has."""

    TRACE = "trace"  # its passes run again, to be seen
    SKIP = "skip"  # a line says that it is not traced


@dataclass(frozen=True, slots=True)
class Filter:
    """Which kernels and which of their passes are traced; without a pattern, all of them."""

    kernels: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()

    @staticmethod
    def parse(text: str) -> Filter:
        """Patterns with `*`, `?` and `[…]`, separated by commas: of kernels, and behind `pass:` of passes."""
        words = [word.strip() for word in text.split(",") if word.strip()]
        passes = tuple(w.removeprefix(_OF_PASSES).strip() for w in words if w.startswith(_OF_PASSES))
        return Filter(tuple(w for w in words if not w.startswith(_OF_PASSES)), passes)

    def takes_kernel(self, script: str) -> bool:
        """Whether the kernels of a script are traced: it goes by the name of its class and by that in snake case."""
        names = script, snake_case(script)
        return not self.kernels or any(matches(name, pattern) for name in names for pattern in self.kernels)

    def takes_pass(self, name: str) -> bool:
        return not self.passes or any(matches(name, pattern) for pattern in self.passes)


def matches(name: str, pattern: str) -> bool:
    """Whether a name is like a pattern such as `matmul*`."""
    return fnmatchcase(name.lower(), pattern.lower())


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that a trace is told when it begins.

    `codegen_output` is the file for the generated source of the first kernel; None for none.
    """

    mode: TraceMode
    folder: Path = FOLDER
    filter: Filter = field(default_factory=Filter)
    cached: Cached = Cached.TRACE
    max_lines: int = MAX_LINES
    on_conflict: Policy = Policy.REGENERATE
    codegen_output: Path | NotGiven | None = NOT_GIVEN

    @property
    def keeps_source(self) -> bool:
        """Whether the generated source is written where it can be edited."""
        if self.codegen_output is NOT_GIVEN:
            return self.mode.makes_page
        return self.codegen_output is not None


def resolve(
    mode: str | TraceMode | NotGiven | None = NOT_GIVEN,
    trace_dir: str | os.PathLike[str] | None = None,
    codegen_output: str | os.PathLike[str] | NotGiven | None = NOT_GIVEN,
    filter: str | None = None,
    cached: str | None = None,
    max_lines: int | None = None,
    on_conflict: str | None = None,
) -> Settings:
    """What was given, else what the environment says, else the defaults."""
    given: dict[str, Any] = {
        "FILTER": filter, "CACHED": cached, "MAX_LINES": max_lines, "ON_CONFLICT": on_conflict
    }  # fmt: skip
    values = {name: _environment(name, read) for name, read in _READ.items()}
    values |= {name: _given(name, value) for name, value in given.items() if value is not None}
    folder = None if trace_dir is None else read_path("the folder of traces", trace_dir)
    return Settings(
        mode=config.trace_mode() if mode is NOT_GIVEN else read_mode(mode),
        folder=_absolute(folder or _folder()),
        filter=values["FILTER"] or Filter(),
        cached=values["CACHED"] or Cached.TRACE,
        max_lines=MAX_LINES if values["MAX_LINES"] is None else values["MAX_LINES"],
        on_conflict=values["ON_CONFLICT"] or Policy.REGENERATE,
        codegen_output=_path(codegen_output),
    )


def read_mode(mode: str | TraceMode | None) -> TraceMode:
    """The mode that an argument names; anything false is off."""
    if isinstance(mode, TraceMode):
        return mode
    try:
        return config.read_trace_mode(str(mode or ""))
    except ValueError as wanted:
        raise ConfigError("TK913", f"mode={mode!r} means nothing", help=f"it is {wanted}") from None


def read_path(what: str, given: str | os.PathLike[str]) -> str:
    """The path that an argument is; blank where it says nothing."""
    try:
        return os.fsdecode(os.fspath(given))
    except TypeError:
        raise ConfigError("TK913", f"{what} is a path, not {given!r}") from None


def _folder() -> str | Path:
    return config.trace_variable(f"{config.TRACE}_DIR")[1] or FOLDER


def _path(given: str | os.PathLike[str] | NotGiven | None) -> Path | NotGiven | None:
    if given is None or isinstance(given, NotGiven):
        return given
    # blank, as everywhere: nothing is said
    path = read_path("codegen_output", given)
    return _absolute(path) if path else NOT_GIVEN


def _absolute(given: str | os.PathLike[str]) -> Path:
    path = os.path.expanduser(given)
    try:
        return Path(os.path.abspath(path))
    except OSError:  # the working directory was deleted
        return Path(tempfile.gettempdir(), path)


def _lines(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("a whole number of lines, or 0 for all of them")
    return int(text)


def _word(words: type[_T]) -> Callable[[str], _T]:
    def read(text: str) -> _T:
        try:
            return words(text.lower())  # pyright: ignore[reportCallIssue]
        except ValueError:
            raise ValueError(f"one of {', '.join(word.value for word in words)}") from None  # pyright: ignore

    return read


# what stands behind `LOWER_TRACE_`, and how it is read
_READ: Mapping[str, Callable[[str], Any]] = {
    "FILTER": Filter.parse,
    "CACHED": _word(Cached),
    "MAX_LINES": _lines,
    "ON_CONFLICT": _word(Policy),
}


def _environment(name: str, read: Callable[[str], Any]) -> Any:
    """What a variable says; None if it is not set, and with a warning if it means nothing."""
    variable, text = config.trace_variable(f"{config.TRACE}_{name}")
    if not text:
        return None
    try:
        return read(text)
    except ValueError as wanted:
        warnings.warn(f"{variable}={text!r} means nothing, so it is ignored: it is {wanted}", stacklevel=2)
        return None


def _given(name: str, value: Any) -> Any:
    try:
        return _READ[name](str(value))
    except ValueError as wanted:
        raise ConfigError("TK913", f"{name.lower()}={value!r} means nothing", help=f"it is {wanted}") from None
