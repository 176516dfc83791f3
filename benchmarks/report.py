# SPDX-License-Identifier: Apache-2.0
"""Where a result came from, and the file it is kept in."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import re
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilekit.runtime import device
from tilekit.toolchain import host

RESULTS = Path(__file__).with_name("results")
_PACKAGES = ("hidet", "torch", "triton", "numpy", "ml_dtypes", "ipykernel", "cuda-bindings", "nvidia-cuda-nvrtc")


def environment() -> dict[str, Any]:
    """The machine and every version that a figure depends on."""
    versions: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    compiler = host.find_compiler()
    found = device.survey()
    return {
        "date": datetime.date.today().isoformat(),
        "revision": _revision(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "cxx": None if compiler is None else compiler.version,
        "gpu": found.gpus[0].name if found.gpus else None,
        "cuda_driver": None if found.cuda is None else ".".join(map(str, found.cuda)),
        "packages": versions,
    }


def _revision() -> str | None:
    run = subprocess.run(["git", "rev-parse", "HEAD"], cwd=RESULTS.parent, capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else None


def spread(samples: Sequence[float]) -> dict[str, float]:
    """Median, least and greatest of several measurements."""
    return {
        "median": round(statistics.median(samples), 4),
        "min": round(min(samples), 4),
        "max": round(max(samples), 4),
        "samples": len(samples),
    }


def _path(facts: Mapping[str, Any]) -> Path:
    name = re.sub(r"\W+", "-", (facts["gpu"] or "cpu").lower()).strip("-")
    return RESULTS / f"{facts['date']}-{name}.json"


def kept(figure: str) -> dict[str, Any]:
    """What today's file has of a figure that is measured in parts."""
    path = _path(environment())
    return json.loads(path.read_text()).get(figure, {}) if path.exists() else {}


def write(figures: Mapping[str, Any]) -> Path:
    """Keep the figures with the environment, one file a day and device."""
    facts = environment()
    path = _path(facts)
    path.parent.mkdir(parents=True, exist_ok=True)
    before: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**before, "environment": facts, **figures}, indent=2) + "\n")
    return path
