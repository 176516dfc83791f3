# SPDX-License-Identifier: Apache-2.0
"""Runs hand-written CUDA text in the CPU simulator on NumPy arrays, copying in and out as the runtime does."""

import functools
import hashlib
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tilekit import config
from tilekit.cpusim import build
from tilekit.cpusim.client import LaunchRequest, LaunchResult, Pointer, Scalar, Simulator
from tilekit.toolchain import host

HEADER = "#include <tk/tk.h>\n\n"


@functools.cache
def scratch() -> Path:
    """A folder of this test session, removed with the process."""
    folder = tempfile.TemporaryDirectory(prefix="tilekit-cpusim-")
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory] = []


def compiler() -> host.HostCompiler:
    found = host.find_compiler()
    if found is None:
        pytest.skip("no C++ compiler here")
    return found


@functools.cache
def runtime() -> Path:
    return build.build_runtime(config.resolve().cache_dir, compiler()).library


def library(source: str, *, check: bool = False) -> Path:
    """Compile a source, whose kernels must each be followed by TK_KERNEL, once."""
    return _library(source, check)


@functools.cache
def _library(source: str, check: bool) -> Path:
    folder = scratch() / hashlib.sha256(f"{check} {source}".encode()).hexdigest()[:16]
    folder.mkdir()
    (folder / "source.cu").write_text(source)
    compile_one = compiler().build_checked if check else compiler().build_kernel
    compile_one(folder / "source.cu", folder / "lib.so", include=build.INCLUDE)
    return folder / "lib.so"


def line_of(source: str, text: str) -> int:
    """The number of the only line that contains `text`."""
    (line,) = [number for number, line in enumerate(source.splitlines(), 1) if text in line]
    return line


def request(
    simulator: Simulator, source: str, kernel: str, args, *, grid=1, block=32, undefined=None, **options
) -> LaunchRequest:
    """A launch of a kernel on arrays, which are copied in, and scalars of NumPy types; one array may be `undefined`."""
    regions, arguments = [], []
    for index, arg in enumerate(args):
        if isinstance(arg, np.ndarray):
            region = simulator.memory.allocate(arg.nbytes, arg.ctypes.data)
            region.view[:] = arg.tobytes()
            arguments.append(Pointer(len(regions), 0, arg.nbytes, f"arg{index}", undefined=index == undefined))
            regions.append(region)
        else:
            arguments.append(Scalar(arg.tobytes()))
    size = [*(block if isinstance(block, tuple) else (block,)), 1, 1][:3]
    count = [*(grid if isinstance(grid, tuple) else (grid,)), 1, 1][:3]
    built = library(source, check=options.get("check") is not None)
    return LaunchRequest(built, kernel, tuple(count), tuple(size), regions=regions, arguments=arguments, **options)


def run(simulator: Simulator, source: str, kernel: str, args, **options) -> LaunchResult:
    """Run a kernel on arrays; they change only if it ends well."""
    launch = request(simulator, source, kernel, args, **options)
    try:
        result = simulator.run(launch)
        arrays = [arg for arg in args if isinstance(arg, np.ndarray)]
        for array, region in zip(arrays, launch.regions, strict=True):
            array.reshape(-1).view(np.uint8)[:] = np.frombuffer(region.view, np.uint8)
        return result
    finally:
        for region in launch.regions:
            simulator.memory.release(region)
