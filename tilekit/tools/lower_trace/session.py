# SPDX-License-Identifier: Apache-2.0
"""A trace that is on: it hears of the kernels that are asked for, and of passes that are called by hand.

One trace hears at a time, the innermost. A compile keeps the trace that it began with.
"""

from __future__ import annotations

import atexit
import importlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tilekit.cache.scripts import snake_case
from tilekit.config import TraceMode
from tilekit.events import BY_HAND, Fanout, Null, Sink, Stage
from tilekit.jit import observer
from tilekit.jit.observer import Identity
from tilekit.tools.lower_trace import naming, settings
from tilekit.tools.lower_trace.console import Console
from tilekit.tools.lower_trace.edit_sink import EditSink
from tilekit.tools.lower_trace.edit_table import Tag
from tilekit.tools.lower_trace.edits import WORKING, Decision, EditFolder, EditStore
from tilekit.tools.lower_trace.settings import Cached, Settings

if TYPE_CHECKING:
    from tilekit.tools.lower_trace.compile_sink import CompileSink
    from tilekit.tools.lower_trace.journal import Compile
    from tilekit.tools.lower_trace.page import Framed
    from tilekit.tools.lower_trace.recording import Listener
    from tilekit.tools.lower_trace.run import RunFolder

UNSCOPED = "unscoped"


@dataclass(eq=False)
class Live:
    """A run, and how many compiles of it are under way: once it is to end, it ends with the last of them."""

    folder: RunFolder
    under_way: int = 0
    is_ended: bool = False

    def end(self) -> None:
        self.is_ended = True
        if not self.under_way:
            self.folder.recording.close()


