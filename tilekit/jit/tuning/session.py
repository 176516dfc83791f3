# SPDX-License-Identifier: Apache-2.0
"""One tuning: candidates are compiled side by side, each is measured as it comes, and the best is remembered.

A candidate that fails costs a row of the table. Whoever interrupts, or sets a budget, keeps what is done: calls use the
best of it, and the next `tune` goes on from there. Of the best few on a GPU, which one is fastest is decided by more
rounds in turn, so that a clock that falls with the heat falls for all.
"""

from __future__ import annotations

import contextlib
import re
import time
import warnings
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

from tilekit.diag import errors
from tilekit.jit import progress
from tilekit.jit.progress import TuningProgress
from tilekit.jit.tuning import choice, schedules, table
from tilekit.jit.tuning.measure import Measure, measure_on, measured_elsewhere, trial_for
from tilekit.jit.tuning.schedules import Schedules
from tilekit.jit.tuning.space import Candidate, Measurement, Space, State
from tilekit.jit.tuning.table import Entry, Key
from tilekit.runtime.tensors import DeviceKind

# the candidates within this of the best are measured again, in turn
_CLOSE = 1.1
_FINALISTS = 5
_ROUNDS = 2
_TICK_S = 0.2  # between what is told of progress
_UNITS = {"": 1.0, "s": 1.0, "seconds": 1.0, "min": 60.0, "minutes": 60.0, "h": 3600.0, "hours": 3600.0}


