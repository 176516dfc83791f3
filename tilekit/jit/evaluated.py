# SPDX-License-Identifier: Apache-2.0
"""Running a kernel in the NumPy evaluator, where no C++ compiler is there to build it for the CPU."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

from tilekit.ir import evaluator
from tilekit.ir.prog import Program
from tilekit.runtime import tensors
from tilekit.runtime.launch import LaunchStats
from tilekit.runtime.tensors import Library


class Evaluated:
    """A program that the evaluator runs on the caller's tensors."""

    def __init__(self, program: Program) -> None:
        self.program = program
        warnings.warn(
            "there is no C++ compiler on this machine, so kernels run in the NumPy evaluator, which is slow and knows no "
            "layouts; install one, for example `apt install g++` or `pip install ziglang`",
            stacklevel=2,
        )

    def launch(self, arguments: Sequence[Any], /) -> LaunchStats:
        begin = time.perf_counter()
        evaluator.run(self.program, [_as_array(argument) for argument in arguments])
        return LaunchStats(time.perf_counter() - begin)


def _as_array(argument: Any) -> Any:
    """A torch tensor as a NumPy array over the same memory; everything else as it is."""
    if tensors.library_of(argument) is not Library.TORCH:
        return argument
    return evaluator.array_over(argument.data_ptr(), tensors.facts(argument).dtype, argument.shape, argument.stride())
