# SPDX-License-Identifier: Apache-2.0
"""One compile as it is recorded: its events become steps, texts and notes of the journal.

A sink prints an object when a step first begins with it or ends with it, and never again: most passes hand on what they
were given, so most cost two short lines.
"""

from __future__ import annotations

import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, cast

from tilekit.events import Null, Stage
from tilekit.ir.prog import Program
from tilekit.jit import lines
from tilekit.jit.lines import LineMaps, Map
from tilekit.tools.lower_trace import failures, journal
from tilekit.tools.lower_trace.journal import Compile, Difference, Entry, Failure, Source, Status, Step, Text
from tilekit.transforms.layout_inference import LayoutTrail
from tilekit.transforms.recorder import layout_row

if TYPE_CHECKING:
    from tilekit.tools.lower_trace.recording import Recording

_P = ParamSpec("_P")
_LANGUAGES = {
    Stage.VERIFY: "tile",
    Stage.TILE: "tile",
    Stage.LOWER: "hidet",
    Stage.HIDET: "hidet",
    Stage.CODEGEN: "cuda",
    Stage.PTX: "ptx",
    Stage.PTXAS: "ptx",
    Stage.SASS: "sass",
    Stage.HOST: "cuda",
}
# a step looks at two objects, and the ones beside it at some of these
_REMEMBERED = 4


def _ours(method: Callable[Concatenate[CompileSink, _P], None]) -> Callable[Concatenate[CompileSink, _P], None]:
    """A part of a sink: the time that it takes is not the compile's, nor is what goes wrong in it."""

    @functools.wraps(method)
    def ours(self: CompileSink, *args: _P.args, **kwargs: _P.kwargs) -> None:
        if self.recording.is_over:
            return
        start = time.perf_counter_ns()
        try:
            method(self, *args, **kwargs)
        except Exception as error:
            self.recording.give_up(error)
        finally:
            self.spent += time.perf_counter_ns() - start

    return ours


@dataclass(frozen=True, slots=True)
class _Printed:
    """An object, which is kept so that nothing else takes its place, and its text, or why it has none."""

    object: object
    text: Text | None
    reason: str = ""


@dataclass(slots=True)
class _Frame:
    """A step that has begun; `step` is None if nobody wants to see it."""

    name: str
    step: Step | None
    before: Text | None
    spent: int = 0  # nanoseconds that had been ours when it began
    inner_ns: int = 0