@dataclass
class Session:
    """One tuning of a space for one tuning key."""

    space: Space
    key: Key
    arguments: Sequence[Any]
    deadline: float | None = None
    what: str = "tried"
    measure: Measure = field(init=False)
    _from_away: set[int] = field(default_factory=set[int])
    _begin: float = field(default_factory=time.monotonic)
    _done: int = 0
    _shown: float = 0.0

    def __post_init__(self) -> None:
        self.measure = measure_on(self.space, self.arguments)

    def run(self, jobs: int | None, executor: Executor | None) -> None:
        """Measure every candidate that compiles and was not measured yet, while there is time."""
        results = self.space.measured.setdefault(self.key, {})
        # leaving it early stops the processes that compile
        with contextlib.closing(self._compile(jobs, executor)) as candidates:
            for candidate in candidates:
                if candidate.state is State.COMPILED and candidate.number not in results:
                    if self._is_over:
                        break
                    results[candidate.number] = self._away(candidate) or self.measure(candidate, _leader(results))
                self._done += 1
                self._tell(results)
        if self.space.machine.device.kind is DeviceKind.CUDA:
            self._final(results)

    def only_compile(self, jobs: int | None) -> None:
        """Compile every candidate."""
        with contextlib.closing(self._compile(jobs, None)) as candidates:
            for _ in candidates:
                self._done += 1
                self._tell({})

    def _compile(self, jobs: int | None, executor: Executor | None) -> Generator[Candidate]:
        """The candidates, each when it is known what became of it."""
        yield from [candidate for candidate in self.space.candidates if candidate.state is not State.WAITING]
        trial = None if executor is None else trial_for(self.space, self.arguments)
        yield from self.space.build(jobs, executor, trial)

    def _away(self, candidate: Candidate) -> Measurement | None:
        """What was measured where it was compiled; of no use for another tuning key."""
        found, candidate.ran = measured_elsewhere(self.space, candidate), None
        if found is not None:
            self._from_away.add(candidate.number)
        return found

    def _final(self, results: dict[int, Measurement]) -> None:
        """Measure the best few here that were measured elsewhere, and those that lie close together again, in turn."""
        for number in _best_few(results):
            if number in self._from_away and not self._is_over:
                results[number] = self.measure(self.space.candidates[number], None)
        leader = _leader(results)
        close = [n for n, found in results.items() if leader and (found.median or 1e9) <= _CLOSE * leader]
        finalists = [number for number in _best_few(results) if number in close]
        if len(finalists) < 2:
            return
        rounds: dict[int, list[Measurement]] = {number: [results[number]] for number in finalists}
        for _ in range(_ROUNDS):
            for number in finalists:
                if self._is_over:
                    return
                again = self.measure(self.space.candidates[number], None)
                if again.error is None:
                    rounds[number].append(again)
        for number, measured in rounds.items():
            # so long each that none of them decides alone
            results[number] = Measurement(tuple(value for each in measured for value in each.seconds))

    @property
    def _is_over(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    # ---------------------------------------------------------------------------------------------------- what is told

    def _tell(self, results: Mapping[int, Measurement], *, now_or_never: bool = False) -> None:
        now = time.monotonic()
        is_early = now - self._begin < progress.PATIENCE_S or now - self._shown < _TICK_S
        if is_early and not (now_or_never and self._shown):
            return
        self._shown = now
        total = len(self.space.candidates)
        left = (now - self._begin) / max(self._done, 1) * (total - self._done)
        if self.deadline is not None:
            left = min(left, max(self.deadline - now, 0.0))
        progress.tell(
            TuningProgress(
                self.space.instance.script_cls.__name__,
                self.what,
                self._done,
                total,
                left,
                self._best(results),
                schedules.of_space(self.space, self.key),
            )
        )

    def _best(self, results: Mapping[int, Measurement]) -> str | None:
        number = best_of(results)
        cost = None if number is None else results[number].cost
        return None if cost is None else table.cost_words(cost, self.space.unit)

    def close(self) -> None:
        """Tell how it ended, if it told anything."""
        self._tell(self.space.measured.get(self.key, {}), now_or_never=True)
        if self._shown:
            progress.tell(None)


def tune(
    space: Space,
    key: Key,
    arguments: Sequence[Any],
    *,
    budget: float | None = None,
    jobs: int | None = None,
    executor: Executor | None = None,
) -> Schedules:
    """Find the best schedule for a tuning key, and remember it; what an earlier tuning has measured is kept.

    Whatever ends it early, what was measured counts.
    """
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise errors.ArgumentError("TK636", f"jobs is how many processes compile, from 1 on, not {jobs!r}")
    deadline = None if budget is None else time.monotonic() + budget
    session = Session(space, key, arguments, deadline)
    with space.tuning:
        try:
            session.run(jobs, executor)
        finally:
            session.close()
            _keep(space, key)
    found = schedules.of_space(space, key)
    if found.best is None:
        _refuse(space, key)
    return found


def compile_all(space: Space, jobs: int | None = None) -> None:
    """Compile every candidate; an error if there is none that compiles."""
    with space.tuning:
        session = Session(space, (), (), what="compiled")
        try:
            session.only_compile(jobs)
        finally:
            session.close()
    if not space.runnable:
        raise space.error_of_all()


def tune_for_call(space: Space, key: Key, arguments: Sequence[Any]) -> int | None:
    """Tune, because a call waits for it; None, and a warning, where that cannot be done on its arguments."""
    try:
        tune(space, key, arguments)
    except errors.ArgumentError as error:
        if error.code != "TK636":
            raise
        warnings.warn(f"{error.message}: the first schedule that compiles is used", stacklevel=5)
        return None
    return best_of(space.measured[key])


def best_of(results: Mapping[int, Measurement]) -> int | None:
    """The number of the best of these; the first of equals."""
    return next(iter(_best_few(results)), None)


def seconds_of(budget: float | str) -> float:
    """A budget in seconds: a number, or text such as "5 min", "90 s", "1 h"."""
    if isinstance(budget, (int, float)) and budget >= 0:
        return float(budget)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(\w*)\s*", str(budget))
    if found is None or found[2] not in _UNITS:
        raise errors.ArgumentError("TK636", f'a budget is seconds, or text such as "5 min", not {budget!r}')
    return float(found[1]) * _UNITS[found[2]]


def _best_few(results: Mapping[int, Measurement]) -> list[int]:
    """The numbers of the best, best first."""
    costs = {number: found.cost for number, found in sorted(results.items()) if found.cost is not None}
    return sorted(costs, key=lambda number: costs[number])[:_FINALISTS]


def _leader(results: Mapping[int, Measurement]) -> float | None:
    return min((found.median for found in results.values() if found.median is not None), default=None)


def _keep(space: Space, key: Key) -> None:
    """Write down what was found."""
    results, instance, machine = space.measured.get(key, {}), space.instance, space.machine
    best = best_of(results)
    if best is None:
        return
    instance.entries(machine)[key] = _entry(space, key, results, best)
    restart = instance.restart(machine.config)
    folder = instance.folder(machine, restart)
    table.write(folder, choice.table_of(instance, machine, restart, table.holds_for(machine)))
    program = space.candidates[best].program
    table.report(folder, key, f"{schedules.of_space(space, key)}\n", None if program is None else program.entry.folder)


def _entry(space: Space, key: Key, results: Mapping[int, Measurement], best: int) -> Entry:
    cost = results[best].cost
    assert cost is not None
    possible = sum(candidate.state is not State.FAILED for candidate in space.candidates)
    schedule = table.schedule_of(space.candidates[best].schedule)
    return Entry(dict(key), schedule, cost, space.unit, len(results), possible)


def _refuse(space: Space, key: Key) -> None:
    """Raise what is wrong if nothing could be measured, unless there was just no time."""
    if not space.waiting and not space.runnable:
        raise space.error_of_all()
    problems = [found.error for _, found in sorted(space.measured.get(key, {}).items()) if found.error is not None]
    if problems and len(problems) == len(space.runnable):
        note = f"all {len(problems)} schedules that compile fail to run; this is the error of the first"
        raise problems[0] if len(problems) == 1 else problems[0].noted(note)
