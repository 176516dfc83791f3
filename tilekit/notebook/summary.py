# SPDX-License-Identifier: Apache-2.0
"""What a `%%tilus` cell shows: a line for each kernel, which opens to its passes and its source."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tilekit.jit.kernel import Kernel
from tilekit.jit.progress import Underway
from tilekit.notebook import static

TABLE_FROM = 8


@dataclass(frozen=True)
class Progress:
    """What the compiler is doing, and when it began with this script."""

    script: str
    stage: str
    begin: float

    def __str__(self) -> str:
        return f"{self.script}: {self.stage}, {time.perf_counter() - self.begin:.1f} s"


@dataclass
class CellSummary:
    """The kernels that a cell compiled or used, what its classes wait for, and what the compiler does now."""

    kernels: list[Kernel] = field(default_factory=list[Kernel])
    notes: list[str] = field(default_factory=list[str])
    progress: Progress | Underway | None = None
    # of traces that hold what the cell compiled
    pages: list[Path] = field(default_factory=list[Path])

    @property
    def is_empty(self) -> bool:
        return not self.kernels and not self.notes

    def bundle(self, *, brief: bool = False) -> dict[str, str]:
        """The text and the HTML; a brief one has nothing to open."""
        return {"text/plain": self.text(), "text/html": self.html(brief=brief)}

    def text(self) -> str:
        pages = map(static.plain_link, self.pages)
        return "\n".join([*(kernel.summary() for kernel in self.kernels), *pages, *self._remarks()])

    def html(self, *, brief: bool = False) -> str:
        if len(self.kernels) >= TABLE_FROM:
            lines = [static.kernel_table(self.kernels)]
        else:
            lines = [static.kernel_line(kernel) if brief else static.kernel(kernel) for kernel in self.kernels]
        lines += map(static.link, self.pages)
        if isinstance(self.progress, Underway):
            return static.frame("".join([*lines, *map(static.remark, self.notes), static.launch(self.progress)]))
        return static.frame("".join([*lines, *map(static.remark, self._remarks())]))

    def _remarks(self) -> list[str]:
        now = self.progress
        return [*self.notes, *([] if now is None else [str(now)])]


def not_edited(kernels: Sequence[Kernel], used: Sequence[Kernel]) -> list[str]:
    """A line for each script of which these kernels run as generated while an edit of another one is in place.

    `used` are the notebook's kernels: an edit is of one schedule and specialization, and others know nothing of it.
    """
    lines: list[str] = []
    for script in dict.fromkeys(kernel.script for kernel in used if kernel.patched):
        here = [kernel for kernel in kernels if kernel.script == script and not kernel.patched]
        if here:
            which = here[0].name if len(here) == 1 else f"{len(here)} kernels of {script}"
            lines.append(f"{which}: not edited, for the edit is of another kernel of {script}")
    return lines
