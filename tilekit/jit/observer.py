# SPDX-License-Identifier: Apache-2.0
"""Who wants to know what is called, compiled and launched: a notebook, a trace, a bisection; most often nobody."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tilekit import config
from tilekit.diag.sources import Sources
from tilekit.events import Fanout, Sink

if TYPE_CHECKING:
    from tilekit.jit.arguments import JitKey
    from tilekit.jit.instantiated import InstantiatedScript
    from tilekit.jit.kernel import Kernel
    from tilekit.jit.progress import Underway


class Observer(Protocol):
    """Told about each compile and launch, in the thread that does it; by itself it does nothing about it."""

    def compiling(self, script: str, stage: str) -> None:
        """A stage of a compile begins, or the first launch."""

    def compiled(self, kernel: Kernel) -> None:
        """A kernel is there, compiled or found."""

    def running(self, progress: Underway | None) -> None:
        """How far a launch or a tuning is that takes long; None once it has ended."""

    def launched(self, kernel: Kernel) -> None:
        """A launch went well."""

    def traced(self, page: Path) -> bool:
        """What a compile did stands on this page; whether it was said to the person."""
        return False


@dataclass(frozen=True)
class Identity:
    """Which kernel is compiled, in words that a changed body does not change.

    `enclosed` tells classes of one name apart by what the function that made them gave each; empty if that is nothing.
    """

    script: str
    specialization: str
    target: str
    device: str
    enclosed: str = ""


# gives a sink that wants to hear of the compile of a kernel, or None
Listener = Callable[[Identity], "Sink | None"]


class Tracer(Protocol):
    """Hears of every kernel that is asked for while it is the innermost one, compiled or not."""

    def wants(self, script: str) -> bool:
        """Whether it wants to hear of the kernels of this script."""
        ...

    def sink(self, kernel: Identity, *, cached: bool) -> Sink | None:
        """A sink for the compile of a kernel, which may be in the cache."""
        ...

    def unheard(self, script: str) -> None:
        """Candidates of a tuning of this script are compiled where it hears of nothing."""


# who is told; the list is always the same one, for launches look whether anybody is there
present: list[Observer] = []
_listeners: list[Listener] = []
# each with a number of its own, the innermost one last; a tuple, which other threads may look at while it is replaced
_tracers: tuple[tuple[int, Tracer], ...] = ()
_numbers = itertools.count(1)
_changing = threading.Lock()


def listen(listener: Listener) -> None:
    """Ask `listener` at every compile from now on."""
    _listeners.append(listener)


def unlisten(listener: Listener) -> None:
    """Ask it no more."""
    _listeners.remove(listener)


def trace(tracer: Tracer, *, outermost: bool = False) -> None:
    """Tell `tracer` of every kernel from now on, but while there is one inside of it."""
    global _tracers
    with _changing:
        new = ((next(_numbers), tracer),)
        _tracers = new + _tracers if outermost else _tracers + new
    config.begin_era()


def trace_anew(tracer: Tracer) -> None:
    """What it has heard of so far, it shall hear of again."""
    global _tracers
    with _changing:
        _tracers = tuple((next(_numbers) if other is tracer else number, other) for number, other in _tracers)
    config.begin_era()


def untrace(tracer: Tracer) -> None:
    """Tell it no more."""
    global _tracers
    with _changing:
        _tracers = tuple((number, other) for number, other in _tracers if other is not tracer)
    config.begin_era()


def tracer() -> Tracer | None:
    """Who hears now of what its `wants` says; None if nobody does."""
    innermost = _tracers[-1:]
    return innermost[0][1] if innermost else None


def tracing(script: str | None = None) -> int:
    """The number of who hears now of the kernels of this script, or of any; 0 if nobody does."""
    innermost = _tracers[-1:]
    if not innermost:  # each launch asks
        return 0
    number, tracer = innermost[0]
    return number if script is None or tracer.wants(script) else 0


def may_edit(script: str) -> bool:
    """Whether anybody might answer a compile of this script with what a person edited."""
    return bool(_listeners) or tracing(script) != 0


def is_over(tracing: int) -> bool:
    """Whether whoever had this number hears no more."""
    return tracing != 0 and all(number != tracing for number, _ in _tracers)


def tuned_elsewhere(script: str) -> None:
    """Candidates of a tuning of this script are compiled in other processes."""
    for _, tracer in _tracers[-1:]:
        if tracer.wants(script):
            tracer.unheard(script)


@contextmanager
def listening(kernel: Identity, *, cached: bool, sources: Sources | None = None) -> Iterator[tuple[Sink, ...]]:
    """Within the block, a compile: the sinks of everybody who wants to hear of it; at its end they are told.

    Who traces is shown the functions that the kernel was made from.
    """
    found = [listener(kernel) for listener in _listeners]
    found += [tracer.sink(kernel, cached=cached) for _, tracer in _tracers[-1:] if tracer.wants(kernel.script)]
    sinks = tuple(sink for sink in found if sink is not None)
    if sources is not None:
        Fanout(sink for sink in sinks if sink.traces).note("sources", sources)
    try:
        yield sinks
    except BaseException as error:
        Fanout(sinks).done(error)
        raise
    Fanout(sinks).done(None)


# told of a handle, the kind of a call's arguments, and these, before anything is compiled for it
Caller = Callable[["InstantiatedScript", "JitKey", Sequence[Any], Mapping[str, Any]], None]
_callers: list[Caller] = []


@contextmanager
def calls_told_to(caller: Caller) -> Iterator[None]:
    """Within the block, `caller` is told of each call whose arguments are of a new kind."""
    _callers.append(caller)
    try:
        yield
    finally:
        _callers.remove(caller)


def called(handle: InstantiatedScript, kind: JitKey, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Tell whoever wants to know."""
    for caller in tuple(_callers):
        caller(handle, kind, args, kwargs)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Within the block, `observer` is told."""
    present.append(observer)
    try:
        yield
    finally:
        present.remove(observer)


def observers() -> tuple[Observer, ...]:
    return tuple(present)
