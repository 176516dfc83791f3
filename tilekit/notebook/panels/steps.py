# SPDX-License-Identifier: Apache-2.0
"""The steps of a compile for those who look at them: as a journal, which the viewer reads, and in plain lines."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tilekit.diag.sources import Sources
from tilekit.events import Sink
from tilekit.jit.kernel import Kernel

if TYPE_CHECKING:  # in earnest it would bring the compiler
    from tilekit.tools.lower_trace.journal import Run, Step
    from tilekit.transforms.recorder import Recorder


@dataclass(frozen=True)
class SourceEdit:
    """A source that a person edited in place of the generated one, and what the edit store says of it."""

    generated: str
    compiled: str
    state: str
    path: str


class Steps:
    """Texts are printed and compared when somebody looks, and once: what a pass made is what the next one took."""

    def __init__(
        self,
        recorder: Recorder,
        kernel: str = "",
        sources: Sources | None = None,
        tell_machine_code: Callable[[Sink], None] | None = None,
        edit: SourceEdit | None = None,
        *,
        is_to_the_end: bool = False,
    ) -> None:
        self._recorder = recorder
        self._kernel = kernel
        self._sources = sources
        self._tell_machine_code = tell_machine_code
        self._edit = edit
        self._is_to_the_end = is_to_the_end

    @staticmethod
    def of(kernel: Kernel, name: str) -> Steps:
        """The steps of a kernel, with the lines of the person; its machine code can be asked for."""
        made = kernel.compiled
        if made is None:
            return Steps(kernel.trace, name, kernel.sources)
        edit = None
        if made.edit is not None and made.generated is not None:
            edit = SourceEdit(made.generated.source, made.source, made.edit_state, made.edit.provenance)
        return Steps(kernel.trace, name, kernel.sources, kernel.machine_code.tell, edit)

    @cached_property
    def journal(self) -> str:
        """What a traced run would have written of this compile."""
        return self._recorded[1]

    @cached_property
    def packed(self) -> bytes:
        """The journal as the viewer unpacks it."""
        from tilekit.tools.lower_trace import page

        return page.deflated(self.journal)

    @property
    def can_go_on(self) -> bool:
        """Whether the machine code is not among them, and can be."""
        return self._tell_machine_code is not None and not self._is_to_the_end

    def to_the_end(self) -> Steps:
        """The same with the machine code, or with the reason why there is none."""
        return Steps(
            self._recorder, self._kernel, self._sources, self._tell_machine_code, self._edit, is_to_the_end=True
        )

    @property
    def steps(self) -> Sequence[Step]:
        return self._recorded[0].compiles[0].steps

    @property
    def changed(self) -> Sequence[Step]:
        """The passes that changed the program."""
        return [step for step in self.steps if kind(step) == "changed"]

    @property
    def own(self) -> Step | None:
        """The first pass of a person's own, if there is one: of several, one that changed something."""
        own = [step for step in self.steps if "custom" in step.notes]
        return next((step for step in own if kind(step) == "changed"), own[0] if own else None)

    def sides(self, step: Step) -> tuple[list[str], list[str]]:
        """The lines of one step before and after."""
        run = self._recorded[0]
        before, after = ([] if text is None else run.lines(text) for text in (step.before, step.after))
        return before, after

    def plain(self) -> str:
        """All steps as plain text, a line each."""
        return "\n".join(map(_line, self.steps))

    @cached_property
    def _recorded(self) -> tuple[Run, str]:
        """The compile as a run of its own, and its journal."""
        from tilekit.tools.lower_trace.journal import Head
        from tilekit.tools.lower_trace.recording import Lines, Recording

        lines = Lines()
        head = Head(version="", script="", argv=(), cwd="", pid=os.getpid(), rank=None, started="", mode="html")
        recording = Recording(head, [lines], warn=warnings.warn)
        sink = recording.compile(self._kernel)
        if self._sources is not None:
            sink.note("sources", self._sources)
        for step in self._recorder.steps:
            sink.begin(step.stage, step.name, step.before)
            for key, value in step.notes.items():
                sink.note(key, value)
            if step.error is None:
                sink.end(step.stage, step.name, step.before, step.after, step.seconds)
            else:
                sink.fail(step.stage, step.name, step.error)
        if (edit := self._edit) is not None:
            sink.edited(edit.generated, edit.compiled, edit.state, edit.path)
        if self._is_to_the_end and self._tell_machine_code is not None:
            self._tell_machine_code(sink)
        sink.done(None)
        recording.close()
        return recording.run, lines.journal


def kind(step: Step) -> str:
    """What became of the program in this step, in a word."""
    from tilekit.tools.lower_trace import plain

    if step.failure is not None:
        return "failed"
    if plain.translates(step):
        return "translated"
    return "changed" if step.changed else "same"


def words(step: Step) -> str:
    """The same in a few words, but for a change, which is better said in signs."""
    from tilekit.tools.lower_trace import plain

    if step.failure is not None:
        return f"failed: {step.failure.type}: {step.failure.message}"
    return "" if kind(step) == "changed" else plain.words_of(step)


def milliseconds(step: Step) -> float:
    return (step.ns or 0) / 1e6


def _line(step: Step) -> str:
    from tilekit.tools.lower_trace.plain import LANGUAGES

    what = words(step) or f"+{step.added} -{step.removed}"
    return f"{LANGUAGES[step.language]:8} {step.title:24} {what:>12} {milliseconds(step):9.2f} ms"
