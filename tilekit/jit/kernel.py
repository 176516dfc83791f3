# SPDX-License-Identifier: Apache-2.0
"""A compiled kernel: everything that a person can look at hangs on it."""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tilekit.diag.sources import Sources
from tilekit.jit import observer

if TYPE_CHECKING:
    from tilekit.drivers import CompiledProgram
    from tilekit.ir.prog import Program
    from tilekit.jit.instance import Machine
    from tilekit.transforms.recorder import Recorder

_numbers = itertools.count()


@dataclass(frozen=True)
class LayoutRow:
    """The layout of one tile, and who chose it."""

    tensor: str
    type: str
    layout: str
    chosen_by: str
    why: str


@dataclass
class Kernel:
    """One schedule of one specialization on one machine."""

    script: str
    program: Program
    schedule: Mapping[str, Any]
    machine: Machine
    compiled: CompiledProgram
    sources: Sources
    compile_seconds: float
    number: int = field(default_factory=lambda: next(_numbers))
    run_seconds: float | None = None

    @staticmethod
    def build(script: str, program: Program, schedule: Mapping[str, Any], machine: Machine, sources: Sources) -> Kernel:
        """Compile, or find in the cache."""
        # the compiler is loaded by the first kernel that needs it
        drivers = importlib.import_module("tilekit.drivers")
        start = time.perf_counter()
        watchers = observer.observers()

        def stage(name: str) -> None:
            for watcher in watchers:
                watcher.compiling(script, name)

        compiled = drivers.build_program(
            program, machine.target, machine.device.kind, machine.config, on_stage=stage, sources=sources
        )
        kernel = Kernel(script, program, schedule, machine, compiled, sources, time.perf_counter() - start)
        for watcher in watchers:
            watcher.compiled(kernel)
        return kernel

    def launch(self, args: Sequence[Any]) -> None:
        """Run it on arguments that are already checked."""
        stats = self.compiled.launch(args, self.machine.device, self.machine.config)
        self.run_seconds = stats.seconds
        for watcher in observer.observers():
            watcher.launched(self)

    @property
    def source(self) -> str:
        """The generated CUDA C."""
        return self.compiled.source

    @property
    def cached(self) -> bool:
        """Whether it came from the cache."""
        return self.compiled.cached

    @property
    def strided(self) -> Mapping[str, bool]:
        """Which pointers are viewed with strides of the user's own."""
        return self.compiled.strided

    @cached_property
    def trace(self) -> Recorder:
        """Every pass with the program before and after; of a cached kernel, compiled once more to look at."""
        if self.compiled.recorder is not None:
            return self.compiled.recorder
        drivers = importlib.import_module("tilekit.drivers")
        return drivers.record(self.program, self.machine.target, self.machine.config)

    @property
    def layouts(self) -> list[LayoutRow]:
        """The layout of every tile, who chose it and why."""
        rows = self.trace.layout_rows()
        return [LayoutRow(*row) for row in rows]

    @property
    def changed_passes(self) -> list[str]:
        """The passes that changed the program."""
        return [step.name for step in self.trace.steps if step.changed]

    def __repr__(self) -> str:
        where = self.compiled.where(self.machine.device)
        chosen = ", ".join(f"{key}={value}" for key, value in self.schedule.items())
        return f"{self.script}({chosen}) for {self.machine.target.name} on {where}"
