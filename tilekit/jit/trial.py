# SPDX-License-Identifier: Apache-2.0
"""Programs and sources on trial: run on copies of the same arguments, in the evaluator and in check mode."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tilekit import dtypes
from tilekit.dtypes import DataType
from tilekit.ir import evaluator
from tilekit.ir.evaluator.evaluate import STEP_LIMIT, BlockIndex
from tilekit.ir.evaluator.group import Group
from tilekit.ir.evaluator.scheduler import Barrier
from tilekit.ir.evaluator.state import Launch
from tilekit.ir.instructions.semaphore import LockSemaphoreInst
from tilekit.ir.machine import Steps
from tilekit.ir.prog import Program
from tilekit.ir.tools.instruction_collector import collect
from tilekit.jit import agreement, contestants, held
from tilekit.jit.arguments import require_sample
from tilekit.jit.evaluated import as_memory
from tilekit.jit.spec import TensorSpec
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Var
from tilekit.runtime import tensors
from tilekit.runtime.compiled import CheckRunner
from tilekit.runtime.launch_cpu import choose_blocks
from tilekit.runtime.manifest import Param

# what takes so many times the steps, or the time, of the first program is taken to be endless
_PATIENCE = 10
_LEAST_SECONDS = 5.0


class Trial:
    """One set of arguments, which stay as they are; what runs on copies of them gives back those copies."""

    def __init__(self, program: Program, arguments: Sequence[Any], blocks: Literal["all"] | int, seed: int) -> None:
        require_sample(blocks, seed)
        self._params = program.function.params
        self.arguments = [_random(each, [seed, number]) for number, each in enumerate(arguments)]
        self.seed = seed
        self._steps = 0
        self._step_limit = STEP_LIMIT
        self._seconds: float | None = None
        extents = evaluator.grid(program, list(map(as_memory, self.copies())))
        total = math.prod(extents)
        waits = bool(collect(program.function, LockSemaphoreInst))
        self.sample = None if blocks == "all" or blocks >= total or waits else blocks
        chosen = [] if self.sample is None else choose_blocks(extents, self.sample, seed)
        indices = [evaluator.block_index(number, extents) for number in chosen]
        self._blocks: Literal["all"] | list[BlockIndex] = indices or "all"
        self.where = f"{f'all {total}' if self.sample is None else f'{self.sample} of {total}'} blocks, seed {seed}"

    def spoil_outputs(self, params: Sequence[Param]) -> None:
        """From now on, outputs begin without what a call before has left in them."""
        self.arguments = self.copies()
        contestants.spoil_outputs(self.arguments, [(number, params[number]) for number, _ in self._tensors()])

    def copies(self) -> list[Any]:
        return held.copies(self.arguments, on_cpu=True)

    def evaluate(self, prog: Program) -> list[Any]:
        """What a tile program makes of the arguments; the first one says how long any may take."""
        values = self.copies()
        steps = 0

        class Counted(Group):
            """A thread group that tells how many steps it took."""

            def run(self) -> Steps:
                nonlocal steps
                yield from super().run()
                steps = max(steps, self.steps)

        def group(launch: Launch, block: BlockIndex, scalars: Mapping[Var, Any], barrier: Barrier) -> Group:
            return Counted(launch, block, scalars, barrier)

        memory = list(map(as_memory, values))
        limit = self._step_limit
        evaluator.run(prog, memory, seed=self.seed, blocks=self._blocks, step_limit=limit, group=group)
        if limit == STEP_LIMIT:
            self._step_limit = _PATIENCE * (steps + 10)
        return values

    def check(self, checker: CheckRunner) -> list[Any]:
        """What a source makes of them in check mode."""
        values, start = self.copies(), time.perf_counter()
        limit = None if self._seconds is None else max(_PATIENCE * self._seconds, _LEAST_SECONDS)
        checker.launch(values, sample=self.sample, seed=self.seed, strict=False, timeout_s=limit)
        if self._seconds is None:
            self._seconds = time.perf_counter() - start
        return values

    # ----------------------------------------------------------------------------------------------- comparing results

    def difference(self, values: Sequence[Any], expected: Sequence[Any], allowed: Mapping[int, float]) -> str:
        """Where results differ by more than is allowed for them, by the number of the argument; empty if nowhere."""
        names = (scalar.name_hint(param) for param in self._params)
        for number, (name, mine, other) in enumerate(zip(names, values, expected, strict=True)):
            if tensors.is_tensor(mine) and (found := agreement.agree(name, mine, other, allowed[number])).difference:
                return found.difference
        return ""

    def closely(self, noise: Mapping[int, float] | None = None) -> dict[int, float]:
        """What two runs of one machine may differ by: far less than a rounding, as only an order of sums may change.

        `noise` is what two machines differ by on a program that is right.
        """
        exact = {number: _close(tensors.facts(each).dtype) for number, each in self._tensors()}
        return {number: max(each, _PATIENCE * (noise or {}).get(number, 0.0)) for number, each in exact.items()}

    def loosely(self) -> dict[int, float]:
        """What two machines may differ by."""
        allowed = agreement.tolerance((), [each for _, each in self._tensors()])
        return {number: allowed for number, _ in self._tensors()}

    def noise(self, values: Sequence[Any], expected: Sequence[Any]) -> dict[int, float]:
        """The relative error of each result."""
        return {
            number: agreement.agree("", values[number], expected[number], 1.0).relative_error
            for number, _ in self._tensors()
        }

    def _tensors(self) -> list[tuple[int, Any]]:
        return [(number, each) for number, each in enumerate(self.arguments) if tensors.is_tensor(each)]


def _close(dtype: DataType) -> float:
    """Short floats hide what comes of another order of sums, but for a few that round the other way."""
    if not dtype.is_float():
        return 0.0
    return dtype.eps / 8 if dtype.nbits < 32 else 8 * dtype.eps


def _random(argument: Any, seed: Sequence[int]) -> Any:
    """An array as a spec describes it; numbers are small, for they may be indices."""
    if not isinstance(argument, TensorSpec):
        return argument
    numbers, kind = np.random.default_rng(seed), dtypes.numpy_dtype(argument.dtype)
    if argument.dtype.is_float():
        return numbers.uniform(-1, 1, argument.shape).astype(kind)
    return numbers.integers(0, 2 if argument.dtype.is_boolean() else 8, argument.shape).astype(kind)
