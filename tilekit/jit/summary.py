# SPDX-License-Identifier: Apache-2.0
"""A kernel in a few words: what it is, where it runs, and what came of it so far."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilekit.events import CLEAN, PATCHED
from tilekit.jit import durations
from tilekit.runtime import device
from tilekit.runtime.tensors import DeviceKind

if TYPE_CHECKING:
    from tilekit.jit.kernel import Kernel


def named(values: Mapping[str, Any]) -> str:
    """A schedule, or whatever has names, as in a call."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


def where(kernel: Kernel) -> str:
    """The device that a kernel runs on."""
    if kernel.machine.device.kind is DeviceKind.CUDA:
        gpus, index = device.survey().gpus, kernel.machine.device.index
        return f"{gpus[index].name} (cuda:{index})" if index < len(gpus) else "no GPU: compiled only"
    return "CPU simulator" if kernel.compiled is not None else "NumPy evaluator, for want of a C++ compiler"


def facts(kernel: Kernel) -> list[str]:
    """Kernel, edit, target, device, passes, registers, shared memory, spills, compile and run time, what checks say."""
    parts = [kernel.name]
    if kernel.patched:
        parts.append(PATCHED if kernel.edit_state == PATCHED else f"{PATCHED} ({kernel.edit_state})")
    elif kernel.edit_state != CLEAN:
        parts.append(f"edit {kernel.edit_state}")
    parts += [kernel.machine.target.name, kernel.where]
    changed = len(kernel.changed_passes)
    parts.append(f"{changed} {'pass' if changed == 1 else 'passes'} changed it")
    if kernel.machine.pipeline is not None:
        parts.append(f"custom passes: {kernel.machine.pipeline}")
    if kernel.compiled is not None:
        found = kernel.compiled.facts
        if found.registers is not None:
            parts.append(f"{found.registers} registers, {found.spill_bytes} bytes spilled")
        parts.append(f"{kernel.compiled.manifest.shared_bytes} bytes shared")
    parts.append("cached" if kernel.cached else f"compiled in {durations.measured(kernel.compile_seconds)}")
    if kernel.simulator_seconds:
        parts.append(f"built the simulator in {durations.measured(kernel.simulator_seconds)}")
    if kernel.last_run is not None and kernel.last_run.seconds is not None:
        parts.append(f"ran in {durations.measured(kernel.last_run.seconds)}")
    if kernel.report is not None:
        parts.append(f"{kernel.report.kind.replace('_', ' ')} found")
    elif kernel.last_run is not None and kernel.last_run.check is not None:
        parts.append(str(kernel.last_run.check))
    elif kernel.sample:
        parts.append(kernel.sample)
    return parts
