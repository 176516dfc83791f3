# SPDX-License-Identifier: Apache-2.0
"""The trace as lines of a terminal: each pass that changed the program, with what it changed, as soon as it is done."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilekit import textdiff
from tilekit.jit import observer
from tilekit.tools.lower_trace.console import Console, Style
from tilekit.tools.lower_trace.journal import Compile, Run, Source, Status, Step
from tilekit.tools.lower_trace.recording import Event, Listener

CONTEXT = 3
STYLES = {"+": Style.ADDED, "-": Style.REMOVED, "@": Style.PLACE}


class Terminal(Listener):
    """Prints the steps of compiles; of one diff at most `max_lines` lines, or all for 0."""

    on_disk = False

    def __init__(self, console: Console, max_lines: int, context: int = CONTEXT) -> None:
        self._console = console
        self._max_lines = max_lines
        self._context = context

    def hear(self, event: Event) -> None:
        match event:
            case Event(kind="compile", compile=Compile() as compile) if compile.run:
                self._begun(compile)
            case Event(kind="pass_end", step=Step() as step):
                self._done(event.run, step)
            case Event(kind="pass_fail", step=Step() as step):
                self._failed(event.run, step)
            case Event(kind="codegen", step=Step(source=Source(is_edited=True) as source)):
                self.diff(event.run.lines(source.generated), event.run.lines(source.compiled))
            case _:
                pass

    def _begun(self, compile: Compile) -> None:
        about = " · ".join(filter(None, [name_of(compile), compile.target, compile.device]))
        self._console.heading(about)

    def _done(self, run: Run, step: Step) -> None:
        """A step has ended; one that changed nothing says nothing."""
        before, after = (run.lines(text) if text else [] for text in (step.before, step.after))
        if step.is_translation:
            here, there = step.languages
            self._console.heading(f"{_head(step)}  {here} → {there}, {len(after)} lines")
        elif step.changed:
            self._console.heading(f"{_head(step)}  +{step.added or 0} -{step.removed or 0}")
            self.diff(before, after, step.notes.get("visits"))

    def _failed(self, run: Run, step: Step) -> None:
        """A step has failed: what it was given is shown whole, unless a step that it called was to blame."""
        assert step.failure is not None
        if step.status is Status.ABORTED:
            self._console.heading(f"{_head(step)}  ABORTED", Style.FAILED)
            return
        first, *more = f"{step.failure.type}: {step.failure.message}".split("\n")
        self._console.heading(f"{_head(step)}  {step.status.value.upper()}  {first}", Style.FAILED)
        for line in more:
            self._console.text(line, Style.FAILED)
        for line in run.lines(step.before) if step.before else ():
            self._console.text(line)

    def diff(self, before: Sequence[str], after: Sequence[str], visits: Mapping[str, Any] | None = None) -> None:
        lines = textdiff.unified(before, after, self._context, visits)
        shown = lines[: self._max_lines] if self._max_lines else lines
        for line in shown:
            self._console.text(line, STYLES.get(line[:1], Style.PLAIN))
        if len(shown) < len(lines):
            self._console.heading(f"… {len(lines) - len(shown)} more", Style.PLACE)


class Summaries(Listener):
    """Prints a line for each compile, and where its page and its source are."""

    on_disk = False

    def __init__(self, console: Console, page: Path | None = None) -> None:
        self._console = console
        self.page = page  # where people find it

    def hear(self, event: Event) -> None:
        match event:
            case Event(kind="compile_end", compile=Compile() as compile) if compile.run:
                self._summarize(compile)
            case _:
                pass

    def _summarize(self, compile: Compile) -> None:
        page = self.page
        if page is not None:
            is_said = [watcher.traced(page) for watcher in observer.observers()]
            if any(is_said):  # a notebook shows its kernels itself, and a link
                return
        sources = [step.source.path for step in compile.steps if step.source is not None and step.source.path]
        # a source that cannot be written is nowhere
        places = [*([] if page is None else [page]), *(Path(source) for source in sources if os.path.exists(source))]
        self._console.say(summary(compile))
        if places:
            self._console.say(" · ".join(map(shown, places)))


def summary(compile: Compile) -> str:
    """A compile in a line: its kernel, how many passes changed it, how long it took, and what it died of."""
    changed = sum(step.changed and not step.is_translation for step in compile.steps)
    steps = f"{len(compile.steps)} steps, {changed} changed it"
    time = "" if compile.ns is None else f"{compile.ns / 1e6:.0f} ms"
    where = "from the cache, passes run again" if compile.from_cache else ""
    culprit = compile.culprit
    failed = "" if culprit is None else f"{culprit.status.value.upper()} in {culprit.phase}/{culprit.title}"
    parts = [name_of(compile), compile.target, compile.device, steps, time, where, failed]
    return " · ".join(filter(None, parts))


def name_of(compile: Compile) -> str:
    """The kernel as its person knows it, with its schedule."""
    return (compile.specialization or compile.kernel).removesuffix("()")


def shown(path: Path) -> str:
    """A path as short as it can be said."""
    try:
        here = Path.cwd()
    except OSError:  # it was deleted
        return str(path)
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _head(step: Step) -> str:
    time = "" if step.ns is None else f"  {step.ns / 1e6:.2f} ms"
    return f"{step.index:02d} {step.phase}/{step.title}{time}"