class CompileSink(Null):
    """Listens to one compile, in one thread at a time."""

    traces = True

    def __init__(
        self, recording: Recording, compile: Compile, phase: str | None, takes_pass: Callable[[str], bool]
    ) -> None:
        self.compile = compile
        self.recording = recording
        self._phase = phase
        self._takes_pass = takes_pass
        self._frames: list[_Frame] = []
        self._printed: list[_Printed] = []
        self._maps = LineMaps()
        self._cell: Text | None = None
        self._occurrences: Counter[tuple[Stage, str]] = Counter()
        self._culprit: tuple[BaseException, int] | None = None
        self._start = time.perf_counter_ns()
        self.spent = 0  # nanoseconds that were ours

    def begin(self, stage: Stage, name: str, before: object) -> None:
        self._begin(stage, name, before)
        if self._frames:
            self._frames[-1].spent = self.spent

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float) -> None:
        self._end(stage, name, before, after, round(1e9 * seconds), self.spent)

    @_ours
    def fail(self, stage: Stage, name: str, error: BaseException) -> None:
        step = self._pop(name).step
        if step is None:
            return
        if self._culprit is None or not failures.led_to(self._culprit[0], error):
            self._culprit = error, step.seq
            step.status = Status.FAILED if isinstance(error, Exception) else Status.INTERRUPTED
        else:
            step.status = Status.ABORTED
        by = self._culprit[1]
        told = "" if step.status is Status.ABORTED else failures.traceback_of(error)
        known = self._maps.sources
        step.failure = Failure(
            by, type(error).__name__, failures.message(error, known), told, failures.where(error, known)
        )
        self.recording.write(self.compile, step, [journal.fail_entry(step, step.failure)])

    @_ours
    def note(self, key: str, value: object) -> None:
        """Write what was found out by the innermost step that goes on, or by the compile after all of them."""
        if self._maps.take(value):
            return
        if key == "layouts":
            trails = cast("Mapping[str, LayoutTrail]", value)
            value = {name: [layout_row(choice) for choice in trail] for name, trail in trails.items()}
        step = next((frame.step for frame in reversed(self._frames) if frame.step is not None), None)
        self._note(step, key, _plain(value))

    @_ours
    def edited(
        self, generated: str, compiled: str, tag: str | None, path: str | None, messages: Sequence[str] = ()
    ) -> None:
        """Write what is compiled in place of the generated source, and what the edit store says of it."""
        step = next((step for step in reversed(self.compile.steps) if step.base_phase == "codegen"), None)
        if step is None:
            return
        old, new = Text(generated), Text(compiled)
        known = Difference.between(old, new) if old.is_small and new.is_small else None
        step.source = Source(old.id, new.id, tag, path, tuple(messages))
        with self.recording.writing(self.compile, step) as entries:
            entries += self.recording.text_entries(old, "cuda")
            entries += self.recording.text_entries(new, "cuda", old, known)
            entries.append(journal.codegen_entry(step, step.source))
        if old.id != new.id and old.is_small and new.is_small:
            self._note(step, "lines_of_edit", _line_map(old, new, lines.through_edit(generated, compiled)))

    @_ours
    def done(self, error: BaseException | None) -> None:
        compile = self.compile
        if error is not None and (self._culprit is None or not failures.led_to(self._culprit[0], error)):
            known = self._maps.sources
            told = {
                "type": type(error).__name__,
                "message": failures.message(error, known),
                "where": failures.where(error, known),
            }
            self._note(None, "error", told)
        compile.status = Status.DONE if error is None else Status.FAILED
        # steps that are told after the fact took longer than the telling
        steps = sum(step.ns or 0 for step in compile.steps if step.depth == 0)
        compile.ns = max(time.perf_counter_ns() - self._start - self.spent, steps)
        self.recording.write(compile, None, [journal.compile_end_entry(compile)])
        # nothing of the compile is kept by its record
        self._printed.clear()
        self._culprit = None

    # ---------------------------------------------------------------------------------------------------------- steps

    @_ours
    def _begin(self, stage: Stage, name: str, before: object) -> None:
        if not self._takes_pass(name):
            self._frames.append(_Frame(name, None, None))
            return
        printed = self._print(before)
        compile = self.compile
        self._occurrences[stage, name] += 1
        parent = next((frame.step for frame in reversed(self._frames) if frame.step is not None), None)
        with self.recording.lock:
            step = Step(
                c=compile.c,
                seq=len(compile.steps),
                index=self.recording.next_index(),
                phase=self._phase or _phase(stage, compile.run),
                name=name,
                occurrence=self._occurrences[stage, name],
                parent=None if parent is None else parent.seq,
                depth=0 if parent is None else parent.depth + 1,
                before=None if printed.text is None else printed.text.id,
                language=self._language(stage),
            )
            compile.steps.append(step)
            self._frames.append(_Frame(name, step, printed.text))
            with self.recording.writing(compile, step, printed.text) as entries:
                entries += self.recording.text_entries(printed.text, step.languages[0])
                entries.append(journal.begin_entry(step))
        self._note_unprintable(step, "before", printed)
        if self._cell is None and isinstance(before, Program) and printed.text is not None:
            self._write_cell(step, before, printed.text)

    @_ours
    def _end(self, stage: Stage, name: str, before: object, after: object, measured: int, spent: int) -> None:
        self._culprit = None  # whatever failed within this step was caught by it
        frame = self._pop(name)
        # what we took while it ran was not its time
        ns = max(measured - (spent - frame.spent), frame.inner_ns)
        if self._frames:
            self._frames[-1].inner_ns += ns
        step, old = frame.step, frame.before
        if step is None:
            return
        printed = _Printed(before, old) if after is before else self._print(after)
        new = printed.text
        known: Difference | None = None
        step.status, step.ns, step.self_ns = Status.DONE, ns, ns - frame.inner_ns
        step.after = None if new is None else new.id
        step.changed = after is not before and (new is None or old is None or new.id != old.id)
        step.rebuilt = after is not before and not step.changed
        if not step.changed:
            step.added = step.removed = 0
        elif not step.is_translation and old is not None and new is not None and old.is_small and new.is_small:
            known = Difference.between(old, new)
            step.added, step.removed = known.added, known.removed
        with self.recording.writing(self.compile, step, new) as entries:
            base = None if step.is_translation else old
            entries += self.recording.text_entries(new, step.languages[1], base, known)
            entries.append(journal.end_entry(step))
        if new is None and after is not before:
            self._note_unprintable(step, "after", printed)
        if step.changed and old is not None and new is not None and old.is_small and new.is_small:
            self._note_lines(step, old, new, self._maps.of_step(stage, before, after))

    def _pop(self, name: str) -> _Frame:
        """The step that ends; one inside of it that has not was interrupted while we were told of its beginning."""
        while self._frames[-1].name != name:
            self._frames.pop()
        return self._frames.pop()

    def _language(self, stage: Stage) -> str:
        # an assembler that nobody has seen PTX of was given the source
        if stage is Stage.PTXAS and not any(step.language == "ptx" for step in self.compile.steps):
            return "cuda"
        return _LANGUAGES[stage]

    def _print(self, subject: object) -> _Printed:
        for printed in self._printed:
            if printed.object is subject:
                return printed
        try:
            printed = _Printed(subject, Text(self._maps.text_of(subject)))
        except Exception as error:
            printed = _Printed(subject, None, failures.headline(error))
        self._printed = [*self._printed[1 - _REMEMBERED :], printed]
        return printed

    def _note_unprintable(self, step: Step, side: str, printed: _Printed) -> None:
        if printed.text is None:
            self._note(step, "unprintable", {"side": side, "reason": printed.reason})

    def _write_cell(self, step: Step, prog: Program, text: Text) -> None:
        """Write what the person wrote of the first program, and which of its lines became which."""
        cell = None if self._maps.sources is None else lines.cell_of(prog, self._maps.sources)
        if cell is None:
            return
        self._cell = Text(cell.text)
        with self.recording.writing(self.compile, step) as entries:
            entries += self.recording.text_entries(self._cell, "python")
            value = {"text": self._cell.id, "names": list(cell.names), "numbers": list(cell.numbers)}
            step.notes["cell"] = value
            entries.append(journal.note_entry(step.c, step.seq, "cell", value))
        self._note_lines(step, self._cell, text, cell.map)

    def _note_lines(self, step: Step, old: Text, new: Text, map: Map | None) -> None:
        if map is not None:
            self._note(step, "lines", _line_map(old, new, map))

    def _note(self, step: Step | None, key: str, value: object) -> None:
        (self.compile if step is None else step).notes[key] = value
        entry = journal.note_entry(self.compile.c, None if step is None else step.seq, key, value)
        self.recording.write(self.compile, step, [entry])


def _line_map(old: Text, new: Text, map: Map) -> Entry:
    return {"from": old.id, "to": new.id, "map": map}


def _phase(stage: Stage, run: int) -> str:
    phase = Stage.TILE.value if stage is Stage.VERIFY else stage.value
    return phase if run == 1 else f"run{run}_{phase}"


def _plain(value: object) -> Any:
    """The value in what JSON has; what is of another kind by its text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(key): _plain(item) for key, item in cast("Mapping[object, object]", value).items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in cast("Sequence[object]", value)]
        case _:
            return str(value)
