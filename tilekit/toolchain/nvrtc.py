# SPDX-License-Identifier: Apache-2.0
"""CUDA C to cubin in this process, by NVRTC: one wheel, no toolkit, no driver and no GPU."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import time
from pathlib import Path
from typing import Any

from tilekit import config
from tilekit.diag import ToolchainError
from tilekit.target import Target
from tilekit.toolchain import messages, toolkit
from tilekit.toolchain.binary import Binary, Options, figures

BUNDLED_HEADERS = (13, 3)  # the first NVRTC that carries the CUDA headers inside
_WHEEL = "nvidia-cuda-nvrtc"


def compile(source: str, target: Target, *, include: Path, options: Options) -> Binary:
    """Compile the text of a `source.cu` for one target; `include` is the folder that holds `tk/`."""
    nvrtc = _library()
    arguments = [
        f"-arch={target.name}",
        "-std=c++17",
        "-lineinfo",
        f"-I{include}",
        *_header_arguments(_version_numbers(nvrtc), options.header_cache),
        "-diag-suppress=177,550",  # unused and set-but-unused variables: generated code has them
        "--ptxas-options=-v",
        *([] if options.ptxas_optimization else ["--ptxas-options=-O0"]),
        *options.extra,
    ]
    begin = time.perf_counter()
    program = _check(nvrtc, nvrtc.nvrtcCreateProgram(source.encode(), messages.SOURCE.encode(), 0, [], []))
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(arguments), [a.encode() for a in arguments])
        log = _read_text(nvrtc, program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if status == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION and "gpu-architecture" in log:
            raise _unknown_target(nvrtc, target)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            placed = messages.locate_ptx(messages.parse(log), _read_ptx(nvrtc, program))
            raise messages.compile_failure("NVRTC", log, placed)
        cubin = _read(nvrtc, program, nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        ptx = _read_ptx(nvrtc, program) if options.keep_ptx else None
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    found = figures(log)
    return Binary(
        cubin=cubin,
        log=log,
        registers=found.registers,
        spill_bytes=found.spill_bytes,
        stack_bytes=found.stack_bytes,
        shared_bytes=found.shared_bytes,
        seconds=time.perf_counter() - begin,
        version=_loaded_version(nvrtc),
        ptx=ptx,
        ptxas_seconds=found.seconds,
    )


@functools.cache
def version() -> str:
    """Name the NVRTC that `compile` uses, as a cache key wants it; a wheel says so without loading the library."""
    # it knows email and zip files, and takes longer to import than all of ours
    metadata = importlib.import_module("importlib.metadata")
    try:
        said: str = metadata.distribution(_WHEEL).read_text("METADATA") or ""
    except metadata.PackageNotFoundError:
        said = ""
    # who reads all of it as a mail takes twice as long
    found = next((line.split()[1] for line in said.splitlines() if line.startswith("Version: ")), None)
    return f"NVRTC {found}" if found else "NVRTC {}.{}".format(*_version_numbers(_library()))


def _loaded_version(nvrtc: Any) -> str:
    """What compiled: the wheel, unless another library was found before it, as LD_LIBRARY_PATH can do."""
    loaded = "NVRTC {}.{}".format(*_version_numbers(nvrtc))
    return version() if version().startswith(f"{loaded}.") else loaded


def _header_arguments(numbers: tuple[int, int], header_cache: Path) -> list[str]:
    if numbers >= BUNDLED_HEADERS:
        # One folder a version: NVRTC empties a folder that another version has filled.
        name = "nvrtc-{}.{}".format(*numbers)
        return [f"--use-bundled-headers={_writable(header_cache, name) / name}"]
    folder = toolkit.headers()
    if folder is None:
        raise ToolchainError(
            "TK503",
            "no CUDA headers for NVRTC {}.{}: cuda_fp16.h is in none of {}".format(*numbers, toolkit.HEADER_PLACES),
            help="pip install 'nvidia-cuda-nvrtc>=13.3', which carries them, or set CUDA_HOME to a CUDA toolkit",
        )
    return [f"-I{folder}"]


def _writable(folder: Path, name: str) -> Path:
    """The folder, if it has this file or can get it; else one that ends with this process."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if (folder / name).exists() or os.access(folder, os.W_OK):
        return folder
    return config.private_folder()


@functools.cache
def _library() -> Any:
    """Import the binding and load NVRTC behind it, or say what to install."""
    try:
        from cuda.bindings import nvrtc  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]

        nvrtc.nvrtcVersion()  # the first call loads the library
    except (ImportError, RuntimeError, OSError) as error:
        missing = (
            "the Python package cuda-bindings" if isinstance(error, ImportError) else "NVRTC, NVIDIA's runtime compiler"
        )
        raise ToolchainError(
            "TK502",
            f"{missing} is not installed: CUDA code cannot be compiled",
            help="pip install 'tilekit[cuda]'",
        ) from error
    return nvrtc


def _version_numbers(nvrtc: Any) -> tuple[int, int]:
    major, minor = _check(nvrtc, nvrtc.nvrtcVersion())
    return major, minor


def _unknown_target(nvrtc: Any, target: Target) -> ToolchainError:
    known = _check(nvrtc, nvrtc.nvrtcGetSupportedArchs())
    return ToolchainError(
        "TK504",
        f"{version()} does not compile for {target.name}: it knows sm_{', sm_'.join(str(number) for number in known)}",
    )


def _check(nvrtc: Any, answer: tuple[Any, ...]) -> Any:
    """Unpack a binding's answer (status, value, …), or raise what the status says."""
    status, *values = answer
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        _, text = nvrtc.nvrtcGetErrorString(status)
        raise ToolchainError("TK501", f"NVRTC failed: {text.decode()}")
    return values[0] if len(values) == 1 else tuple(values)


def _read(nvrtc: Any, program: Any, size: Any, read: Any) -> bytes:
    buffer = bytearray(_check(nvrtc, size(program)))
    if buffer:
        _check(nvrtc, (*read(program, buffer), None))
    return bytes(buffer)


def _read_ptx(nvrtc: Any, program: Any) -> str:
    return _read_text(nvrtc, program, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)


def _read_text(nvrtc: Any, program: Any, size: Any, read: Any) -> str:
    return _read(nvrtc, program, size, read).decode(errors="replace").strip("\0 \n")
