# SPDX-License-Identifier: Apache-2.0
import time

import pytest
import torch

from tilekit.runtime.benchmark import Timing, measure
from tilekit.runtime.tensors import CPU, Device, DeviceKind


def test_every_repetition_is_timed_and_no_warmup() -> None:
    calls: list[float] = []
    timing = measure(lambda: calls.append(time.perf_counter()), device=CPU, warmup=3, repeat=4)
    assert len(calls) == 7
    assert len(timing.seconds) == 4


def test_a_call_on_the_cpu_is_timed_by_the_clock() -> None:
    timing = measure(lambda: time.sleep(0.01), device=CPU, repeat=3)
    assert 0.01 <= timing.best <= timing.median


def test_the_median_does_not_mind_an_outlier() -> None:
    timing = Timing((1.0, 900.0, 2.0))
    assert (timing.median, timing.best) == (2.0, 1.0)


def test_without_a_gpu_the_cpu_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert measure(lambda: time.sleep(0.001), repeat=1).best >= 0.001


@pytest.mark.gpu
def test_a_copy_on_the_gpu_takes_as_long_as_its_bandwidth_allows() -> None:
    x = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    y = torch.empty_like(x)
    seconds = measure(lambda: y.copy_(x), device=Device(DeviceKind.CUDA, 0), warmup=3, repeat=9).median
    assert 2 * x.nbytes / 20e12 < seconds < 2 * x.nbytes / 0.1e12
