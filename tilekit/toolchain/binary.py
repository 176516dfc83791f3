# SPDX-License-Identifier: Apache-2.0
"""What a CUDA compiler gives back: the cubin, the log, and the figures that ptxas prints about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """How to compile, beyond the target; `header_cache` is the folder where NVRTC may unpack its bundled headers.

    With `keep_ptx` the PTX that the cubin was made from is handed on.
    """

    header_cache: Path
    ptxas_optimization: bool = True
    keep_ptx: bool = False
    extra: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figures:
    """What ptxas says of a kernel: registers a thread, bytes of spill stores, stack frame and static shared memory.

    `seconds` is the time that ptxas took.
    """

    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    seconds: float


@dataclass(frozen=True)
class Binary:
    """A compiled kernel; `version` names the compiler that made it, as it stands in a cache key."""

    cubin: bytes
    log: str
    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int
    seconds: float
    version: str
    ptx: str | None = None
    ptxas_seconds: float = 0.0


_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill stores")
_STACK = re.compile(r"(\d+) bytes stack frame")
_SHARED = re.compile(r"(\d+) bytes smem")
_MILLISECONDS = re.compile(r"Compile time = ([\d.]+) ms")


def figures(log: str) -> Figures:
    """Read the output of `ptxas -v`; of several functions the worst counts."""
    return Figures(
        registers=_worst(_REGISTERS, log),
        spill_bytes=_worst(_SPILLS, log),
        stack_bytes=_worst(_STACK, log),
        shared_bytes=_worst(_SHARED, log),
        seconds=sum(map(float, _MILLISECONDS.findall(log))) / 1e3,
    )


def _worst(pattern: re.Pattern[str], log: str) -> int:
    return max((int(number) for number in pattern.findall(log)), default=0)
