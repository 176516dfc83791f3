# SPDX-License-Identifier: Apache-2.0
"""A specialization of a script: its schedules as programs, and the kernels compiled from them."""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilekit.cache.programs import key_of
from tilekit.cache.scripts import ScriptFolder, snake_case
from tilekit.config import Config
from tilekit.diag import errors
from tilekit.diag.errors import TilekitError
from tilekit.diag.sources import Sources
from tilekit.jit import observer
from tilekit.jit.arguments import JitKey
from tilekit.jit.kernel import Kernel
from tilekit.jit.observer import Identity
from tilekit.jit.specialized import FailedSchedule, Restart, Specialization, Specialized
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
        self._specialized: dict[int, Specialized | FailedSchedule] = {}
        self._kernels: dict[tuple[DeviceKind, int, Target, Config], Kernel] = {}
        self._lock = threading.RLock()
        self._specialization = Specialization(script_cls, params, self.schedules, key, sources, self.instance_name)

    @property
    def instance_name(self) -> str:
        """The script's name, its constants and the divisors it may rely on."""
        parts = [self.script_cls.__name__, *(str(value) for _, value in self.key.constants)]
        return "-".join([*parts, *(f"d{divisor}" for divisor in self.key.divisors)])

    @property
    def kernels(self) -> list[Kernel]:
        return list(self._kernels.values())

    @property
    def failed_scheduling(self) -> list[FailedSchedule]:
        """The schedules that are known to give no program."""
        return [found for _, found in sorted(self._specialized.items()) if isinstance(found, FailedSchedule)]

    @property
    def transpiled_programs(self) -> list[Program]:
        """The program of every schedule that has one, in the order of `transpiled_schedules`."""
        return [found.program for found in self._all() if isinstance(found, Specialized)]

    @property
    def transpiled_schedules(self) -> list[Mapping[str, Any]]:
        """The schedules that give a program."""
        pairs = zip(self.schedules, self._all(), strict=True)
        return [schedule for schedule, found in pairs if isinstance(found, Specialized)]

    def programs(self) -> list[Program]:
        return self.transpiled_programs

    def _all(self) -> list[Specialized | FailedSchedule]:
        return [self.specialized(number) for number in range(len(self.schedules))]

    def restart(self, config: Config) -> Restart:
        """What the programs depend on, as it is now, and those of them that are in the cache."""
        return self._specialization.look(config)

    def specialized(self, number: int, restart: Restart | None = None) -> Specialized | FailedSchedule:
        """The program of one schedule, or why it has none: found in the cache of `restart`, or transpiled, once."""
        with self._lock:
            found = self._specialized.get(number)
            if found is None and restart is not None:
                found = restart.load(number, lambda: self.transpile(number))
            if found is None:
                found = self.transpile(number)
                if restart is not None:
                    restart.save(number, found)
            self._specialized[number] = found
            return found

    def transpile(self, number: int) -> Specialized | FailedSchedule:
        """The program of one schedule, from the script as it is now; nothing remembers it."""
        # the compiler is loaded by the first kernel that needs it
        transpiler = importlib.import_module("tilekit.lang.transpiler")
        try:
            made = transpiler.transpile(
                self.script_cls,
                self.schedules[number],
                self.params,
                self.key.values(self.params),
                self.key.divisibility(self.params),
                self.sources,
                _gpus,
            )
        except TilekitError as error:
            return FailedSchedule(self.schedules[number], error)
        return Specialized.of(made.program)

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
        restart = self.restart(machine.config)
        for number, schedule in enumerate(self.schedules):
            for watcher in observer.observers():
                watcher.compiling(self.script_cls.__name__, "transpile")
            found = self.specialized(number, restart)
            try:
                if isinstance(found, Specialized):
                    kernel = Kernel.build(self._identity(schedule, machine), found, schedule, machine, self.sources)
                    self._record(kernel, number, restart)
                    kernel.record = functools.partial(self._record_again, kernel, number, restart)
                    return kernel
                problem = found.error
            except errors.ToolchainError:
                raise  # a missing or refusing compiler is not the schedule's fault
            except TilekitError as error:
                problem = error
            failures += 1
            first = first or problem
        assert first is not None
        raise _of_all(first, failures)

    def folder(self, machine: Machine, restart: Restart) -> ScriptFolder:
        """Where people find what was made of this specialization for a machine."""
        options = (restart.key or self.instance_name, machine.target.name, machine.device.kind.value)
        digest = key_of(dict(zip(("specialization", "target", "device"), options, strict=True)))
        script = snake_case(self.script_cls.__name__)
        return ScriptFolder(machine.config.cache_dir, script, self.instance_name.partition("-")[2], digest)

    def _record(self, kernel: Kernel, number: int, restart: Restart) -> None:
        """Leave in `scripts/` what a person may want to know."""
        if kernel.compiled is None:
            return
        folder = self.folder(kernel.machine, restart)
        folder.link(number, kernel.compiled.entry.key)
        if not folder.is_described:
            listed = [_shown(schedule) for schedule in self.schedules]
            folder.describe(self._meta(kernel.machine, restart), listed, _text_of(self.script_cls))

    def _record_again(self, kernel: Kernel, number: int, restart: Restart) -> None:
        self._record(kernel, number, restart)
        restart.save(number, kernel.specialized)

    def _meta(self, machine: Machine, restart: Restart) -> dict[str, Any]:
        names, types = self.params.param_names, self.params.param_types
        space: Mapping[tuple[str, ...], tuple[Any, ...]] = getattr(self.script_cls, "_autotune_space", {})
        return {
            "script": self.script_cls.__name__,
            "parameters": {name: str(kind) for name, kind in zip(names, types, strict=True)},
            "constants": {name: repr(value) for name, value in self.key.values(self.params).items()},
            "divisibility": self.key.divisibility(self.params),
            "target": machine.target.name,
            "device": machine.device.kind.value,
            "space": {", ".join(names): [repr(choice) for choice in choices] for names, choices in space.items()},
            "specialization": restart.key,
            "transpiled in every process because": restart.untracked,
        }

    def _identity(self, schedule: Mapping[str, Any], machine: Machine) -> Identity:
        specialization = f"{self.instance_name}({_shown(schedule)})"
        return Identity(self.script_cls.__name__, specialization, machine.target.name, machine.device.kind.value)

    def require_program(self, config: Config | None = None) -> None:
        """Raise what is wrong if no schedule gives a program; nothing is compiled."""
        restart = None if config is None else self.restart(config)
        if not any(isinstance(self.specialized(i, restart), Specialized) for i in range(len(self.schedules))):
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


def _shown(schedule: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in schedule.items())


def _text_of(script: type) -> str:
    """The source of a class, as far as it can be had."""
    try:
        return inspect.getsource(script)
    except (OSError, TypeError):
        return ""