class Session:
    """What was traced, as long as it is on and afterwards; its run folder is made by the first thing it hears of."""

    def __init__(self, chosen: Settings) -> None:
        self.settings = chosen
        self._console = Console()
        self._by_hand = ByHand(self)
        self.start_anew()
        _sessions.add(self)

    def start_anew(self) -> None:
        """Nothing is recorded yet: also in a process that was forked, whatever its parent had."""
        self._lock = threading.RLock()
        self._live: Live | None = None
        self._edits: EditStore | None = None
        # the compiles that this thread is in, and its passes by hand
        self.here = _Here()
        self._unscoped: list[CompileSink] = []
        self._unheard = set[str]()  # scripts that were tuned

    # -------------------------------------------------------------------------------------------------- for a person

    @property
    def compiles(self) -> list[Compile]:
        """What was compiled, in the order in which it was begun; passes that were called by hand are none of it."""
        live = self._live
        return [] if live is None else [found for found in live.folder.recording.run.compiles if found.run]

    @property
    def folder(self) -> Path | None:
        """The folder of the run: the journal, the page, and the IR before and after each pass."""
        return None if self._live is None else self._live.folder.path

    @property
    def report(self) -> Path | None:
        """The page, if there is one: it is that of the newest run of this script."""
        found = None if self._live is None else self._live.folder
        return None if found is None or found.page is None else found.script_folder / found.page.name

    def show(self) -> Framed:
        """The viewer of what was traced until now, as the value of a cell.

        Examples
        --------
        >>> import tilekit
        >>> with tilekit.tracing(mode="terminal") as t:
        ...     pass
        >>> t.show()
        nothing was traced
        """
        page = importlib.import_module("tilekit.tools.lower_trace.page")
        found = None if self._live is None else self._live.folder
        if found is None or found.journal is None:
            return page.Framed([""], "trace", "nothing was traced")
        count = len(self.compiles)
        summary = f"{count} {'kernel' if count == 1 else 'kernels'} traced · {self.folder}"
        return page.Framed([found.journal.read_text()], found.script_folder.name, summary)

    def reset(self) -> None:
        """End the run; what is asked for from now on is a run of its own."""
        self.close()
        self._live = None
        observer.trace_anew(self)

    # ------------------------------------------------------------------------------------------------- what it hears

    def begin(self, *, outermost: bool = False) -> None:
        BY_HAND.join(self._by_hand)
        observer.trace(self, outermost=outermost)

    def end(self) -> None:
        BY_HAND.leave(self._by_hand)
        observer.untrace(self)
        self.close()

    def wants(self, script: str) -> bool:
        return self.settings.mode is not TraceMode.OFF and self.settings.filter.takes_kernel(script)

    def sink(self, kernel: Identity, *, cached: bool) -> Sink | None:
        if cached and self.settings.cached is Cached.SKIP:
            edits = self.edits_alone(kernel)
            but = "" if edits is None else ", but compiled as it was edited"
            self._console.say(f"{kernel.specialization}: cached, not traced{but}")
            return edits
        with self._lock:
            live = self._opened()
            live.under_way += 1
        sink = live.folder.recording.compile(
            snake_case(kernel.script),
            script=kernel.script,
            specialization=kernel.specialization,
            target=kernel.target,
            device=kernel.device,
            from_cache=cached,
            takes_pass=self.settings.filter.takes_pass,
        )
        here = self.here  # a process that is forked in the middle of the compile gets another one
        made = TracedCompile([sink, *self._edit_sinks(kernel, sink)], lambda: self._done(here, made, live))
        here.compiles.append(made)
        return made

    def unheard(self, script: str) -> None:
        if script not in self._unheard:
            self._unheard.add(script)
            self._console.say(f"{script}: candidates of a tuning are not traced, but the one that is chosen is")

    def edits_alone(self, kernel: Identity) -> EditSink | None:
        """Who answers with what a person edited of a kernel, and traces nothing; nobody, if that is nothing."""
        is_there = self.settings.keeps_source and os.path.isdir(self._store().root)
        folder = self.edit_folder(kernel) if is_there else None
        has_tiles = folder is not None and any(tile.holds_edit() for tile in folder.tiles())
        if folder is None or not (has_tiles or folder.holds_edit()):
            return None
        say = self._console.say
        return EditSink(folder, self.settings.on_conflict, traces=has_tiles, only_edited=True, say=say)

    def _done(self, here: _Here, compile: TracedCompile, live: Live) -> None:
        here.compiles.remove(compile)
        with self._lock:
            live.under_way -= 1
            if live.is_ended:
                live.end()

    def unscoped(self) -> Sink | None:
        """Who hears of passes that this thread calls by hand: the compile that it is in, or one that is none."""
        if self.here.compiles:
            return self.here.compiles[-1]
        if active() is not self or self.settings.mode is TraceMode.OFF or self.settings.filter.kernels:
            return None
        recording = self._opened().folder.recording
        if self.here.unscoped is None or self.here.unscoped.recording is not recording:
            made = recording.compile(UNSCOPED, phase=UNSCOPED, takes_pass=self.settings.filter.takes_pass)
            self.here.unscoped = made
            self._unscoped.append(made)
        return self.here.unscoped

    def close(self) -> None:
        """End the run, and make its page compact, as soon as the compiles that are under way are done."""
        with self._lock:
            if self._live is not None and not self._live.is_ended:
                for sink in self._unscoped:
                    sink.done(None)
                self._unscoped.clear()
                self._live.end()

    def _opened(self) -> Live:
        with self._lock:
            if self._live is None or self._live.is_ended:
                # they bring the compiler, which who finds all kernels in the cache never needs
                run = importlib.import_module("tilekit.tools.lower_trace.run")
                terminal = importlib.import_module("tilekit.tools.lower_trace.terminal")
                summaries = terminal.Summaries(self._console)
                listeners = [*self._printers(terminal), summaries]
                self._live = Live(run.open_run(self.settings, listeners, self._console.say))
                summaries.page = self.report
            return self._live

    def _printers(self, terminal: ModuleType) -> list[Listener]:
        return [terminal.Terminal(self._console, self.settings.max_lines)] if self.settings.mode.prints else []

    def _store(self) -> EditStore:
        """Where what is generated can be edited; who asks for it begins no run."""
        chosen = self.settings.codegen_output
        if isinstance(chosen, Path):
            return EditStore(chosen.parent, chosen.name)
        run = importlib.import_module("tilekit.tools.lower_trace.run")
        return EditStore(run.home_of(naming.script_name(), self.settings.folder), WORKING)

    def edit_folder(self, kernel: Identity) -> EditFolder | None:
        """Where what is generated for a kernel can be edited; None if nowhere."""
        if not (self.settings.keeps_source and self.wants(kernel.script)):
            return None
        with self._lock:
            if self._edits is None:
                self._edits = self._store()
        return self._edits.folder(kernel)

    def _edit_sinks(self, kernel: Identity, recorded: CompileSink) -> list[EditSink]:
        """Who answers what is generated for a kernel with what a person made of it."""
        folder = self.edit_folder(kernel)
        if folder is None:
            return []

        def on_source(generated: str, decision: Decision) -> None:
            path = str(folder.working)
            recorded.edited(generated, decision.text, decision.tag.value, path, decision.messages)

        def say(line: str) -> None:
            # files that lie beside a trace that cannot be written are a part of what it has said
            is_apart = isinstance(self.settings.codegen_output, Path) or recorded.recording.is_written
            if is_apart or not line.startswith(Tag.CANNOT_UPDATE.value):
                self._console.say(line)

        return [EditSink(folder, self.settings.on_conflict, traces=True, say=say, on_source=on_source)]


