# SPDX-License-Identifier: Apache-2.0
"""What a launch costs on a GPU: the Python of a call, and the first call of a process that finds everything cached."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import report

LAUNCHES = 500  # less than a GPU's queue holds, so that nobody waits for it
REPEAT = 9

SCRIPT = """
import sys, time
import torch
import tilekit
from tilekit import float32, int32


class AddFour(tilekit.Script):
    def __call__(self, n: int32, a: ~float32, b: ~float32, c: ~float32, d: ~float32):
        self.attrs.blocks = [(n + 127) // 128]
        self.attrs.warps = 4
        at = self.blockIdx.x * 128
        tiles = [self.load_global(self.global_view(p, dtype=float32, shape=[n]), offsets=[at], shape=[128])
                 for p in (a, b, c)]
        out = self.global_view(d, dtype=float32, shape=[n])
        self.store_global(out, tiles[0] + tiles[1] + tiles[2], offsets=[at])


handle = AddFour()
tensors = [torch.ones(1024, device="cuda") for _ in range(4)]
torch.cuda.synchronize()
"""

_FIRST_CALL = (
    SCRIPT
    + """
start = time.perf_counter()
handle(1024, *tensors)
torch.cuda.synchronize()
print(time.perf_counter() - start, "hidet" in sys.modules)
"""
)


def call_microseconds() -> dict[str, Any]:
    """One call with four torch tensors, beside the bare driver call on packed arguments, and torch.add; in turn."""
    import torch

    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.py")
        path.write_text(SCRIPT)
        exec(compile(SCRIPT, str(path), "exec"), names)
        handle, tensors = names["handle"], names["tensors"]
        handle(1024, *tensors)
    runner = handle.last.runner
    there, function = runner._functions[0]
    stream = there.stream(torch.cuda.current_stream().cuda_stream)
    bare = there.api.cuLaunchKernel
    slots = runner._slots_address
    out, x, y = tensors[3], tensors[0], tensors[1]
    contestants: dict[str, Callable[[], object]] = {
        "driver": lambda: bare(function, 8, 1, 1, 128, 1, 1, 0, stream, slots, 0),
        "tilekit": lambda: handle(1024, *tensors),
        "torch.add": lambda: torch.add(x, y, out=out),
    }
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(REPEAT):
        for name, launch in contestants.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(LAUNCHES):
                launch()
            times[name].append((time.perf_counter() - start) / LAUNCHES * 1e6)
    torch.cuda.synchronize()
    found: dict[str, Any] = {name: report.spread(values) for name, values in times.items()}
    found["over_driver"] = round(min(times["tilekit"]) / min(times["driver"]), 2)
    return found


def first_call_milliseconds() -> dict[str, Any]:
    """The first call in a new process, after its imports and with CUDA awake: not cached, then cached."""
    found: dict[str, list[float]] = {"cold": [], "cached": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.py")
        path.write_text(_FIRST_CALL)
        root = str(Path(__file__).parents[1])
        for turn in range(REPEAT):
            environment = {**os.environ, "TILEKIT_CACHE_DIR": str(Path(folder, "cache")), "PYTHONPATH": root}
            run = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True)
            if run.returncode:
                raise RuntimeError(run.stderr)
            seconds, has_compiler = run.stdout.split()
            if turn and has_compiler == "True":
                raise RuntimeError("a cached kernel has loaded the compiler")
            found["cached" if turn else "cold"].append(1e3 * float(seconds))
    return {name: report.spread(values) for name, values in found.items()}


def measure() -> dict[str, Any]:
    return {"call_us": call_microseconds(), "first_call_ms": first_call_milliseconds()}
