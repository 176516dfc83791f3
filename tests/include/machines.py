# SPDX-License-Identifier: Apache-2.0
"""The two machines that run a source: the CPU simulator, and the GPU through nothing but its driver."""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from tests.cpusim import harness
from tilekit.cpusim import build
from tilekit.cpusim.client import Simulator
from tilekit.target import parse
from tilekit.toolchain.binary import Options


class Cpu:
    ulps = 2
    schedules = tuple({"seed": seed} for seed in range(4))

    def __init__(self, simulator: Simulator, seed: int = 0):
        self.simulator = simulator
        self.seed = seed

    def shuffled(self, seed: int) -> "Cpu":
        """This machine with its threads in another order."""
        return Cpu(self.simulator, seed)

    def run(self, source: str, kernel: str, args: list, *, grid=1, block=32, **options) -> None:
        options = {"seed": self.seed, **options}
        harness.run(self.simulator, source, kernel, args, grid=grid, block=block, **options)


def check(answer: tuple) -> Any:
    """The result of a driver call."""
    status, *results = answer
    assert int(status) == 0, status
    return results[0] if len(results) == 1 else results


class Gpu:
    ulps = 4  # of CUDA's accurate functions, as its documentation gives them for those used here
    schedules = ({},)

    def __init__(self, header_cache: Path):
        from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]  # made when it is built

        self.driver = driver
        check(driver.cuInit(0))
        device = check(driver.cuDeviceGet(0))
        check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))
        attribute = driver.CUdevice_attribute
        major, minor = (
            check(
                driver.cuDeviceGetAttribute(
                    getattr(attribute, f"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_{part}"), device
                )
            )
            for part in ("MAJOR", "MINOR")
        )
        self.target = parse(f"sm_{major}{minor}{'a' if major >= 9 else ''}")
        self.options = Options(header_cache)
        self.binary = functools.cache(self.compile)
        self.module = functools.cache(self.load)

    def compile(self, source: str) -> bytes:
        from tilekit.toolchain import nvrtc

        return nvrtc.compile(source, self.target, include=build.INCLUDE, options=self.options).cubin

    def load(self, source: str) -> Any:
        return check(self.driver.cuModuleLoadData(self.binary(source)))

    def run(self, source: str, kernel: str, args: list, *, grid=1, block=32, shared_bytes=0) -> None:
        driver = self.driver
        function = check(driver.cuModuleGetFunction(self.module(source), kernel.encode()))
        memory = {
            i: check(driver.cuMemAlloc(max(arg.nbytes, 1))) for i, arg in enumerate(args) if isinstance(arg, np.ndarray)
        }
        for i, pointer in memory.items():
            check(driver.cuMemcpyHtoD(pointer, args[i].ctypes.data, args[i].nbytes))
        values = [
            np.array([int(memory[i]) if i in memory else arg], "u8" if i in memory else arg.dtype)
            for i, arg in enumerate(args)
        ]
        pointers = np.array([value.ctypes.data for value in values], np.uint64)
        check(driver.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared_bytes, 0, pointers.ctypes.data, 0))
        check(driver.cuCtxSynchronize())
        for i, pointer in memory.items():
            check(driver.cuMemcpyDtoH(args[i].ctypes.data, pointer, args[i].nbytes))
            check(driver.cuMemFree(pointer))
