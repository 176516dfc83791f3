# SPDX-License-Identifier: Apache-2.0
"""A candidate timed where it was compiled: by a process of an executor that has a GPU, perhaps on another machine.

Tensors do not travel. Their likes are made there from shape, dtype and a seed: numbers of a normal distribution, and
integers of zero or one, so that what is used as an index lies within. Whoever wants to time takes a GPU on which nobody
else of ours does, by a lock that the system gives back when its process dies. One process a GPU is best; more take
turns.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tilekit.diag.errors import KernelError, LaunchError, TilekitError
from tilekit.runtime import device, driver, gpu_child, gpu_worker, launch_cuda, tensors
from tilekit.runtime.gpu_child import Times
from tilekit.runtime.manifest import Manifest

SEED = 0


@dataclass(frozen=True)
class Like:
    """A tensor that is described and not sent."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


Given: TypeAlias = "Like | int | float | bool"


@dataclass(frozen=True)
class Trial:
    """How to time a candidate."""

    arguments: tuple[Given, ...]
    repeat: int
    warmup: int
    timeout_s: float


@dataclass(frozen=True)
class Ran:
    """What came of it on a GPU of this model."""

    gpu: str
    times: Times | None
    error: TilekitError | None = None


def trial_of(arguments: Sequence[Any], repeat: int, warmup: int, timeout_s: float) -> Trial:
    """The trial for a call with these arguments."""
    return Trial(tuple(map(_like, arguments)), repeat, warmup, timeout_s)


def run(trial: Trial, manifest: Manifest, cubin: bytes) -> Ran | None:
    """Time a kernel here; None if there is no GPU here that runs it."""
    with _gpu_for(manifest) as gpu:
        if gpu is None:
            return None
        try:
            values = make(trial.arguments, gpu.index)
            timed = gpu_child.child(gpu.index).time(
                manifest, cubin, values, repeat=trial.repeat, warmup=trial.warmup, timeout_s=trial.timeout_s
            )
        except (KernelError, LaunchError) as error:
            return Ran(gpu.model, None, error)
        return Ran(gpu.model, timed)


def make(arguments: Sequence[Given], index: int) -> list[Any]:
    """Arguments like those of the call, on GPU `index`."""
    torch = importlib.import_module("torch")
    source = torch.Generator(device=f"cuda:{index}").manual_seed(SEED)
    return [_tensor(torch, like, source) if isinstance(like, Like) else like for like in arguments]


def _tensor(torch: Any, like: Like, source: Any) -> Any:
    dtype = getattr(torch, like.dtype)
    made = torch.empty_strided(like.shape, like.strides, dtype=dtype, device=source.device)
    if dtype.is_floating_point and made.element_size() > 1:
        return made.normal_(generator=source)
    values = torch.randint(0, 2, like.shape, device=source.device, generator=source)
    return made.copy_(values)


def _like(argument: Any) -> Given:
    if not tensors.is_tensor(argument):
        return argument
    found = tensors.facts(argument)
    return Like(str(argument.dtype).removeprefix("torch."), found.shape, found.strides)


@contextlib.contextmanager
def _gpu_for(manifest: Manifest) -> Iterator[device.Gpu | None]:
    """A GPU that runs the kernel and on which nobody else of ours times; waits for one if all are taken."""
    fitting: list[device.Gpu] = []
    for gpu in device.survey().gpus:
        with contextlib.suppress(LaunchError):
            launch_cuda.check_fits(manifest, gpu)
            fitting.append(gpu)
    if not fitting:
        yield None
        return
    locks = [os.open(_lock_file(gpu), os.O_RDWR | os.O_CREAT, 0o666) for gpu in fitting]
    try:
        yield _first_free(fitting, locks)
    finally:
        for lock in locks:  # closing gives it back
            os.close(lock)


def _first_free(gpus: Sequence[device.Gpu], locks: Sequence[int]) -> device.Gpu:
    while True:
        for gpu, lock in zip(gpus, locks, strict=True):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return gpu
        time.sleep(0.01)


def _lock_file(gpu: device.Gpu) -> Path:
    """The same for every process of this person that means this GPU, whatever number it has there."""
    api: Any = driver.binding()
    handle = driver.check(api, "cuDeviceGet", api.cuDeviceGet(gpu.index))
    uuid = gpu_worker.uuid_of(api, driver.check(api, "cuDeviceGetUuid", api.cuDeviceGetUuid(handle)))
    return Path(tempfile.gettempdir(), f"tilekit-{os.getuid()}-{uuid.hex()}.lock")
