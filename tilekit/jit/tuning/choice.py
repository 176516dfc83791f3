# SPDX-License-Identifier: Apache-2.0
"""Which schedule a call takes, by what tuning has found; a first call needs this, and no more of this package."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilekit.jit.tuning import table
from tilekit.jit.tuning.table import HoldsFor, Key, Table, Tuned
from tilekit.runtime.tensors import DeviceKind

if TYPE_CHECKING:
    from tilekit.jit.instance import JitInstance
    from tilekit.jit.kernel import Kernel
    from tilekit.jit.machine import Machine
    from tilekit.jit.specialized import Restart


def kernel_for(
    instance: JitInstance, machine: Machine, key: Key, loaded: Tuned, arguments: Sequence[Any] | None
) -> Kernel:
    """The kernel for a call with this tuning key.

    A call on a GPU with a new one waits for its tuning on these arguments, if there are some. On the CPU that would
    take longer than what is gained.
    """
    place = (machine, key)
    if place in instance.chosen:
        return instance.kernel(machine, instance.chosen[place])
    restart = instance.restart(machine.config)
    number = _choose(instance, machine, restart, key, loaded, arguments)
    kernel = instance.kernel(machine, number, restart)
    if arguments is not None or number is not None:
        instance.chosen[place] = number
    return kernel


def _choose(
    instance: JitInstance,
    machine: Machine,
    restart: Restart,
    key: Key,
    loaded: Tuned,
    arguments: Sequence[Any] | None,
) -> int | None:
    """The number of a schedule; None for the first that compiles."""
    here = table.holds_for(machine)
    number = _known(instance, machine, restart, key, loaded, here)
    if number is not None or arguments is None:
        return number
    if machine.device.kind is not DeviceKind.CUDA or not machine.config.autotune:
        return None
    # the tuner is loaded by the first call that needs it
    session = importlib.import_module("tilekit.jit.tuning.session")
    space = instance.space(machine)
    with space.tuning:
        number = _known(instance, machine, restart, key, loaded, here)  # of a thread that was faster
        return session.tune_for_call(space, key, arguments) if number is None else number


def _known(
    instance: JitInstance, machine: Machine, restart: Restart, key: Key, loaded: Tuned, here: HoldsFor
) -> int | None:
    """The schedule for a tuning key as far as anybody knows: this process, a file that was loaded, the cache."""
    entry = instance.entries(machine).get(key) or loaded.find(instance.instance_name, here, key)
    entry = entry or table_of(instance, machine, restart, here).find(key)
    return None if entry is None else table.number_of(entry.schedule, instance.schedules)


def table_of(instance: JitInstance, machine: Machine, restart: Restart, here: HoldsFor) -> Table:
    """The table in the cache, and what this process has found meanwhile."""
    # where nobody can tell whether the script is the same, what another process found may be of another one
    kept = None if restart.untracked else table.read(instance.folder(machine, restart), here)
    kept = kept or Table(instance.instance_name, here)
    for entry in instance.entries(machine).values():
        kept = kept.with_entry(entry)
    return kept


def tables_of(instances: Sequence[JitInstance]) -> list[Table]:
    """What is known of these on every machine that they were asked for."""
    return [
        table_of(instance, machine, instance.restart(machine.config), table.holds_for(machine))
        for instance in instances
        for machine in instance.machines
    ]
