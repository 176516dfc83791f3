# SPDX-License-Identifier: Apache-2.0
"""CUDA C to cubin by nvcc, for who has a CUDA toolkit and asks for it."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from tilekit.diag import ToolchainError
from tilekit.target import Target
from tilekit.toolchain import messages, toolkit
from tilekit.toolchain.binary import Binary, Options, figures

_KEPT_PTX = Path(messages.SOURCE).with_suffix(".ptx").name


def compile(source: str, target: Target, *, include: Path, options: Options) -> Binary:
    """Compile the text of a `source.cu` for one target; `include` is the folder that holds `tk/`."""
    nvcc = _find()
    arguments = [
        f"-arch={target.name}",
        "-std=c++17",
        "-lineinfo",
        f"-I{include}",
        "-diag-suppress=177,550",  # unused and set-but-unused variables: generated code has them
        "-Xptxas=-v",
        *([] if options.ptxas_optimization else ["-Xptxas=-O0"]),
        *(["-keep"] if options.keep_ptx else []),
        *options.extra,
    ]
    with tempfile.TemporaryDirectory(prefix="tilekit-nvcc-") as name:
        folder = Path(name)
        (folder / messages.SOURCE).write_text(source)
        begin = time.perf_counter()
        run = _run(nvcc, ["-cubin", *arguments, "-o", "kernel.cubin"], folder)
        if run.returncode != 0:
            raise _failure(nvcc, arguments, folder, target, run.stdout)
        seconds = time.perf_counter() - begin
        cubin = (folder / "kernel.cubin").read_bytes()
        ptx = (folder / _KEPT_PTX).read_text().strip() if options.keep_ptx else None
    found = figures(run.stdout)
    return Binary(
        cubin=cubin,
        log=run.stdout.strip(),
        registers=found.registers,
        spill_bytes=found.spill_bytes,
        stack_bytes=found.stack_bytes,
        shared_bytes=found.shared_bytes,
        seconds=seconds,
        version=version(),
        ptx=ptx,
        ptxas_seconds=found.seconds,
    )


def version() -> str:
    """Name the nvcc that `compile` uses, as a cache key wants it."""
    return _version(_find())


@functools.cache
def _version(nvcc: Path) -> str:
    text = _run(nvcc, ["--version"], Path.cwd()).stdout
    found = re.search(r"\bV(\d+(?:\.\d+)+)", text)
    if found is None:
        raise ToolchainError("TK505", f"{nvcc} does not work: {text.strip() or 'it said nothing'}")
    return f"nvcc {found[1]}"


def _find() -> Path:
    found = toolkit.nvcc()
    if found is None:
        raise ToolchainError(
            "TK505",
            "there is no nvcc: none in $CUDA_HOME, $CUDA_PATH, on PATH or in /usr/local/cuda",
            help="install a CUDA toolkit, or compile with NVRTC: tilekit.option.toolchain('nvrtc')",
        )
    return found


def _run(nvcc: Path, arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    source = [messages.SOURCE] if (folder / messages.SOURCE).exists() else []
    return subprocess.run(
        [str(nvcc), *arguments, *source],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )


def _failure(nvcc: Path, arguments: list[str], folder: Path, target: Target, log: str) -> ToolchainError:
    if "Unsupported gpu architecture" in log or "is not defined for option 'gpu-architecture'" in log:
        return ToolchainError("TK504", f"{version()} does not compile for {target.name}")
    found = messages.parse(log)
    if any(message.file == messages.PTX for message in found):
        _run(nvcc, ["-ptx", *arguments, "-o", "kernel.ptx"], folder)
        found = messages.locate_ptx(found, (folder / "kernel.ptx").read_text())
    return messages.compile_failure("nvcc", log, found)
