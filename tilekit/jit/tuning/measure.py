# SPDX-License-Identifier: Apache-2.0
"""How a candidate does on the arguments of a call: timed on a GPU, estimated on the CPU. The arguments never change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tilekit.diag import errors
from tilekit.diag.errors import ArgumentError, KernelError, LaunchError, TilekitError
from tilekit.jit import held
from tilekit.jit.tuning import elsewhere
from tilekit.jit.tuning.elsewhere import Trial
from tilekit.jit.tuning.estimate import estimate
from tilekit.jit.tuning.space import Candidate, Measurement, Space
from tilekit.runtime import device, gpu_child
from tilekit.runtime.compiled import CUBIN, CpuRunner
from tilekit.runtime.tensors import DeviceKind

# for one run of a candidate on a GPU, where nobody may be there to interrupt it
RUN_TIMEOUT_S = 10.0

# takes a candidate that compiles, and the seconds of the best one so far
Measure: TypeAlias = Callable[[Candidate, "float | None"], Measurement]


def measure_on(space: Space, arguments: Sequence[Any]) -> Measure:
    """How candidates are measured on the space's machine."""
    if space.machine.device.kind is DeviceKind.CUDA:
        return lambda candidate, leader: _time(space, candidate, arguments, leader)
    return lambda candidate, _: _estimate(space, candidate, arguments)


def trial_for(space: Space, arguments: Sequence[Any]) -> Trial | None:
    """How an executor's processes may time candidates; on the CPU they only compile."""
    if space.machine.device.kind is not DeviceKind.CUDA:
        return None
    config = space.machine.config
    return elsewhere.trial_of(arguments, config.bench_repeat, config.bench_warmup, RUN_TIMEOUT_S)


def measured_elsewhere(space: Space, candidate: Candidate) -> Measurement | None:
    """What an executor's process has found, if its GPU is of our model."""
    ran = candidate.ran
    if ran is None or ran.gpu != device.survey().gpus[space.machine.device.index].model:
        return None
    return Measurement(() if ran.times is None else ran.times.seconds, error=ran.error)


def _time(space: Space, candidate: Candidate, arguments: Sequence[Any], leader: float | None) -> Measurement:
    """Time it in the GPU's child process, which dies in our stead."""
    machine, program = space.machine, candidate.program
    assert program is not None
    child = gpu_child.child(machine.device.index)
    try:
        ran = child.time(
            program.manifest,
            program.entry.files[CUBIN],
            arguments,
            repeat=machine.config.bench_repeat,
            warmup=machine.config.bench_warmup,
            leader=leader,
            timeout_s=RUN_TIMEOUT_S,
        )
    except ArgumentError as error:
        raise _not_here(space, error.message) from error
    except LaunchError as error:
        if error.data.get("kind") == "CUDA_ERROR_OUT_OF_MEMORY":
            room = f"{held.nbytes(arguments) / 1e9:.1f} GB"
            problem = f"copies of its arguments, {room}, do not fit into the GPU's memory beside them"
            raise _not_here(space, problem) from error
        return Measurement(error=error)
    except KernelError as error:
        if error.kind == "interrupted":
            raise KeyboardInterrupt from None
        return Measurement(error=_placed(space, error))
    return Measurement(ran.seconds, ran.hopeless)


def _estimate(space: Space, candidate: Candidate, arguments: Sequence[Any]) -> Measurement:
    """Run it in the simulator, and count."""
    program = candidate.program
    assert program is not None
    runner = program.load(DeviceKind.CPU, space.machine.config)
    assert isinstance(runner, CpuRunner)
    try:
        ran = runner.launch(held.copies(arguments))
    except KernelError as error:
        if error.kind == "interrupted":
            raise KeyboardInterrupt from None
        return Measurement(error=_placed(space, error))
    except LaunchError as error:
        return Measurement(error=error)
    manifest = program.manifest
    return Measurement(estimate=estimate(ran.counters, manifest.block, manifest.shared_bytes))


def _placed(space: Space, error: KernelError) -> KernelError:
    return error.with_sources(space.instance.sources)


def _not_here(space: Space, why: str) -> TilekitError:
    return errors.ArgumentError(
        "TK636",
        f"{space.instance.script_cls.__name__} cannot be tuned on these arguments: {why}",
        help="tune on smaller tensors of the same kind: handle.tune(…); or pin a schedule: debug_schedule = dict(…)",
    )
