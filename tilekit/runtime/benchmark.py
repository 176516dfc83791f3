# SPDX-License-Identifier: Apache-2.0
"""How long a call takes: the median of several, by CUDA events where it runs on a GPU, by the clock on the CPU."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilekit.runtime.tensors import CPU, Device, DeviceKind

_SMALLEST_FLUSH = 128 << 20  # bytes
_HEAD_START = 500e-6  # seconds that the GPU sleeps for each repetition, so that launches wait in its queue
_CLOCK_RATE = 1.5e9  # about: of a sleeping GPU's cycles, nobody needs the exact number


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds of every repetition, in order."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def best(self) -> float:
        return min(self.seconds)


def measure(
    run: Callable[[], object],
    *,
    device: Device | None = None,
    warmup: int = 1,
    repeat: int = 5,
    clear_l2_cache: bool = True,
) -> Timing:
    """Time `run`, after `warmup` calls that do not count; without a device, on torch's current GPU if there is one."""
    for _ in range(warmup):
        run()
    where = _present_device() if device is None else device
    match where.kind:
        case DeviceKind.CUDA:
            return _measure_cuda(run, where.index, repeat, clear_l2_cache)
        case DeviceKind.CPU | DeviceKind.META:
            return _measure_cpu(run, repeat)


def _present_device() -> Device:
    torch: Any = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return CPU
    return Device(DeviceKind.CUDA, torch.cuda.current_device())


def _measure_cpu(run: Callable[[], object], repeat: int) -> Timing:
    seconds: list[float] = []
    for _ in range(repeat):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return Timing(tuple(seconds))


def _measure_cuda(run: Callable[[], object], index: int, repeat: int, clear_l2_cache: bool) -> Timing:
    """Record events around every call; before each, write over the L2 cache, so that it begins cold."""
    import torch

    with torch.cuda.device(index):
        size = max(2 * torch.cuda.get_device_properties(index).L2_cache_size, _SMALLEST_FLUSH)
        slab = torch.empty(size if clear_l2_cache else 0, dtype=torch.int8, device="cuda")
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeat)]
        torch.cuda._sleep(int(_CLOCK_RATE * _HEAD_START * repeat))
        for begin, end in events:
            if clear_l2_cache:
                slab.zero_()
            begin.record()
            run()
            end.record()
        torch.cuda.synchronize()
        return Timing(tuple(begin.elapsed_time(end) * 1e-3 for begin, end in events))
