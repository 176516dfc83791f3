# SPDX-License-Identifier: Apache-2.0
"""Who wants to know what is compiled and launched: a notebook shows it, everybody else does nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tilekit.events import Fanout, Sink

if TYPE_CHECKING:
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


@dataclass(frozen=True)
class Identity:
    """Which kernel is compiled, in words that a changed body does not change."""

    script: str
    specialization: str
    target: str
    device: str


# gives a sink that wants to hear of the compile of a kernel, or None
Listener = Callable[[Identity], "Sink | None"]

_observers: list[Observer] = []
_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Ask `listener` at every compile from now on."""
    _listeners.append(listener)


def unlisten(listener: Listener) -> None:
    """Ask it no more."""
    _listeners.remove(listener)


@contextmanager
def listening(kernel: Identity) -> Iterator[tuple[Sink, ...]]:
    """Within the block, a compile: the sinks of everybody who wants to hear of it; at its end they are told."""
    sinks = tuple(sink for listener in _listeners if (sink := listener(kernel)) is not None)
    try:
        yield sinks
    except BaseException as error:
        Fanout(sinks).done(error)
        raise
    Fanout(sinks).done(None)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Within the block, `observer` is told."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def observers() -> tuple[Observer, ...]:
    return tuple(_observers)
