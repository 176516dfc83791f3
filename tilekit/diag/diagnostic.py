# SPDX-License-Identifier: Apache-2.0
"""One thing to tell a person: what is wrong, where, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilekit.diag import catalog
from tilekit.diag.span import Span

Note = tuple[str, Span | None]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A coded message with its place; `notes` point at other places that explain it, `help` says what to do."""

    code: str
    message: str
    at: Span | None = None
    notes: tuple[Note, ...] = ()
    help: str | None = None

    def __post_init__(self) -> None:
        if self.code not in catalog.TITLES:
            raise KeyError(f"error code {self.code} is not in tilekit/diag/catalog.py")

    @property
    def title(self) -> str:
        return catalog.TITLES[self.code]

    def spans(self) -> Iterator[Span]:
        """Every place that this diagnostic mentions, call sites included."""
        for span in (self.at, *(place for _, place in self.notes)):
            if span is not None:
                yield span
                yield from span.callers()
