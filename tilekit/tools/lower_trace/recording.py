# SPDX-License-Identifier: Apache-2.0
"""The recording of a run: the events of its compiles become lines of one journal, which listeners take away.

A sink prints an object when a step first begins with it or ends with it, and never again: most passes hand on what they
were given, so most cost two short lines. Nothing here may fail or change a compile. What goes wrong is told once; then
there is silence, and the compile never hears of it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import math
import os
import threading
import time
import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, cast

from tilekit.diag import TilekitError, render, sources
from tilekit.diag.sources import Locator
from tilekit.events import Edited, Stage
from tilekit.ir.prog import Program
from tilekit.jit import lines
from tilekit.jit.lines import LineMaps, Map
from tilekit.tools.lower_trace import journal
from tilekit.tools.lower_trace.journal import (
    Compile,
    Difference,
    Entry,
    Failure,
    Head,
    Run,
    Source,
    Status,
    Step,
    Text,
)
from tilekit.transforms.layout_inference import LayoutTrail
from tilekit.transforms.recorder import layout_row

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
_PACKAGE = str(Path(__file__).parents[2]) + os.sep
# a text without a forerunner is compared with the last one of its language up to this many lines, to be kept shorter
_GUESSED_LINES = 1 << 13
_REMEMBERED = 4


@dataclass(frozen=True, slots=True)
class Event:
    """Lines of the journal that belong together, and what they are about; `kind` is that of the last line."""

    kind: str
    lines: tuple[str, ...]
    run: Run
    compile: Compile | None = None
    step: Step | None = None


class Listener(Protocol):
    """Hears of a run as it happens, one event at a time; whoever raises hears no more."""

    on_disk: bool  # whether it writes files: where one of those cannot, none of them goes on

    def hear(self, event: Event) -> None: ...

    def close(self) -> None:
        """The run has ended, and this has heard all of it."""

    def let_go(self) -> None:
        """Close what is open, and write nothing: the run has failed, or belongs to the process that forked this one."""


class Recording:
    """One traced run of one process; its compiles may be in many threads.

    Parameters
    ----------
    head
        What the journal begins with.
    listeners
        Who takes the lines away; told in this order.
    warn
        Told in one sentence what went wrong.
    """

    def __init__(self, head: Head, listeners: Sequence[Listener], warn: Callable[[str], None]) -> None:
        self.run = Run(head)
        self.is_over = False
        self._listeners = list(listeners)
        self._warn = warn
        self.lock = threading.RLock()
        self._steps = 0
        self._last: dict[str, Text] = {}  # by language
        _recordings.add(self)
        self._tell([journal.run_entry(head)])

    def compile(
        self,
        kernel: str,
        *,
        script: str = "",
        specialization: str = "",
        target: str = "",
        device: str = "",
        from_cache: bool = False,
        phase: str | None = None,
        takes_pass: Callable[[str], bool] = lambda name: True,
    ) -> CompileSink:
        """A sink for one compile, which ends when the sink is told `done`.

        With `phase`, which stands for passes outside of any pipeline, every step has that phase, and the compiles of
        the run are not counted on.
        """
        with self.lock:
            earlier = sum(compile.run > 0 for compile in self.run.compiles)
            made = Compile(
                c=len(self.run.compiles),
                run=0 if phase else earlier + 1,
                kernel=kernel,
                script=script,
                specialization=specialization,
                target=target,
                device=device,
                from_cache=from_cache,
            )
            self.run.compiles.append(made)
            self.write(made, None, [journal.compile_entry(made)])
        return CompileSink(self, made, phase, takes_pass)

    @property
    def is_written(self) -> bool:
        """Whether somebody still writes it to the disk."""
        return any(listener.on_disk for listener in self._listeners)

    def close(self) -> None:
        """End the run; its listeners make of it what they make of a finished one."""
        with self.lock:
            if self.is_over:
                return
            self.run.ended = True
            self._tell([journal.END])
            self.is_over = True
            for listener in tuple(self._listeners):
                with self._watched(listener):
                    listener.close()
            self._listeners.clear()

    # ------------------------------------------------------------------------------------------ for its own sinks

    def write(self, compile: Compile, step: Step | None, entries: Sequence[Entry]) -> None:
        """Hand entries to the listeners, in the order of the run."""
        with self.lock:
            if not self.is_over:
                self._tell(entries, compile, step)

    @contextlib.contextmanager
    def writing(self, compile: Compile, step: Step) -> Iterator[list[Entry]]:
        """Within the block, nobody else writes; then its list is handed to the listeners."""
        with self.lock:
            entries: list[Entry] = []
            yield entries
            self.write(compile, step, entries)

    def next_index(self) -> int:
        self._steps += 1
        return self._steps - 1

    def text_entries(
        self, text: Text | None, language: str, base: Text | None = None, known: Difference | None = None
    ) -> list[Entry]:
        """What must be written before `text` can be named; `known` is what makes it of `base`."""
        if text is None or text.id in self.run:
            return []
        last = self._last.get(language) if base is None else None
        if last is not None and max(len(last.lines), len(text.lines)) <= _GUESSED_LINES:
            base, known = last, Difference.between(last, text)
        self._last[language] = text
        entry = self.run.add_text(text, base, known)
        return [] if entry is None else [entry]

    def give_up(self, error: Exception) -> None:
        """Something of ours has gone wrong: say so, and record nothing more."""
        with self.lock:
            if not self.is_over:
                self.is_over = True
                self._say(f"the trace ends here, with an error of its own: {_headline(error)}")
                for listener in self._listeners:
                    _let_go(listener)
                self._listeners.clear()

    def abandon(self) -> None:
        """In a process that was forked, leave the run to its parent."""
        self.lock = threading.RLock()  # whoever held it is not in this process
        self.is_over = True
        for listener in self._listeners:
            _let_go(listener)
        self._listeners.clear()

    # ------------------------------------------------------------------------------------------------------- listeners

    def _tell(self, entries: Sequence[Entry], compile: Compile | None = None, step: Step | None = None) -> None:
        event = Event(entries[-1]["k"], tuple(map(journal.encode, entries)), self.run, compile, step)
        for listener in tuple(self._listeners):
            if listener in self._listeners:  # not dropped with one before it
                with self._watched(listener):
                    listener.hear(event)

    @contextlib.contextmanager
    def _watched(self, listener: Listener) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            dropped = [other for other in self._listeners if other.on_disk] if listener.on_disk else [listener]
            self._drop(dropped, f"the trace is written no further: {why_not(error)}")
        except Exception as error:
            self._drop([listener], f"the trace goes on without its {type(listener).__name__}: {_headline(error)}")

    def _drop(self, dropped: Sequence[Listener], message: str) -> None:
        self._say(message)
        for listener in dropped:
            self._listeners.remove(listener)
            _let_go(listener)

    def _say(self, message: str) -> None:
        with contextlib.suppress(Exception):
            self._warn(message)


# those that a forked process must leave to its parent
_recordings: weakref.WeakSet[Recording] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for recording in tuple(_recordings):
        recording.abandon()
    _recordings.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


def why_not(error: OSError) -> str:
    """What could not be written, and why, with the number by its name."""
    name = "" if error.errno is None else f" ({errno.errorcode.get(error.errno, error.errno)})"
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}{name}"


def _let_go(listener: Listener) -> None:
    with contextlib.suppress(Exception):
        listener.let_go()


# ---------------------------------------------------------------------------------------------------------- one compile


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


class CompileSink:
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
        if self._culprit is None or not _led_to(self._culprit[0], error):
            self._culprit = error, step.seq
            step.status = Status.FAILED if isinstance(error, Exception) else Status.INTERRUPTED
        else:
            step.status = Status.ABORTED
        by = self._culprit[1]
        told = "" if step.status is Status.ABORTED else _traceback(error)
        known = self._maps.sources
        step.failure = Failure(by, _type(error), _message(error, known), told, _where(error, known))
        self.recording.write(self.compile, step, [journal.fail_entry(step, step.failure)])

    def tile(self, name: str, prog: object) -> object | None:
        return None

    def codegen(self, text: str) -> Edited | None:
        return None

    @_ours
    def note(self, key: str, value: object) -> None:
        """Write what was found out by the innermost step that goes on, or by the compile after all of them."""
        if self._maps.take(value):
            return
        if key == "layouts":
            trails = cast("Mapping[str, LayoutTrail]", value)
            value = {name: [layout_row(choice) for choice in trail] for name, trail in trails.items()}
        step = next((frame.step for frame in reversed(self._frames) if frame.step is not None), None)
        self._note(step, key, plain(value))

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
        if error is not None and (self._culprit is None or not _led_to(self._culprit[0], error)):
            known = self._maps.sources
            told = {"type": _type(error), "message": _message(error, known), "where": _where(error, known)}
            self._note(None, "error", told)
        compile.status = Status.DONE if error is None else Status.FAILED
        compile.ns = time.perf_counter_ns() - self._start - self.spent
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
            with self.recording.writing(compile, step) as entries:
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
        with self.recording.writing(self.compile, step) as entries:
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
            printed = _Printed(subject, None, _headline(error))
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


def plain(value: object) -> Any:
    """The value in what JSON has; what is of another kind by its text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Mapping():
            return {str(key): plain(item) for key, item in cast("Mapping[object, object]", value).items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in cast("Sequence[object]", value)]
        case _:
            return str(value)


# ---------------------------------------------------------------------------------------------------------- errors


def _type(error: BaseException) -> str:
    return type(error).__name__


def _message(error: BaseException, known: Locator | None = None) -> str:
    """What it says; the compile that it leaves has told it its sources only when it has left."""
    try:
        return render.text(error.diagnostic, error.sources or known) if isinstance(error, TilekitError) else str(error)
    except Exception as another:
        return f"its message cannot be printed: {_type(another)}"


def _headline(error: BaseException) -> str:
    return f"{_type(error)}: {_message(error)}"


def _traceback(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _where(error: BaseException, known: Locator | None) -> str | None:
    """The line of the user that it is about, or else that it came through last."""
    if isinstance(error, TilekitError) and error.diagnostic.at is not None:
        return render.describe(error.diagnostic.at, error.sources or known)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_PACKAGE):
            return f"{sources.display_name(frame.filename)}, line {frame.lineno}: {frame.line}"
    return None


def _led_to(first: BaseException, last: BaseException | None) -> bool:
    """Whether one error is the other, or was on the way when the other was raised."""
    seen: set[int] = set()
    while last is not None and id(last) not in seen:
        if last is first:
            return True
        seen.add(id(last))
        last = last.__cause__ or last.__context__
    return False
