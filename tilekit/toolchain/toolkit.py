# SPDX-License-Identifier: Apache-2.0
"""Where a CUDA toolkit may lie on this machine: nvcc, nvdisasm, and the headers that an old NVRTC needs."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


def nvcc() -> Path | None:
    """Find nvcc: in the toolkit that $CUDA_HOME or $CUDA_PATH names, on PATH, or in /usr/local/cuda."""
    places = [*(root / "bin" / "nvcc" for root in _named_roots()), _nvcc_on_path(), _DEFAULT_ROOT / "bin" / "nvcc"]
    return next((place for place in places if place is not None and os.access(place, os.X_OK)), None)


def nvdisasm() -> Path | None:
    """Find the disassembler: where nvcc may lie, or in its wheel."""
    found = shutil.which("nvdisasm")
    folders = [root / "bin" for root in _toolkit_roots()] + [folder.parent / "bin" for folder in _wheel_folders()]
    places = [*([Path(found)] if found else []), *(folder / "nvdisasm" for folder in folders)]
    return next((place for place in places if os.access(place, os.X_OK)), None)


def headers() -> Path | None:
    """Find the folder that holds `cuda_fp16.h` and its like, in a toolkit or in the wheel of the CUDA runtime."""
    folders = [root / "include" for root in _toolkit_roots()] + list(_wheel_folders())
    return next((folder for folder in folders if (folder / "cuda_fp16.h").is_file()), None)


HEADER_PLACES = "$CUDA_HOME, $CUDA_PATH, the nvcc on PATH, /usr/local/cuda, and the nvidia-cuda-runtime wheel"

_DEFAULT_ROOT = Path("/usr/local/cuda")


def _named_roots() -> Iterator[Path]:
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if value := os.environ.get(variable):
            yield Path(value)


def _nvcc_on_path() -> Path | None:
    found = shutil.which("nvcc")
    return Path(found) if found else None


def _toolkit_roots() -> Iterator[Path]:
    yield from _named_roots()
    if (found := _nvcc_on_path()) is not None:
        yield found.resolve().parent.parent  # bin/nvcc is often a link into the toolkit
    yield _DEFAULT_ROOT


def _wheel_folders() -> Iterator[Path]:
    """CUDA 13 wheels share `nvidia/cu13/include`; before, each had a folder of its own."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec else []:
        yield from sorted(Path(root).glob("cu[0-9]*/include"), reverse=True)
        yield Path(root) / "cuda_runtime" / "include"
