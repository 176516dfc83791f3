# SPDX-License-Identifier: Apache-2.0
"""Times of several programs that compare, taken by `tilekit.runtime.benchmark`, in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from tilekit.runtime import benchmark
from tilekit.runtime.benchmark import Batch, Launch, Timer, Timing

CALLS = 30


@dataclass(frozen=True)
class Reading:
    """Milliseconds of one program: the median of the rounds' medians, and the least and the greatest of these."""

    ms: float
    low: float
    high: float

    @staticmethod
    def of(timing: Timing) -> Reading:
        return Reading(*(round(1e3 * seconds, 5) for seconds in (timing.median, timing.low, timing.high)))

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def glance(launch: Launch, timer: Timer) -> float:
    """The seconds of a call, from a few of them: enough to tell schedules apart."""
    timer.batch(launch, 2)
    return benchmark.glance(launch, timer)


def in_turn(launches: Mapping[str, Launch], timer: Timer) -> dict[str, Reading]:
    """Time all programs, one batch of each a round."""
    rounds: dict[str, list[Batch]] = {name: [] for name in launches}
    for name, batch in benchmark.in_turn(launches, timer, dict.fromkeys(launches, CALLS)):
        if isinstance(batch, Exception):
            raise batch
        rounds[name].append(batch)
    return {name: Reading.of(Timing(tuple(found))) for name, found in rounds.items()}
