# SPDX-License-Identifier: Apache-2.0
"""What happens during a compile, told to whoever listens; a sink may answer the generated source with an edited one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Stage(Enum):
    """The stations of a compile, in the order they are passed."""

    VERIFY = "verify"
    TILE = "tile"
    LOWER = "lower"
    HIDET = "hidet"
    CODEGEN = "codegen"
    PTX = "ptx"
    PTXAS = "ptxas"
    SASS = "sass"
    HOST = "host"


CLEAN, PATCHED = "clean", "PATCHED"  # what is said of a program that nobody edited, and of one whose edit runs
EDIT_OF = "edit_of_"  # how a step begins that is a person's edit of what the pass before it made


@dataclass(frozen=True, slots=True)
class Edited:
    """Source that is to be compiled in place of the generated one, where it came from, and what was decided about it.

    One whose text is the generated one says only what became of an edit.
    """

    text: str
    provenance: str
    state: str = PATCHED


class Sink(Protocol):
    """One listener. `before` and `after` are the immutable objects themselves: the same object means unchanged.

    Steps nest: one that begins before another has ended was called by it.
    """

    @property
    def traces(self) -> bool:
        """Whether it wants to see the passes also of a program that the cache has."""
        ...

    def begin(self, stage: Stage, name: str, before: object) -> None: ...

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float) -> None: ...

    def fail(self, stage: Stage, name: str, error: BaseException) -> None: ...

    def tile(self, name: str, prog: object) -> object | None:
        """The program to go on with after this tile pass, if it is not the one that the pass made."""

    def codegen(self, text: str) -> Edited | None:
        """The source to compile, if it is not the generated one, or what became of an edit of it."""

    def note(self, key: str, value: object) -> None: ...

    def done(self, error: BaseException | None) -> None:
        """The compile has ended, or died of an error."""


class Null:
    """A sink that ignores everything: the base of those that care about some events only."""

    traces = False

    def begin(self, stage: Stage, name: str, before: object) -> None:
        pass

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float) -> None:
        pass

    def fail(self, stage: Stage, name: str, error: BaseException) -> None:
        pass

    def tile(self, name: str, prog: object) -> object | None:
        return None

    def codegen(self, text: str) -> Edited | None:
        return None

    def note(self, key: str, value: object) -> None:
        pass

    def done(self, error: BaseException | None) -> None:
        pass


class Fanout:
    """Several sinks as one; each is told in order, and the last that edits a program or the source wins.

    Every sink is asked with what the compiler made, never with another sink's edit, so a listener always sees what the
    compiler wrote.
    """

    def __init__(self, sinks: Iterable[Sink] = ()) -> None:
        self.sinks = tuple(sinks)

    @property
    def traces(self) -> bool:
        return any(sink.traces for sink in self.sinks)

    def begin(self, stage: Stage, name: str, before: object) -> None:
        for sink in self.sinks:
            sink.begin(stage, name, before)

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float) -> None:
        for sink in self.sinks:
            sink.end(stage, name, before, after, seconds)

    def fail(self, stage: Stage, name: str, error: BaseException) -> None:
        for sink in self.sinks:
            sink.fail(stage, name, error)

    def tile(self, name: str, prog: object) -> object | None:
        answers = [sink.tile(name, prog) for sink in self.sinks]
        return next((answer for answer in reversed(answers) if answer is not None), None)

    def codegen(self, text: str) -> Edited | None:
        answers = [sink.codegen(text) for sink in self.sinks]
        return next((answer for answer in reversed(answers) if answer is not None), None)

    def note(self, key: str, value: object) -> None:
        for sink in self.sinks:
            sink.note(key, value)

    def done(self, error: BaseException | None) -> None:
        for sink in self.sinks:
            sink.done(error)


class Relay(Fanout):
    """A sink that people join and leave while it is in use."""

    def join(self, sink: Sink) -> None:
        self.sinks = (*self.sinks, sink)

    def leave(self, sink: Sink) -> None:
        self.sinks = tuple(other for other in self.sinks if other is not sink)


# told of passes that somebody calls by hand, outside of any compile or without handing on the sink of one
BY_HAND = Relay()


class Underway:
    """A step that has begun: it is told what it made."""

    def __init__(self, before: object) -> None:
        self.after = before
        self.seconds: float | None = None
        self._start = time.perf_counter()

    def made(self, after: object, *, less: float = 0.0) -> None:
        """Take what it made, and the time, without `less` seconds that are another step's.

        What is done later, such as a verification, is not the step's.
        """
        self.after, self.seconds = after, max(0.0, time.perf_counter() - self._start - less)


@contextmanager
def step(sink: Sink, stage: Stage, name: str, before: object) -> Iterator[Underway]:
    """Tell `sink` that a step begins, and how it ends; one that makes nothing hands on what it was given."""
    sink.begin(stage, name, before)
    underway = Underway(before)
    try:
        yield underway
    except BaseException as error:
        sink.fail(stage, name, error)
        raise
    if underway.seconds is None:
        underway.made(before)
    assert underway.seconds is not None
    sink.end(stage, name, before, underway.after, underway.seconds)