class _Here(threading.local):
    """What a thread is in the middle of."""

    def __init__(self) -> None:
        self.compiles: list[TracedCompile] = []
        self.unscoped: CompileSink | None = None
        # for each step that was begun by hand, who was told of it
        self.by_hand: list[Sink | None] = []


class TracedCompile(Fanout):
    """Listens to one compile; passes that are called by hand meanwhile are a part of it."""

    def __init__(self, sinks: Sequence[Sink], on_done: Callable[[], None]) -> None:
        super().__init__(sinks)
        self._on_done = on_done

    def done(self, error: BaseException | None) -> None:
        super().done(error)
        self._on_done()


class ByHand(Null):
    """Listens to passes that somebody calls by hand; of a compile that is under way they are a part."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def begin(self, stage: Stage, name: str, before: object) -> None:
        told = self._session.unscoped()
        self._session.here.by_hand.append(told)
        if told is not None:
            told.begin(stage, name, before)

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float) -> None:
        if (told := self._ended()) is not None:
            told.end(stage, name, before, after, seconds)

    def fail(self, stage: Stage, name: str, error: BaseException) -> None:
        if (told := self._ended()) is not None:
            told.fail(stage, name, error)

    def note(self, key: str, value: object) -> None:
        told = self._session.here.by_hand[-1:]
        if told and told[0] is not None:
            told[0].note(key, value)

    def _ended(self) -> Sink | None:
        """Who was told that the step began; nobody, if the trace began in the middle of it."""
        begun = self._session.here.by_hand
        return begun.pop() if begun else None


# ------------------------------------------------------------------------------------------------------ for a process

_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for session in tuple(_sessions):
        session.start_anew()


def _close_all() -> None:
    for session in tuple(_sessions):
        session.close()


os.register_at_fork(after_in_child=_leave_to_parent)
atexit.register(_close_all)


def active() -> Session | None:
    """The trace that hears now."""
    tracer = observer.tracer()
    return tracer if isinstance(tracer, Session) else None


@contextmanager
def as_edited() -> Iterator[None]:
    """Within the block, kernels are compiled as they were edited where this script is traced, traced or not."""
    tracer = active()
    if tracer is not None and tracer.settings.keeps_source:
        yield
        return
    alone = Session(settings.resolve(TraceMode.HTML)).edits_alone
    observer.listen(alone)
    try:
        yield
    finally:
        observer.unlisten(alone)
