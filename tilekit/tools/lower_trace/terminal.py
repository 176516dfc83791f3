# SPDX-License-Identifier: Apache-2.0
"""The trace as lines of a terminal: each pass that changed the program, with what it changed, as soon as it is done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilekit import textdiff
from tilekit.tools.lower_trace.console import Console, Style
from tilekit.tools.lower_trace.journal import Compile, Status, Step

CONTEXT = 3
_STYLES = {"+": Style.ADDED, "-": Style.REMOVED, "@": Style.PLACE}


class Terminal:
    """Prints the steps of compiles; of one diff at most `max_lines` lines, or all for 0."""

    def __init__(self, console: Console, max_lines: int, context: int = CONTEXT) -> None:
        self._console = console
        self._max_lines = max_lines
        self._context = context

    def begun(self, compile: Compile) -> None:
        self._console.heading(f"{compile.specialization or compile.script} · {compile.target} · {compile.device}")

    def done(self, step: Step, before: Sequence[str], after: Sequence[str]) -> None:
        """A step has ended; one that changed nothing says nothing."""
        if step.is_translation:
            here, there = step.languages
            self._console.heading(f"{_head(step)}  {here} → {there}, {len(after)} lines")
        elif step.changed:
            self._console.heading(f"{_head(step)}  +{step.added or 0} -{step.removed or 0}")
            self.diff(before, after)

    def failed(self, step: Step, before: Sequence[str]) -> None:
        """A step has failed: what it was given is shown whole."""
        assert step.failure is not None
        first, *more = f"{step.failure.type}: {step.failure.message}".split("\n")
        self._console.heading(f"{_head(step)}  {step.status.value.upper()}  {first}", Style.FAILED)
        for line in more:
            self._console.text(line, Style.FAILED)
        if step.status is not Status.ABORTED:
            for line in before:
                self._console.text(line)

    def edited(self, generated: Sequence[str], compiled: Sequence[str]) -> None:
        """An edit is compiled: what it changes of the generated source."""
        self.diff(generated, compiled)

    def diff(self, before: Sequence[str], after: Sequence[str]) -> None:
        self._cut(textdiff.unified(before, after, self._context))

    def _cut(self, lines: Sequence[str]) -> None:
        shown = lines[: self._max_lines] if self._max_lines else lines
        self._all(shown)
        if len(shown) < len(lines):
            self._console.heading(f"… {len(lines) - len(shown)} more", Style.PLACE)

    def _all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._console.text(line, _STYLES.get(line[:1], Style.PLAIN))


def _head(step: Step) -> str:
    time = "" if step.ns is None else f"  {step.ns / 1e6:.2f} ms"
    return f"{step.index:02d} {step.phase}/{step.title}{time}"
