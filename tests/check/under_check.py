# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin, `-p tests.check.under_check`: every CPU launch is checked, in the orders of the seeds $CHECK_SEEDS.

What never comes to the simulator is left out. A line at the end says how many programs, launches and runs there were.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pytest

from tests.kernels import machines
from tilekit.config import Config
from tilekit.drivers import CompiledProgram
from tilekit.runtime.launch import LaunchStats
from tilekit.runtime.tensors import DeviceKind


@dataclass
class Count:
    """What was checked: programs by their keys, their launches, and the runs, one for each launch and seed."""

    programs: set[str] = field(default_factory=set)
    launches: int = 0
    runs: int = 0

    def __str__(self) -> str:
        return f"checked {len(self.programs)} programs in {self.launches} launches by {self.runs} runs"


@dataclass
class CheckedRunner:
    """Stands for the runner of a CPU launch: all seeds but the first run on copies of the arguments."""

    compiled: CompiledProgram
    config: Config
    simulator_seconds: float
    seeds: Sequence[int]
    count: Count

    @cached_property
    def checker(self) -> Any:
        return self.compiled.load_checked(self.config)

    @property
    def kernel(self) -> CheckedRunner:
        return self

    def launch(self, arguments: Sequence[Any], /, **_: object) -> LaunchStats:
        self.count.programs.add(self.compiled.entry.key)
        self.count.launches += 1
        for seed in self.seeds[1:]:
            self.count.runs += 1
            self.checker.launch(arguments, seed=seed, keep=False)
        self.count.runs += 1
        return self.checker.launch(arguments, seed=self.seeds[0])

    def interrupt(self) -> None:
        self.checker.interrupt()


@contextmanager
def every_launch_checked(seeds: Sequence[int]) -> Iterator[Count]:
    """Within the block, what is made ready for the CPU runs in check mode only, whoever launches it."""
    count = Count()
    load: Callable[..., Any] = CompiledProgram.load

    def load_checked(self: CompiledProgram, device: DeviceKind, config: Config, index: int = 0) -> Any:
        runner = load(self, device, config, index)
        if device is not DeviceKind.CPU:
            return runner
        return CheckedRunner(self, config, runner.simulator_seconds, seeds, count)

    CompiledProgram.load = load_checked
    try:
        yield count
    finally:
        CompiledProgram.load = load


_seeds = [int(seed) for seed in os.environ.get("CHECK_SEEDS", "0").split(",")]
_counts: list[Count] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop():
    with every_launch_checked(_seeds) as count:
        _counts.append(count)
        return (yield)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(str(_counts[0]) if _counts else "checked nothing")


def pytest_collection_modifyitems(items):
    elsewhere = (machines.evaluate, machines.on_gpu)
    items[:] = [item for item in items if not any(value in elsewhere for value in _parameters(item).values())]


def _parameters(item):
    callspec = getattr(item, "callspec", None)
    return {name: value for name, value in (callspec.params if callspec else {}).items() if callable(value)}
