# SPDX-License-Identifier: Apache-2.0
"""A specialization of a script: its schedules as programs, and the kernels compiled from them."""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tilekit.cache.programs import key_of
from tilekit.cache.scripts import ScriptFolder, snake_case
from tilekit.config import Config
from tilekit.diag import errors
from tilekit.diag.errors import TilekitError
from tilekit.diag.sources import Sources
from tilekit.jit import compiling, observer, session, summary
from tilekit.jit.arguments import JitKey
from tilekit.jit.kernel import Kernel
from tilekit.jit.machine import Machine
from tilekit.jit.observer import Identity
from tilekit.jit.specialized import FailedSchedule, Restart, Specialization, Specialized, of_all
from tilekit.lang.params import CallParameters
from tilekit.runtime import device
from tilekit.runtime.device import Gpu

if TYPE_CHECKING:
    from tilekit.ir.prog import Program
    from tilekit.jit.tuning.schedules import Schedules
    from tilekit.jit.tuning.space import Space
    from tilekit.jit.tuning.table import Entry, Key

# a kernel that somebody traces may run an edit, and is none for anybody else: the number is the tracer's, or 0
Kept: TypeAlias = tuple[Machine, int]


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
        # by the number of their schedule, with the key of what they depended on when they were made
        self._specialized: dict[int, tuple[str | None, Specialized | FailedSchedule]] = {}
        # by where they run and who traces, then by the number of their schedule, in the order in which they were built
        self._kernels: dict[Kept, dict[int, Kernel]] = {}
        self._firsts: dict[Kept, Kernel] = {}
        self._spaces: dict[Machine, Space] = {}
        self._tuned: dict[Machine, dict[Key, Entry]] = {}
        # the schedule that calls take, until something else is found
        self.chosen: dict[tuple[Machine, Key], int | None] = {}
        self._lock = threading.RLock()
        # when somebody last looked whether the programs are what the script gives
        self._looked = session.moment()
        self._specialization = Specialization(script_cls, params, self.schedules, key, sources, self.instance_name)

    @property
    def instance_name(self) -> str:
        """The script's name, its constants and the divisors it may rely on."""
        parts = [self.script_cls.__name__, *(str(value) for _, value in self.key.constants)]
        return "-".join([*parts, *(f"d{divisor}" for divisor in self.key.divisors)])

    @property
    def kernels(self) -> list[Kernel]:
        return [kernel for kept in self._kernels.values() for kernel in kept.values()]

    @property
    def failed_scheduling(self) -> list[FailedSchedule]:
        """The schedules that are known to give no program."""
        made = (found for _, (_, found) in sorted(self._specialized.items()))
        return [found for found in made if isinstance(found, FailedSchedule)]

    @property
    def transpiled_programs(self) -> list[Program]:
        """The program of every schedule that has one, in the order of `transpiled_schedules`."""
        return [found.program for found in self._all() if isinstance(found, Specialized)]

    @property
    def transpiled_schedules(self) -> list[Mapping[str, Any]]:
        """The schedules that give a program."""
        pairs = zip(self.schedules, self._all(), strict=True)
        return [schedule for schedule, found in pairs if isinstance(found, Specialized)]

    def _all(self) -> list[Specialized | FailedSchedule]:
        return [self.specialized(number) for number in range(len(self.schedules))]

    def restart(self, config: Config) -> Restart:
        """What the programs depend on, as it is now, and those of them that are in the cache."""
        return self._specialization.look(config)

    def is_outdated(self, config: Config) -> bool:
        """Whether the script gives other programs now; it looks once in each cell, and for each chosen target."""
        if self._looked == session.moment():
            return False
        self._looked = session.moment()
        made, key = list(self._specialized.values()), self.restart(config).key
        return any(of != key for of, _ in made) or (bool(made) and key is None and not self._runs_what_is_written())

    def _runs_what_is_written(self) -> bool:
        """Of a script that is not tracked: whether what was launched is what it gives now; False if nothing was."""
        launched = {
            number: kernel.specialized.text
            for kept in list(self._kernels.values())
            for number, kernel in list(kept.items())
            if kernel.launches
        }
        written = {number: self.transpile(number) for number in launched}
        return bool(launched) and all(
            isinstance(found, Specialized) and found.text == launched[number] for number, found in written.items()
        )

    def specialized(self, number: int, restart: Restart | None = None) -> Specialized | FailedSchedule:
        """The program of one schedule, or why it has none: found in the cache of `restart`, or transpiled, once.

        What was made while the script depended on something else is made again.
        """
        with self._lock:
            key, found = self._specialized.get(number, (None, None))
            if found is not None and (restart is None or restart.key == key):
                return found
            key = None if restart is None else restart.key
            found = None if restart is None else restart.load(number, lambda: self.transpile(number))
            if found is None:
                found = self.transpile(number)
                if restart is not None and self.restart(restart.config).key == key:
                    restart.save(number, found)
                else:
                    key = None  # nobody asked, or it changed while it was read
            self._specialized[number] = key, found
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
            return Specialized.of(made.program, lambda: self.transpile(number))
        except TilekitError as error:
            return FailedSchedule(self.schedules[number], error)
        except RecursionError:  # its text may nest deeper than what it was made of
            return FailedSchedule(self.schedules[number], errors.too_deep().with_sources(self.sources))

    def kernel(self, machine: Machine, number: int | None = None, restart: Restart | None = None) -> Kernel:
        """The kernel of one schedule for this machine; without a number, of the first schedule that compiles."""
        kept = self._kept(machine)
        with self._lock:
            if number is None:
                if kept not in self._firsts:
                    self._firsts[kept] = self._build_first(machine, restart or self.restart(machine.config))
                return self._firsts[kept]
            found = self.built(number, machine)
            return found or self.build(number, machine, restart or self.restart(machine.config))

    def built(self, number: int, machine: Machine) -> Kernel | None:
        """The kernel of one schedule, if it was compiled."""
        return self._kernels.get(self._kept(machine), {}).get(number)

    def built_for(self, machine: Machine) -> list[Kernel]:
        """The kernels for this machine, for who traces now."""
        return list(self._kernels.get(self._kept(machine), {}).values())

    def _kept(self, machine: Machine) -> Kept:
        """Where the kernels for this machine are kept, for who traces now."""
        return machine, observer.tracing(self.script_cls.__name__)

    def _build_first(self, machine: Machine, restart: Restart) -> Kernel:
        first: TilekitError | None = None
        for number in range(len(self.schedules)):
            try:
                return self.build(number, machine, restart)
            except errors.ToolchainError:
                raise  # a missing or refusing compiler is not the schedule's fault
            except TilekitError as error:
                first = first or error
        assert first is not None
        raise of_all(first, len(self.schedules))

    def build(self, number: int, machine: Machine, restart: Restart) -> Kernel:
        """Compile one schedule, or find it in the cache; its own error if it gives no kernel."""
        schedule, kept = self.schedules[number], self._kept(machine)
        for watcher in observer.observers():
            watcher.compiling(self.script_cls.__name__, "transpile")
        found = self.specialized(number, restart)
        if not isinstance(found, Specialized):
            raise found.error
        kernel = compiling.build(self._identity(schedule, machine, restart), found, schedule, machine, self.sources)
        kernel.table = lambda: self.table(machine)
        self._record(kernel, number, restart)
        kernel.record = functools.partial(self._record_again, kernel, number, restart)
        with self._lock:
            for over in [kept for kept in self._kernels if observer.is_over(kept[1])]:
                del self._kernels[over]
                self._firsts.pop(over, None)
            return self._kernels.setdefault(kept, {}).setdefault(number, kernel)

    # ----------------------------------------------------------------------------------------------------------- tuning

    def space(self, machine: Machine) -> Space:
        """The candidates on this machine, and what is known of them; nothing is compiled for it."""
        with self._lock:
            if machine not in self._spaces:
                # who has one schedule needs nothing of this
                self._spaces[machine] = importlib.import_module("tilekit.jit.tuning.space").Space(self, machine)
            return self._spaces[machine]

    @property
    def spaces(self) -> list[Space]:
        """Those that somebody has asked for."""
        return list(self._spaces.values())

    def entries(self, machine: Machine) -> dict[Key, Entry]:
        """What tuning has found on this machine in this process."""
        return self._tuned.setdefault(machine, {})

    @property
    def machines(self) -> list[Machine]:
        """Those for which somebody has asked what tuning has found."""
        return list(self._tuned)

    def strided(self, config: Config) -> frozenset[str]:
        """The pointers that every schedule views with strides of the user's own."""
        restart = self.restart(config)
        found = (self.specialized(number, restart) for number in range(len(self.schedules)))
        views = [made.strided for made in found if isinstance(made, Specialized)]
        return frozenset.intersection(*views) if views else frozenset()

    def table(self, machine: Machine) -> Schedules:
        """Every candidate on this machine, for people."""
        return importlib.import_module("tilekit.jit.tuning.schedules").of_space(self.space(machine))

    def folder(self, machine: Machine, restart: Restart) -> ScriptFolder:
        """Where people find what was made of this specialization for a machine."""
        parts = {
            "specialization": restart.key or self.instance_name,
            "target": machine.target.name,
            "device": machine.device.kind.value,
            **({} if machine.pipeline is None else {"pipeline": machine.pipeline.key}),
        }
        digest = key_of(parts)
        script = snake_case(self.script_cls.__name__)
        return ScriptFolder(machine.config.cache_dir, script, self.instance_name.partition("-")[2], digest)

    def _record(self, kernel: Kernel, number: int, restart: Restart) -> None:
        """Leave in `scripts/` what a person may want to know."""
        if kernel.generated is not None:
            self.describe(kernel.machine, restart, number, kernel.generated.entry.key)

    def describe(self, machine: Machine, restart: Restart, number: int, key: str) -> None:
        """Leave in `scripts/` what a person may want to know, and a link from a schedule to its program."""
        folder = self.folder(machine, restart)
        folder.link(number, key)
        if not folder.is_described:
            listed = list(map(summary.named, self.schedules))
            folder.describe(self._meta(machine, restart), listed, _text_of(self.script_cls))

    def _record_again(self, kernel: Kernel, number: int, restart: Restart) -> None:
        self._record(kernel, number, restart)
        if self._specialized.get(number) == (restart.key, kernel.specialized):
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
            **({} if machine.pipeline is None else {"custom passes": str(machine.pipeline)}),
            "space": {", ".join(names): [repr(choice) for choice in choices] for names, choices in space.items()},
            "specialization": restart.key,
            "transpiled in every process because": restart.untracked,
        }

    def _identity(self, schedule: Mapping[str, Any], machine: Machine, restart: Restart) -> Identity:
        specialization = f"{self.instance_name}({summary.named(schedule)})"
        if machine.pipeline is not None:  # an edit of a kernel without its passes is none of this one
            specialization += f" with {machine.pipeline}"
        where = machine.target.name, machine.device.kind.value
        return Identity(self.script_cls.__name__, specialization, *where, restart.enclosed)

    def require_program(self, config: Config | None = None) -> None:
        """Raise what is wrong if no schedule gives a program; nothing is compiled."""
        restart = None if config is None else self.restart(config)
        if not any(isinstance(self.specialized(i, restart), Specialized) for i in range(len(self.schedules))):
            raise of_all(self.failed_scheduling[0].error, len(self.failed_scheduling))

    def first_program(self) -> Specialized:
        """The program of the first schedule that gives one; what is wrong if none does."""
        self.require_program()
        found = map(self.specialized, range(len(self.schedules)))
        return next(each for each in found if isinstance(each, Specialized))

    def __repr__(self) -> str:
        return f"<JitInstance {self.instance_name}: {len(self.schedules)} schedules, {len(self.kernels)} compiled>"


def _gpus() -> Sequence[Gpu]:
    return device.survey().gpus


def _text_of(script: type) -> str:
    """The source of a class, as far as it can be had."""
    try:
        return inspect.getsource(script)
    except (OSError, TypeError):
        return ""
