# SPDX-License-Identifier: Apache-2.0
"""Running a kernel in the NumPy evaluator, where no C++ compiler is there to build it for the CPU."""

from __future__ import annotations

import ctypes
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilekit.ir import evaluator
from tilekit.ir.prog import Program
from tilekit.runtime import tensors
from tilekit.runtime.launch import LaunchStats


class Evaluated:
    """A program that the evaluator runs on the caller's tensors."""

    def __init__(self, program: Program) -> None:
        self.program = program
        warnings.warn(
            "there is no C++ compiler on this machine, so kernels run in the NumPy evaluator, which is slow and knows "
            "no layouts; install one, for example `apt install g++` or `pip install ziglang`",
            stacklevel=2,
        )

    def launch(self, arguments: Sequence[Any], /) -> LaunchStats:
        begin = time.perf_counter()
        printed = evaluator.run(self.program, [as_memory(argument) for argument in arguments])
        return LaunchStats(time.perf_counter() - begin, printed=printed)

    def interrupt(self) -> None:
        """The evaluator runs in this process, where Ctrl-C reaches it and nothing else does."""


def as_memory(argument: Any) -> Any:
    """A tensor as the memory that it touches; a number as it is."""
    if not tensors.is_tensor(argument):
        return argument
    begin, end = tensors.facts(argument).window
    pages: Any = (ctypes.c_uint8 * (end - begin)).from_address(begin)
    return evaluator.Memory.of(np.frombuffer(pages, np.uint8))
