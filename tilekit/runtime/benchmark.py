# SPDX-License-Identifier: Apache-2.0
"""How long calls take: one batch of each in turn, round after round, so that all meet the same machine.

On a GPU each call stands between two events. Before it, memory is read that the L2 cache cannot hold, so that it begins
cold and nothing is left to be written back; and all calls of a batch lie in the queue before the first begins, so that
no time of the host is between two events. On the CPU the clock decides. A value is the median of the rounds' medians.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from tilekit.runtime.tensors import CPU, Device, DeviceKind

Launch: TypeAlias = Callable[[], object]

ROUNDS = 5
_BATCH_S = 0.05  # a batch is so long, if that is no more than these calls
_MOST_CALLS = 100
FLUSH_BYTES = 512 << 20  # what is read to empty an L2 cache: four times the largest of them, and more
_HEAD_START = 500e-6  # seconds that the GPU sleeps for each call, so that launches wait in its queue
_CLOCK_RATE = 1.5e9  # about: of a sleeping GPU's cycles, nobody needs the exact number


@dataclass(frozen=True, slots=True)
class Batch:
    """The seconds of each call; `queued` says that all waited in the queue, so that no time of the host is in them."""

    seconds: tuple[float, ...]
    queued: bool = True

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True, slots=True)
class Timing:
    """The rounds of one program."""

    rounds: tuple[Batch, ...]

    @property
    def median(self) -> float:
        """The median of the rounds' medians."""
        return statistics.median(self._medians)

    @property
    def low(self) -> float:
        """The least median of a round."""
        return min(self._medians)

    @property
    def high(self) -> float:
        """The greatest median of a round."""
        return max(self._medians)

    @property
    def best(self) -> float:
        """The shortest call."""
        return min(second for batch in self.rounds for second in batch.seconds)

    @property
    def calls(self) -> int:
        return sum(len(batch.seconds) for batch in self.rounds)

    @property
    def queued(self) -> bool:
        return all(batch.queued for batch in self.rounds)

    @property
    def _medians(self) -> list[float]:
        return [batch.median for batch in self.rounds]


class Timer(Protocol):
    """What knows how long calls take; a batch has at least `least` calls."""

    least: int

    def batch(self, launch: Launch, calls: int) -> Batch:
        """Time so many calls."""
        ...

    def wait(self) -> None:
        """Return when all is done that was launched; raise what went wrong in it."""
        ...

    def floor(self) -> float | None:
        """The seconds that a launch of nothing seems to take; None where there is no such thing."""
        ...


class ClockTimer:
    """The clock, for what runs on the CPU."""

    least = 1

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock

    def batch(self, launch: Launch, calls: int) -> Batch:
        seconds: list[float] = []
        for _ in range(calls):
            begin = self._clock()
            launch()
            seconds.append(self._clock() - begin)
        return Batch(tuple(seconds))

    def wait(self) -> None:
        """A call has ended when it returns."""

    def floor(self) -> float | None:
        return None


class CudaTimer:
    """Events of one GPU, on torch's current stream.

    `cold` empties the L2 cache before each call; `watch` is called in the middle of a batch, while the GPU is busy.
    """

    least = 7

    def __init__(self, index: int, *, cold: bool = True, watch: Callable[[], None] | None = None) -> None:
        self.index = index
        self._cold = cold
        self._watch = watch

    @cached_property
    def _torch(self) -> Any:
        import torch

        return torch

    @cached_property
    def _slab(self) -> tuple[Any, Any]:
        """Memory to read, and where its sum goes."""
        return self._torch.ones(FLUSH_BYTES // 4, device="cuda"), self._torch.empty((), device="cuda")

    def batch(self, launch: Launch, calls: int) -> Batch:
        torch = self._torch
        with torch.cuda.device(self.index):
            slab, total = self._slab if self._cold else (None, None)
            events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(calls)]
            torch.cuda._sleep(int(_CLOCK_RATE * _HEAD_START * calls))
            queued = True
            for begin, end in events:
                if slab is not None:
                    torch.sum(slab, dim=0, out=total)
                begin.record()
                launch()
                # if the GPU has come here before the launch was in its queue, it has waited for the host
                queued = queued and not begin.query()
                end.record()
            if self._watch is not None:
                events[calls // 2][0].synchronize()
                self._watch()
            torch.cuda.synchronize()
            return Batch(tuple(begin.elapsed_time(end) * 1e-3 for begin, end in events), queued)

    def wait(self) -> None:
        self._torch.cuda.synchronize(self.index)

    def floor(self) -> float | None:
        return self.batch(lambda: self._torch.cuda._sleep(0), 3 * self.least).median


def timer(device: Device, *, cold: bool = True, watch: Callable[[], None] | None = None) -> Timer:
    """What times calls that run there."""
    match device.kind:
        case DeviceKind.CUDA:
            return CudaTimer(device.index, cold=cold, watch=watch)
        case DeviceKind.CPU | DeviceKind.META:
            return ClockTimer()


def glance(launch: Launch, timer: Timer) -> float:
    """About how long a call takes, from a few of them."""
    return timer.batch(launch, timer.least).median


def calls_in_a_batch(seconds: float, timer: Timer) -> int:
    """How many calls a batch should have, if one takes so long."""
    return max(timer.least, min(_MOST_CALLS, int(_BATCH_S / seconds) if seconds > 0 else _MOST_CALLS))


def in_turn(
    launches: Mapping[str, Launch], timer: Timer, calls: Mapping[str, int], *, rounds: int = ROUNDS
) -> Iterator[tuple[str, Batch | Exception]]:
    """One batch of each program a round, as they come; a program that fails is left out from then on."""
    left = dict(launches)
    for _ in range(rounds):
        for name, launch in list(left.items()):
            try:
                found: Batch | Exception = timer.batch(launch, calls[name])
            except Exception as error:
                del left[name]
                found = error
            yield name, found


def measure(
    run: Launch,
    *,
    device: Device | None = None,
    warmup: int = 1,
    repeat: int = 5,
    clear_l2_cache: bool = True,
) -> Timing:
    """Time `run` alone, after `warmup` calls that do not count; without a device, on torch's current GPU, if any."""
    for _ in range(warmup):
        run()
    there = timer(_present_device() if device is None else device, cold=clear_l2_cache)
    return Timing((there.batch(run, repeat),))


def _present_device() -> Device:
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return CPU
    return Device(DeviceKind.CUDA, torch.cuda.current_device())
