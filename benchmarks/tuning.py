# SPDX-License-Identifier: Apache-2.0
"""What tuning costs on a GPU: 96 schedules of one matmul, compiled and measured by us and by tilus, caches empty."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_SCRIPT = Path(__file__).with_name("split_k.py")
# tilus 0.2.0 takes about a second a schedule on 16 cores
_TIMEOUT_S = 400


def _tuned(language: str) -> dict[str, Any]:
    """Tune the matmul in a new process with an empty cache; NVRTC's own cache, which outlives processes, is off."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CUDA_CACHE_DISABLE": "1", "PYTHONPATH": _path()}
        command = [sys.executable, str(_SCRIPT), language, folder]
        try:
            run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return {"failed": f"not done after {_TIMEOUT_S} s"}
    if run.returncode:
        return {"failed": run.stderr.strip()[-600:]}
    return json.loads(run.stdout.splitlines()[-1])


def _path() -> str:
    return os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))


def measure() -> dict[str, Any]:
    found = {language: _tuned(language) for language in ("tilekit", "tilus")}
    if all("seconds" in each for each in found.values()):
        found["times_faster"] = round(found["tilus"]["seconds"] / found["tilekit"]["seconds"], 2)  # type: ignore[assignment]
    return found
