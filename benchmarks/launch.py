# SPDX-License-Identifier: Apache-2.0
"""What a launch costs on a GPU: the Python of a call, and the first call of a process that finds everything cached."""

from __future__ import annotations

import importlib.util
import json
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

# tilus 0.2.0 compiles the same text
_SCRIPT = """
import os, sys, time
import torch
import {language} as tilus
from {language} import float32, int32


class AddThree(tilus.Script):
    def __call__(self, n: int32, a: ~float32, b: ~float32, c: ~float32, d: ~float32):
        self.attrs.blocks = [(n + 127) // 128]
        self.attrs.warps = 4
        at: int32 = self.blockIdx.x * 128
        x = self.load_global(self.global_view(a, dtype=float32, shape=[n]), offsets=[at], shape=[128])
        y = self.load_global(self.global_view(b, dtype=float32, shape=[n]), offsets=[at], shape=[128])
        z = self.load_global(self.global_view(c, dtype=float32, shape=[n]), offsets=[at], shape=[128])
        self.store_global(self.global_view(d, dtype=float32, shape=[n]), x + y + z, offsets=[at])


tilus.option.cache_dir({folder!r})
handle = AddThree()
tensors = [torch.ones(1024, device="cuda") for _ in range(4)]
torch.cuda.synchronize()
"""

_FIRST_CALL = (
    _SCRIPT
    + """
start = time.perf_counter()
handle(1024, *tensors)
torch.cuda.synchronize()
print(time.perf_counter() - start, "hidet" in sys.modules)
"""
)

# the functions that take longest by themselves: calls, milliseconds, and those with what they call
_DEAREST = (
    _SCRIPT
    + """
import cProfile, json, pstats
profile = cProfile.Profile()
profile.runcall(handle, 1024, *tensors)
dearest = sorted(pstats.Stats(profile).stats.items(), key=lambda row: -row[1][2])[:15]
print(json.dumps({{f"{{os.path.basename(file)}}:{{line}} {{name}}": [calls, round(1e3 * own, 3), round(1e3 * all, 3)]
                  for (file, line, name), (_, calls, own, all, _) in dearest}}))
"""
)


def _languages() -> list[str]:
    return ["tilekit", *(["tilus"] if importlib.util.find_spec("tilus") else [])]


def call_microseconds() -> dict[str, Any]:
    """One call with four torch tensors, beside the bare driver call on packed arguments, torch.add, tilus; in turn."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        launches: dict[str, Callable[[], object]] = {}
        for language in _languages():
            names: dict[str, Any] = {"__name__": f"launch_of_{language}"}
            path = Path(folder, f"{language}.py")
            path.write_text(_SCRIPT.format(language=language, folder=str(Path(folder, language))))
            exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), names)
            handle, tensors = names["handle"], names["tensors"]
            handle(1024, *tensors)
            launches[language] = lambda handle=handle, tensors=tensors: handle(1024, *tensors)
            if language == "tilekit":
                launches |= _bare(handle.last.runner)
        x, y, out = (torch.ones(1024, device="cuda") for _ in range(3))
        launches["torch.add"] = lambda: torch.add(x, y, out=out)
        times: dict[str, list[float]] = {name: [] for name in launches}
        for _ in range(REPEAT):
            for name, launch in launches.items():
                torch.cuda.synchronize()
                start = time.perf_counter()
                for _ in range(LAUNCHES):
                    launch()
                times[name].append((time.perf_counter() - start) / LAUNCHES * 1e6)
        torch.cuda.synchronize()
    found: dict[str, Any] = {name: report.spread(values) for name, values in times.items()}
    floor = min(found["driver"]["median"], found["driver by ctypes"]["median"])
    found["over_driver"] = round(found["tilekit"]["median"] / floor, 3)
    return found


def _bare(runner: Any) -> dict[str, Callable[[], object]]:
    """The driver's launch of a kernel on arguments that are packed already: as NVIDIA binds it, and as we do."""
    import torch
    from cuda.bindings import driver

    there, function = runner._functions[0]
    raw, slots = torch.cuda.current_stream().cuda_stream, runner._arguments.address
    theirs, their_function, their_stream = (
        driver.cuLaunchKernel,
        driver.CUfunction(_int(function)),
        driver.CUstream(raw),
    )
    ours, stream = there.api.cuLaunchKernel, there.stream(raw)
    return {
        "driver": lambda: theirs(their_function, 8, 1, 1, 128, 1, 1, 0, their_stream, slots, 0),
        "driver by ctypes": lambda: ours(function, 8, 1, 1, 128, 1, 1, 0, stream, slots, 0),
    }


def _int(handle: Any) -> int:
    return handle if isinstance(handle, int) else int(getattr(handle, "value", handle))


def first_call_milliseconds() -> dict[str, Any]:
    """The first call in a new process, after its imports and with CUDA awake: not cached, then cached."""
    return {language: _first_calls(language) for language in _languages()}


def _first_calls(language: str) -> dict[str, Any]:
    found: dict[str, list[float]] = {"cold": [], "cached": []}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(REPEAT if language == "tilekit" else 4):
            seconds, has_compiler = _printed(_FIRST_CALL, language, folder).split()[-2:]
            if turn and language == "tilekit" and has_compiler == "True":
                raise RuntimeError("a cached kernel has loaded the compiler")
            found["cached" if turn else "cold"].append(1e3 * float(seconds))
        dearest = json.loads(_printed(_DEAREST, language, folder).splitlines()[-1])
    return {**{name: report.spread(values) for name, values in found.items()}, "dearest": dearest}


def _printed(script: str, language: str, folder: str) -> str:
    """What a new process prints that runs a script, with a cache in this folder."""
    path = Path(folder, "script.py")
    path.write_text(script.format(language=language, folder=str(Path(folder, "cache"))))
    python_path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": python_path}
    run = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return run.stdout


def measure() -> dict[str, Any]:
    return {"call_us": call_microseconds(), "first_call_ms": first_call_milliseconds()}
