# SPDX-License-Identifier: Apache-2.0
"""The recording of a run: the events of its compiles become lines of one journal, which listeners take away.

Nothing here may fail or change a compile. What goes wrong is told once; then there is silence, and the compile never
hears of it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from tilekit.tools.lower_trace import failures, journal, retold
from tilekit.tools.lower_trace.compile_sink import CompileSink
from tilekit.tools.lower_trace.journal import Compile, Difference, Entry, Head, Run, Step, Text

# a text without a forerunner is compared with the last one of its language up to this many lines, to be kept shorter
_GUESSED_LINES = 1 << 13


@dataclass(frozen=True, slots=True)
class Event:
    """Lines of the journal that belong together, and what they are about; `kind` is that of the last line.

    `text` is what a pass that begins was given, or what one that has ended made.
    """

    kind: str
    lines: tuple[str, ...]
    run: Run
    compile: Compile | None = None
    step: Step | None = None
    text: Text | None = None


class Listener(Protocol):
    """Hears of a run as it happens, one event at a time; whoever raises hears no more."""

    on_disk: bool  # whether it writes files: where one of those cannot, none of them goes on

    def hear(self, event: Event) -> None: ...

    def close(self) -> None:
        """The run has ended, and this has heard all of it."""

    def let_go(self) -> None:
        """Close what is open, and write nothing: the run has failed, or belongs to the process that forked this one."""


class Lines(Listener):
    """Keeps the lines of the journal."""

    on_disk = False

    def __init__(self) -> None:
        self._lines: list[str] = []

    def hear(self, event: Event) -> None:
        self._lines += event.lines

    @property
    def journal(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)


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
    anew
        Gives other listeners for those on the disk whose files were deleted; None if that is not what happened.
    """

    def __init__(
        self,
        head: Head,
        listeners: Sequence[Listener],
        warn: Callable[[str], None],
        anew: Callable[[], Sequence[Listener] | None] = lambda: None,
    ) -> None:
        self.run = Run(head)
        self.is_over = False
        self._listeners = list(listeners)
        self._warn = warn
        self._anew = anew
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

    def write(self, compile: Compile, step: Step | None, entries: Sequence[Entry], text: Text | None = None) -> None:
        """Hand entries to the listeners, in the order of the run."""
        with self.lock:
            if not self.is_over:
                self._tell(entries, compile, step, text)

    @contextlib.contextmanager
    def writing(self, compile: Compile, step: Step, text: Text | None = None) -> Iterator[list[Entry]]:
        """Within the block, nobody else writes; then its list is handed to the listeners."""
        with self.lock:
            entries: list[Entry] = []
            yield entries
            self.write(compile, step, entries, text)

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
                self._say(f"the trace ends here, with an error of its own: {failures.headline(error)}")
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

    def _tell(
        self,
        entries: Sequence[Entry],
        compile: Compile | None = None,
        step: Step | None = None,
        text: Text | None = None,
    ) -> None:
        event = Event(entries[-1]["k"], tuple(map(journal.encode, entries)), self.run, compile, step, text)
        self._hand(event, tuple(self._listeners))

    def _hand(self, event: Event, listeners: Sequence[Listener]) -> None:
        for listener in listeners:
            if listener in self._listeners:  # not dropped with one before it
                with self._watched(listener):
                    listener.hear(event)

    @contextlib.contextmanager
    def _watched(self, listener: Listener) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not (listener.on_disk and isinstance(error, FileNotFoundError) and self._written_anew()):
                dropped = self._on_disk if listener.on_disk else [listener]
                self._drop(dropped, f"the trace is written no further: {failures.why_not(error)}")
        except Exception as error:
            name = type(listener).__name__
            self._drop([listener], f"the trace goes on without its {name}: {failures.headline(error)}")

    @property
    def _on_disk(self) -> list[Listener]:
        return [listener for listener in self._listeners if listener.on_disk]

    def _written_anew(self) -> bool:
        """Whether the files were deleted, and others now say all that they had said."""
        try:
            fresh = None if self.is_over else self._anew()
        except OSError:
            return False
        if fresh is None:
            return False
        for listener in self._on_disk:
            self._listeners.remove(listener)
            _let_go(listener)
        self._listeners[:0] = fresh
        self._say(f"{self.run.head.folder} was deleted, so the trace is written there anew")
        for told in retold.tellings(self.run):
            lines = tuple(map(journal.encode, told.entries))
            self._hand(Event(told.kind, lines, self.run, told.compile, told.step, told.text), fresh)
        return True

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


def _let_go(listener: Listener) -> None:
    with contextlib.suppress(Exception):
        listener.let_go()
