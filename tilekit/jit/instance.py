# SPDX-License-Identifier: Apache-2.0
"""A specialization of a script: its schedules as programs, and the kernels compiled from them."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilekit.config import Config
from tilekit.diag import errors
from tilekit.diag.errors import TilekitError
from tilekit.diag.sources import Sources
from tilekit.jit import observer
from tilekit.jit.arguments import JitKey
from tilekit.jit.kernel import Kernel
from tilekit.jit.observer import Identity
from tilekit.lang.params import CallParameters
from tilekit.runtime import device
from tilekit.runtime.device import Gpu
from tilekit.runtime.tensors import Device, DeviceKind
from tilekit.target import Target

if TYPE_CHECKING:
    from tilekit.ir.prog import Program


@dataclass(frozen=True)
class Machine:
    """What a kernel is compiled for: where it runs, with which instruction set, under which options."""

    device: Device
    target: Target
    config: Config


@dataclass(frozen=True)
class FailedSchedule:
    """A schedule that gives no program, and why."""

    schedule: Mapping[str, Any]
    error: TilekitError


class JitInstance:
    """One jit key of one script."""

    def __init__(
        self,
        script_cls: type,
        params: CallParameters,
        schedules: Sequence[Mapping[str, Any]],
        key: JitKey,
        sources: Sources,
    ) -> None:
        self.script_cls = script_cls
        self.params = params
        self.schedules = tuple(schedules)
        self.key = key
        self.sources = sources
        self.failed_scheduling: list[FailedSchedule] = []
        self._programs: dict[int, Program | None] = {}
        self._kernels: dict[tuple[DeviceKind, int, Target, Config], Kernel] = {}
        self._lock = threading.RLock()

    @property
    def instance_name(self) -> str:
        """The script's name, its constants and the divisors it may rely on."""
        parts = [self.script_cls.__name__, *(str(value) for _, value in self.key.constants)]
        return "-".join([*parts, *(f"d{divisor}" for divisor in self.key.divisors)])

    @property
    def kernels(self) -> list[Kernel]:
        return list(self._kernels.values())

    @property
    def transpiled_programs(self) -> list[Program]:
        """The program of every schedule that has one, in the order of `transpiled_schedules`."""
        programs = [self._program(i) for i in range(len(self.schedules))]
        return [program for program in programs if program is not None]

    @property
    def transpiled_schedules(self) -> list[Mapping[str, Any]]:
        """The schedules that give a program."""
        return [schedule for i, schedule in enumerate(self.schedules) if self._program(i) is not None]

    def programs(self) -> list[Program]:
        return self.transpiled_programs

    def _program(self, index: int) -> Program | None:
        """The program of one schedule, transpiled once; None if the schedule does not work."""
        with self._lock:
            if index not in self._programs:
                # the compiler is loaded by the first kernel that needs it
                transpiler = importlib.import_module("tilekit.lang.transpiler")
                try:
                    made = transpiler.transpile(
                        self.script_cls,
                        self.schedules[index],
                        self.params,
                        self.key.values(self.params),
                        self.key.divisibility(self.params),
                        self.sources,
                        _gpus,
                    )
                    self._programs[index] = made.program
                except TilekitError as error:
                    self.failed_scheduling.append(FailedSchedule(self.schedules[index], error))
                    self._programs[index] = None
            return self._programs[index]

    def kernel(self, machine: Machine) -> Kernel:
        """The kernel for this machine: of the first schedule that compiles."""
        key = (machine.device.kind, machine.device.index, machine.target, machine.config)
        with self._lock:
            if key not in self._kernels:
                self._kernels[key] = self._build(machine)
            return self._kernels[key]

    def _build(self, machine: Machine) -> Kernel:
        first: TilekitError | None = None
        failures = 0
        for index, schedule in enumerate(self.schedules):
            for watcher in observer.observers():
                watcher.compiling(self.script_cls.__name__, "transpile")
            program = self._program(index)
            try:
                if program is not None:
                    return Kernel.build(self._identity(schedule, machine), program, schedule, machine, self.sources)
                problem = next(f.error for f in self.failed_scheduling if f.schedule is schedule)
            except errors.ToolchainError:
                raise  # a missing or refusing compiler is not the schedule's fault
            except TilekitError as error:
                problem = error
            failures += 1
            first = first or problem
        assert first is not None
        raise _of_all(first, failures)

    def _identity(self, schedule: Mapping[str, Any], machine: Machine) -> Identity:
        chosen = ", ".join(f"{name}={value}" for name, value in schedule.items())
        specialization = f"{self.instance_name}({chosen})"
        return Identity(self.script_cls.__name__, specialization, machine.target.name, machine.device.kind.value)

    def require_program(self) -> None:
        """Raise what is wrong if no schedule gives a program; nothing is compiled."""
        if not any(self._program(i) is not None for i in range(len(self.schedules))):
            raise _of_all(self.failed_scheduling[0].error, len(self.failed_scheduling))

    def __repr__(self) -> str:
        return f"<JitInstance {self.instance_name}: {len(self.schedules)} schedules, {len(self._kernels)} compiled>"


def _gpus() -> Sequence[Gpu]:
    return device.survey().gpus


def _of_all(first: TilekitError, failures: int) -> TilekitError:
    """The error of the first schedule, for all of them."""
    note = f"all {failures} schedules fail; this is the error of the first"
    is_noted = any(text == note for text, _ in first.diagnostic.notes)
    return first if failures == 1 or is_noted else first.noted(note)
