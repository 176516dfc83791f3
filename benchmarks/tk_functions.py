# SPDX-License-Identifier: Apache-2.0
"""Every function that generated code may call, on the GPU and on the CPU with the same random operands."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tests.cpusim import harness
from tests.include import rows
from tests.include.machines import Cpu, Gpu
from tilekit.cpusim.client import Simulator
from tilekit.lowir import prims


def measure() -> dict[str, Any]:
    """The largest difference per function: units in the last place of floats (for mma in the last place of the sum of
    all magnitudes), plain differences of integers; 0 is equal bit for bit."""
    seed = int.from_bytes(os.urandom(4))
    calls = list(rows.calls(np.random.default_rng(seed)))
    simulator = Simulator(harness.runtime())
    largest: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder, np.errstate(all="ignore"):
        cpu, gpu = Cpu(simulator), Gpu(Path(folder))
        _compile(gpu, list(dict.fromkeys(call.source for call in calls)))
        for call in calls:
            difference = call.difference(call.run(cpu), call.run(gpu))
            for row in call.rows:
                largest[row] = max(largest.get(row, 0.0), round(difference, 3))
    simulator.close()
    return {
        "seed": seed,
        "functions": len(prims.PRIMITIVES),
        "without_any_difference": sum(difference == 0 for difference in largest.values()),
        "largest_difference": largest,
    }


def _compile(gpu: Gpu, sources: list[str]) -> None:
    """Have both machines' compilers make everything, on all cores; the first has headers to unpack."""
    gpu.binary(sources[0])
    with ThreadPoolExecutor() as pool:
        list(pool.map(gpu.binary, sources))
        list(pool.map(harness.library, sources))
