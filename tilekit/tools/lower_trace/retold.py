# SPDX-License-Identifier: Apache-2.0
"""A run told once more from its beginning, for files that take the place of deleted ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilekit.tools.lower_trace import journal
from tilekit.tools.lower_trace.journal import Compile, Entry, Run, Status, Step, Text


@dataclass(frozen=True, slots=True)
class Telling:
    """Entries that belong together, what they are about, and the text that a step was given or made."""

    kind: str
    entries: Sequence[Entry]
    compile: Compile | None = None
    step: Step | None = None
    text: Text | None = None


def tellings(run: Run) -> Iterator[Telling]:
    """All that is known of a run by now; every text comes first, as the others name it."""
    yield Telling("run", [journal.run_entry(run.head), *run.text_entries()])
    for compile in run.compiles:
        yield Telling("compile", [journal.compile_entry(compile)], compile)
        open_: list[Step] = []
        for step in compile.steps:
            while len(open_) > step.depth:
                yield from _ended(run, compile, open_.pop())
            open_.append(step)
            yield Telling("pass_begin", [journal.begin_entry(step)], compile, step, _text(run, step.before))
        for step in reversed(open_):
            yield from _ended(run, compile, step)
        for key, value in compile.notes.items():
            yield Telling("note", [journal.note_entry(compile.c, None, key, value)], compile)
        if compile.status is not Status.UNFINISHED:
            yield Telling("compile_end", [journal.compile_end_entry(compile)], compile)
    if run.ended:
        yield Telling("end", [journal.END])


def _ended(run: Run, compile: Compile, step: Step) -> Iterator[Telling]:
    """What is known of a step beside that it began."""
    if step.failure is not None:
        yield Telling("pass_fail", [journal.fail_entry(step, step.failure)], compile, step)
    elif step.status is Status.DONE:
        yield Telling("pass_end", [journal.end_entry(step)], compile, step, _text(run, step.after))
    if step.source is not None:
        yield Telling("codegen", [journal.codegen_entry(step, step.source)], compile, step)
    for key, value in step.notes.items():
        yield Telling("note", [journal.note_entry(step.c, step.seq, key, value)], compile, step)


def _text(run: Run, text_id: str | None) -> Text | None:
    return None if text_id is None else Text(run.text(text_id))
