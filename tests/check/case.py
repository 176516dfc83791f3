# SPDX-License-Identifier: Apache-2.0
"""A broken kernel as what it is: the text of one that is right, an edit, and what a report has to say about it."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.kernels.machines import scheduled
from tests.lang.cells import cell
from tilekit.diag import KernelError, TilekitError

HERE, OR_HERE = "  # <- here", "  # <- or here"

# what the compiler refuses by these codes has a name of its own, whoever finds it; the rest is "language"
KIND_OF_CODE = {
    "TK193": "uninitialized",
    "TK402": "shared_limit",
    "TK701": "uninitialized",
    "TK702": "out_of_bounds",
    "TK703": "timeout",
    "TK704": "misaligned",
    "TK705": "out_of_bounds",
    "TK710": "deadlock",
    "TK711": "divergence",
    "TK714": "division_by_zero",
    "TK721": "in_flight",
}


@dataclass(frozen=True)
class Original:
    """A kernel that is right: a script class, or a function that makes its handle, with small arguments."""

    source: Callable[..., Any]
    arguments: Callable[[], tuple[Any, ...]]
    # what the class or the function is called with
    options: tuple[Any, ...] = ()
    # of a kernel with a space of schedules, the one to try
    schedule: Mapping[str, int] | None = None

    @property
    def text(self) -> str:
        """The cell that defines it."""
        return textwrap.dedent(inspect.getsource(self.source))

    def handle(self, text: str | None = None) -> Any:
        """The kernel, from its own text or from an edited one, which stands in a cell."""
        found = cell(text or self.text, **vars(sys.modules[self.source.__module__]))[self.source.__name__]
        handle = found(*self.options)
        return handle if self.schedule is None else scheduled(handle, self.schedule)

    def on(self, arguments: Callable[[], tuple[Any, ...]]) -> Original:
        """The same kernel on other arguments."""
        return replace(self, arguments=arguments)


@dataclass(frozen=True)
class Broken:
    """An edit of a kernel, the kind of mistake that it makes, and the line that a report has to point at.

    `here` is a part of that line. Where two accesses meet and the schedule decides which of them comes second,
    `or_here` has the lines of the others.
    """

    name: str
    kind: str
    original: Original
    here: str
    or_here: tuple[str, ...] = ()
    # old text and new, each old text once in the cell
    script: tuple[tuple[str, str], ...] = ()
    # the same for the generated source.cu
    source: tuple[tuple[str, str], ...] = ()
    # where the mistake lies in the call
    arguments: Callable[[], tuple[Any, ...]] | None = None

    @property
    def text(self) -> str:
        """The cell with the mistake in it and with markers at the lines that a report may point at."""
        lines = edited(self.original.text, self.script).splitlines()
        for part, marker in [(self.here, HERE), *((part, OR_HERE) for part in self.or_here)]:
            found = [at for at, line in enumerate(lines) if part in line]
            assert len(found) == 1, f"{self.name}: {part!r} is in {len(found)} lines"
            lines[found[0]] += marker
        return "\n".join(lines) + "\n"

    @property
    def lines(self) -> set[int]:
        """The lines that a report may point at, counted from 1."""
        return {at for at, line in enumerate(self.text.splitlines(), 1) if line.endswith((HERE, OR_HERE))}

    def handle(self) -> Any:
        """The kernel with the edit of its script; an edit of the source comes with `patch`."""
        return self.original.handle(self.text)

    def patch(self, handle: Any, args: tuple[Any, ...]) -> None:
        """Put the edited source in place of the generated one."""
        handle.compile(*args, device="cpu")
        handle.last.recompile(edited(handle.last.source, self.source))

    def call(self) -> tuple[Any, ...]:
        """Fresh arguments."""
        return (self.arguments or self.original.arguments)()


def edited(text: str, edits: tuple[tuple[str, str], ...]) -> str:
    """The text with each edit made in the one place that it names."""
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in the text"
        text = text.replace(old, new)
    return text


def kind_of(error: TilekitError) -> str:
    """The kind of mistake that an error reports; what the compiler refuses is one of language."""
    named = error.data.get("kind")
    if named is not None or isinstance(error, KernelError):
        return str(named)
    return KIND_OF_CODE.get(error.code, "language")


def line_of(error: TilekitError) -> int | None:
    """The line of the cell that an error points at, counted from 1."""
    at = error.diagnostic.at
    place = None if at is None or error.sources is None else error.sources.locate(at)
    return None if place is None else place.line
