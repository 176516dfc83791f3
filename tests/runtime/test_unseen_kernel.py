# SPDX-License-Identifier: Apache-2.0
"""The first launches of an edited kernel on a GPU, with a child and a kernel that only count."""

from types import SimpleNamespace
from typing import Any

import pytest

from tilekit.runtime import gpu_child
from tilekit.runtime.launch import LaunchStats
from tilekit.runtime.unseen import UNSEEN_TIMEOUT_S, UnseenKernel


class Counting:
    def __init__(self) -> None:
        self.limits: list[float] = []
        self.direct = 0
        self.failure: Exception | None = None
        self.manifest = SimpleNamespace()

    def run(self, manifest: Any, cubin: bytes, arguments: Any, timeout_s: float) -> LaunchStats:
        self.limits.append(timeout_s)
        if self.failure is not None:
            raise self.failure
        return LaunchStats(0.5)

    def launch(self, arguments: Any) -> LaunchStats:
        self.direct += 1
        return LaunchStats(0.25)


@pytest.fixture
def counting(monkeypatch):
    there = Counting()
    monkeypatch.setattr(gpu_child, "child", lambda index: there)
    return there


@pytest.fixture
def unseen(counting):
    return UnseenKernel(counting, b"", 0)


def test_an_edited_kernel_runs_in_the_child_until_it_ended_well(counting, unseen):
    counting.failure = RuntimeError("out of bounds")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="out of bounds"):
            unseen.launch([])
    counting.failure = None
    assert (unseen.launch([]).seconds, counting.direct) == (0.5, 0)
    assert (unseen.launch([]).seconds, counting.direct) == (0.25, 1)
    assert len(counting.limits) == 3


def test_a_launch_in_the_child_has_a_limit(counting, unseen):
    unseen.launch([])
    assert counting.limits == [UNSEEN_TIMEOUT_S]
    assert 1 <= UNSEEN_TIMEOUT_S <= 60
