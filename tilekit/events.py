# SPDX-License-Identifier: Apache-2.0
"""What happens during a compile, told to whoever listens; a sink may answer the generated source with an edited one."""

from __future__ import annotations

from collections.abc import Iterable
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


@dataclass(frozen=True, slots=True)
class Edited:
    """Source that is to be compiled in place of the generated one, and where it came from."""

    text: str
    provenance: str


class Sink(Protocol):
    """One listener. `before` and `after` are the immutable objects themselves: the same object means unchanged."""

    def begin(self, stage: Stage, name: str) -> None: ...

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float) -> None: ...

    def fail(self, stage: Stage, name: str, error: BaseException) -> None: ...

    def codegen(self, text: str) -> Edited | None: ...

    def note(self, key: str, value: object) -> None: ...


class Null:
    """A sink that ignores everything: the base of those that care about some events only."""

    def begin(self, stage: Stage, name: str) -> None:
        pass

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float) -> None:
        pass

    def fail(self, stage: Stage, name: str, error: BaseException) -> None:
        pass

    def codegen(self, text: str) -> Edited | None:
        return None

    def note(self, key: str, value: object) -> None:
        pass


class Fanout(Null):
    """Several sinks as one; each is told in order, and the last that edits the source wins.

    Every sink is asked with the generated text, never with another sink's edit, so a listener always sees what the
    compiler wrote.
    """

    def __init__(self, sinks: Iterable[Sink] = ()) -> None:
        self.sinks = tuple(sinks)

    def begin(self, stage: Stage, name: str) -> None:
        for sink in self.sinks:
            sink.begin(stage, name)

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float) -> None:
        for sink in self.sinks:
            sink.end(stage, name, before, after, seconds)

    def fail(self, stage: Stage, name: str, error: BaseException) -> None:
        for sink in self.sinks:
            sink.fail(stage, name, error)

    def codegen(self, text: str) -> Edited | None:
        answers = [sink.codegen(text) for sink in self.sinks]
        return next((answer for answer in reversed(answers) if answer is not None), None)

    def note(self, key: str, value: object) -> None:
        for sink in self.sinks:
            sink.note(key, value)
