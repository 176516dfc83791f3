# SPDX-License-Identifier: Apache-2.0
"""What GPUs this machine has and whether its driver will do: asked of the driver itself, without torch."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilekit.diag import LaunchError
from tilekit.runtime import driver
from tilekit.runtime.driver import DriverError

NEEDED_CUDA = (13, 0)
NEEDED_DRIVER = "r580"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as the driver counts them; memory is all of it, free or not."""

    index: int
    name: str
    capability: tuple[int, int]
    memory_bytes: int
    multiprocessors: int
    shared_memory_per_block: int

    @property
    def model(self) -> str:
        """What must be the same for times to be compared."""
        return f"{self.name}, {self.multiprocessors} multiprocessors"

    def __str__(self) -> str:
        return f"cuda:{self.index} ({self.name}, sm_{self.capability[0]}{self.capability[1]})"


@dataclass(frozen=True, slots=True)
class Survey:
    """What was found: the newest CUDA that the driver speaks, the GPUs, and why they cannot be used.

    Without a driver or a GPU there is nothing wrong: `problem` is None and `gpus` is empty.
    """

    cuda: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None


@functools.cache
def survey() -> Survey:
    """Ask the driver, once per process."""
    api = driver.binding()
    return Survey() if api is None else look(api, _release)


def require() -> Survey:
    """The survey of a machine whose GPUs can be used, or the sentence that says why they cannot."""
    found = survey()
    if found.problem is not None:
        raise LaunchError("TK630", found.problem)
    if not found.gpus:
        raise LaunchError("TK630", "this machine has no NVIDIA GPU that its driver can see")
    return found


def look(api: Any, release: Callable[[], str | None] = lambda: None) -> Survey:
    """Ask this driver API; `release` says the driver's own version, if it is known, and is asked for an old one."""
    try:
        number = driver.check(api, "cuDriverGetVersion", api.cuDriverGetVersion())
        cuda = (number // 1000, number % 1000 // 10)
        if number == 0:
            return Survey()  # the library is there and no driver behind it
        if cuda < NEEDED_CUDA:
            return Survey(cuda, problem=too_old(cuda, release()))
        driver.check(api, "cuInit", api.cuInit(0))
        count = driver.check(api, "cuDeviceGetCount", api.cuDeviceGetCount())
        return Survey(cuda, tuple(_describe(api, index) for index in range(count)))
    except DriverError as error:
        if error.name in ("CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_STUB_LIBRARY"):
            return Survey()
        return Survey(problem=f"the NVIDIA driver does not work ({error}): kernels run on the CPU")


def too_old(cuda: tuple[int, int], release: str | None = None) -> str:
    """The sentence for a driver that cannot load what we compile, with both versions."""
    has = f"driver {release} speaks CUDA {cuda[0]}.{cuda[1]}" if release else f"driver speaks CUDA {cuda[0]}.{cuda[1]}"
    needs = f"CUDA {NEEDED_CUDA[0]}.{NEEDED_CUDA[1]}, driver {NEEDED_DRIVER} or newer"
    return f"the NVIDIA {has} and tilekit needs {needs}: kernels run on the CPU"


def _release(version_file: Path = Path("/proc/driver/nvidia/version")) -> str | None:
    try:
        found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", version_file.read_text())
    except OSError:
        return None
    return found[1] if found else None


def _describe(api: Any, index: int) -> Gpu:
    def ask(name: str) -> int:
        attribute = getattr(api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return driver.check(api, "cuDeviceGetAttribute", api.cuDeviceGetAttribute(attribute, device))

    device = driver.check(api, "cuDeviceGet", api.cuDeviceGet(index))
    name = driver.check(api, "cuDeviceGetName", api.cuDeviceGetName(128, device))
    return Gpu(
        index=index,
        name=name.split(b"\0", 1)[0].decode(),
        capability=(ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR")),
        memory_bytes=driver.check(api, "cuDeviceTotalMem", api.cuDeviceTotalMem(device)),
        multiprocessors=ask("MULTIPROCESSOR_COUNT"),
        shared_memory_per_block=ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
    )
