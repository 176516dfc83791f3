# SPDX-License-Identifier: Apache-2.0
"""The candidates of one specialization on one machine: every schedule, what became of it, and how it did."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from tilekit.cache.programs import ProgramCache
from tilekit.diag.errors import TilekitError, ToolchainError
from tilekit.jit import observer
from tilekit.jit.specialized import Specialized, of_all
from tilekit.jit.tuning import build
from tilekit.jit.tuning.build import Answer, Job
from tilekit.jit.tuning.estimate import Estimate
from tilekit.jit.tuning.table import Key
from tilekit.runtime import compiled
from tilekit.runtime.tensors import DeviceKind

if TYPE_CHECKING:
    from tilekit.jit.instance import JitInstance
    from tilekit.jit.machine import Machine
    from tilekit.jit.specialized import Restart
    from tilekit.jit.tuning.elsewhere import Ran, Trial
    from tilekit.runtime.compiled import CompiledProgram

# of a compiler that is missing, or does not know the target: no schedule is to blame
_NOBODYS_FAULT = frozenset({"TK502", "TK503", "TK504", "TK505", "TK506", "TK507", "TK520"})


class State(Enum):
    """What became of a candidate; the value is what people read."""

    WAITING = "not compiled"
    FAILED = "does not compile"
    COMPILED = "compiled"
    MEASURED = "measured"
    ESTIMATED = "estimated"
    HOPELESS = "stopped early"
    BROKEN = "fails to run"


@dataclass(frozen=True)
class Measurement:
    """How a candidate did: the seconds of its runs, or an estimate, or what went wrong.

    `hopeless` says that a few runs were enough, so far behind it was.
    """

    seconds: tuple[float, ...] = ()
    hopeless: bool = False
    estimate: Estimate | None = None
    error: TilekitError | None = None

    @property
    def median(self) -> float | None:
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def spread(self) -> float | None:
        """Half of the runs lie so far from the median or nearer, as a share of it."""
        if self.median is None:
            return None
        return statistics.median(abs(value - self.median) for value in self.seconds) / self.median

    @property
    def cost(self) -> float | None:
        """What is compared: seconds, or estimated cycles; None of what did not run."""
        return self.median if self.estimate is None else self.estimate.cycles

    @property
    def state(self) -> State:
        if self.error is not None:
            return State.BROKEN
        if self.estimate is not None:
            return State.ESTIMATED
        return State.HOPELESS if self.hopeless else State.MEASURED


@dataclass
class Candidate:
    """One schedule, its program once it is compiled, and how it did where that was done."""

    number: int
    schedule: Mapping[str, Any]
    program: CompiledProgram | None = None
    compile_seconds: float | None = None
    error: TilekitError | None = None
    ran: Ran | None = None

    @property
    def state(self) -> State:
        if self.error is not None:
            return State.FAILED
        return State.WAITING if self.program is None else State.COMPILED


@dataclass
class Space:
    """The candidates in the order of the script's space, and their measurements for each tuning key."""

    instance: JitInstance
    machine: Machine
    candidates: list[Candidate] = field(init=False)
    measured: dict[Key, dict[int, Measurement]] = field(default_factory=dict[Key, dict[int, Measurement]])
    # one tuning at a time: a second thread waits, and then finds what the first one has found
    tuning: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.candidates = [Candidate(number, schedule) for number, schedule in enumerate(self.instance.schedules)]

    @property
    def waiting(self) -> list[Candidate]:
        return [candidate for candidate in self.candidates if candidate.state is State.WAITING]

    @property
    def runnable(self) -> list[Candidate]:
        return [candidate for candidate in self.candidates if candidate.state is State.COMPILED]

    def build(
        self, jobs: int | None = None, executor: Executor | None = None, trial: Trial | None = None
    ) -> Iterator[Candidate]:
        """Compile what is not compiled yet; each candidate comes when it is known what became of it.

        What the cache has starts no process, and neither does what a person's passes compile. An executor also makes
        the trial, where it has a GPU.
        """
        restart = self.instance.restart(self.machine.config)
        settled: list[Candidate] = []
        limit = min(jobs or self.machine.config.parallel_workers, self.machine.config.parallel_workers)
        workers = build.workers_for(len(self.waiting), limit)
        missing = self._missing(restart, settled, executor is not None, trial)
        if self.machine.pipeline is None:
            answers = build.compile_all(missing, workers, executor)
        else:  # no other process has a person's passes
            answers = ((number, self._compile_here(self.candidates[number], restart)) for number, _ in missing)
        for number, answer in answers:
            if self.machine.pipeline is None:
                observer.tuned_elsewhere(self.instance.script_cls.__name__)
            while settled:
                yield settled.pop(0)
            self._take(self.candidates[number], answer, restart)
            yield self.candidates[number]
        yield from settled

    def _compile_here(self, candidate: Candidate, restart: Restart) -> Answer:
        begin, error = time.perf_counter(), None
        try:
            candidate.program = self.instance.kernel(self.machine, candidate.number, restart).compiled
        except TilekitError as raised:
            error = raised
        return Answer(time.perf_counter() - begin, error)

    def _missing(
        self, restart: Restart, settled: list[Candidate], travels: bool, trial: Trial | None
    ) -> Iterator[tuple[int, Job]]:
        """What must be compiled; candidates that fail before, or that the cache has, go to `settled`."""
        for candidate in self.waiting:
            found = self.instance.specialized(candidate.number, restart)
            if not isinstance(found, Specialized):
                candidate.error = found.error.with_sources(self.instance.sources)
                self._note_failure(candidate, restart, "scheduling")
                settled.append(candidate)
                continue
            candidate.program = self.machine.now().find(found.text)
            if candidate.program is None:
                yield candidate.number, self._job(found, travels, trial)
                continue
            candidate.compile_seconds = 0.0
            self._note(candidate, restart)
            settled.append(candidate)

    def error_of_all(self) -> TilekitError:
        """What to say where no candidate compiles: the error of the first, and how many there are."""
        problems = [candidate.error for candidate in self.candidates if candidate.error is not None]
        return of_all(problems[0], len(problems))

    @property
    def unit(self) -> str:
        """Of what is compared: seconds, or estimated cycles."""
        return "s" if self.machine.device.kind is DeviceKind.CUDA else "cycles"

    def _job(self, found: Specialized, travels: bool, trial: Trial | None) -> Job:
        return Job(found.text, found.line_spans, *self.machine.terms, travels, trial)

    def _take(self, candidate: Candidate, answer: Answer, restart: Restart) -> None:
        candidate.compile_seconds, candidate.ran = answer.seconds, answer.ran
        if answer.error is not None:
            error = answer.error.with_sources(self.instance.sources)
            if isinstance(error, ToolchainError) and error.code in _NOBODYS_FAULT:
                raise error
            candidate.error = error
            self._note_failure(candidate, restart, "building")
            return
        found = self.instance.specialized(candidate.number, restart)
        assert isinstance(found, Specialized)
        candidate.program = candidate.program or self.machine.now().find(found.text)
        if candidate.program is None and answer.files is not None:
            config = self.machine.config
            entry = ProgramCache(config.cache_dir, config.cache_limit).publish(answer.key, answer.files)
            candidate.program = compiled.of_entry(entry, cached=False)
        if candidate.program is None:
            # the cache cannot be written, so what the process made is gone with it
            candidate.program = self.instance.build(candidate.number, self.machine, restart).compiled
        self._note(candidate, restart)

    def _note(self, candidate: Candidate, restart: Restart) -> None:
        if candidate.program is not None:
            self.instance.describe(self.machine, restart, candidate.number, candidate.program.entry.key)

    def _note_failure(self, candidate: Candidate, restart: Restart, stage: str) -> None:
        assert candidate.error is not None
        folder = self.instance.folder(self.machine, restart)
        folder.failed(stage, candidate.number, f"{dict(candidate.schedule)}\n\n{candidate.error.to_text()}\n")
