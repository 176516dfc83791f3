# SPDX-License-Identifier: Apache-2.0
"""Times of several programs that compare: in turn, round after round, each call with a cold L2 cache.

Before each call 512 MB are read, which leaves nothing to write back. A busy kernel ahead of each batch keeps the GPU
behind the host, so that no time of the host is in between two events. A value is the median of the rounds' medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

Launch = Callable[[], object]

ROUNDS, CALLS, GLANCE = 5, 30, 7
_FLUSH_BYTES = 512 << 20
_BUSY_CYCLES = 2_000_000


class Timer(Protocol):
    """What knows how long calls take."""

    def batch(self, launch: Launch, calls: int) -> list[float]:
        """The seconds of each of `calls` calls."""
        ...

    def wait(self) -> None:
        """Return when all is done that was launched; raise what went wrong in it."""
        ...


class CudaTimer:
    """Events of the GPU around every call."""

    def __init__(self) -> None:
        import torch

        self.torch: Any = torch
        self.slab = torch.ones(_FLUSH_BYTES // 4, device="cuda")
        self.read = torch.empty((), device="cuda")

    def batch(self, launch: Launch, calls: int) -> list[float]:
        torch = self.torch
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(calls)]
        torch.cuda._sleep(_BUSY_CYCLES)
        for begin, end in events:
            torch.sum(self.slab, dim=0, out=self.read)
            begin.record()
            launch()
            end.record()
        torch.cuda.synchronize()
        return [1e-3 * begin.elapsed_time(end) for begin, end in events]

    def wait(self) -> None:
        self.torch.cuda.synchronize()


@dataclass(frozen=True)
class Reading:
    """Milliseconds of one program: the median of the rounds' medians, and the least and the greatest of these."""

    ms: float
    low: float
    high: float

    @staticmethod
    def of(medians: list[float]) -> Reading:
        return Reading(*(round(1e3 * s, 5) for s in (statistics.median(medians), min(medians), max(medians))))

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def glance(launch: Launch, timer: Timer) -> float:
    """The seconds of a call, from a few of them: enough to tell schedules apart."""
    timer.batch(launch, 2)
    return statistics.median(timer.batch(launch, GLANCE))


def in_turn(launches: Mapping[str, Launch], timer: Timer) -> dict[str, Reading]:
    """Time all programs, one batch of each a round."""
    medians: dict[str, list[float]] = {name: [] for name in launches}
    for _ in range(ROUNDS):
        for name, launch in launches.items():
            medians[name].append(statistics.median(timer.batch(launch, CALLS)))
    return {name: Reading.of(found) for name, found in medians.items()}
