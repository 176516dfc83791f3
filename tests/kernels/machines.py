# SPDX-License-Identifier: Apache-2.0
"""Runs a kernel on every machine that is here: the NumPy evaluator, the CPU simulator, and a GPU where there is one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from tilekit.diag import TilekitError
from tilekit.ir import evaluator
from tilekit.ir.tools import verify
from tilekit.jit.evaluated import as_memory
from tilekit.jit.specialized import Specialized

# relative error of a whole result, by dtype: ||out - ref|| / ||ref||
TOLERANCE = {torch.float32: 1e-5, torch.float16: 5e-4, torch.bfloat16: 4e-3}
TF32 = 1e-3


def evaluate(handle, args: Sequence) -> None:
    """Run it in the evaluator, on the caller's CPU tensors."""
    instance = handle._jit_instance_for(*args)
    instance.require_program()  # raises what is wrong with the first schedule, if none works
    # not `transpiled_programs`, which would transpile every other schedule too
    found = map(instance.specialized, range(len(instance.schedules)))
    program = next(each.program for each in found if isinstance(each, Specialized))
    verify(program)
    params = handle.params
    launch = [args[i] for i in params.kernel_params]
    try:
        evaluator.run(program, [as_memory(argument) for argument in launch], seed=int(torch.randint(1 << 30, ())))
    except TilekitError as error:
        raise error.with_sources(handle.sources) from None


def simulate(handle, args: Sequence) -> None:
    handle(*args)


def on_gpu(handle, args: Sequence) -> None:
    """Run it on the GPU; arguments that overlap do so there too."""
    memories: dict[int, torch.UntypedStorage] = {}

    def there(argument):
        if not isinstance(argument, torch.Tensor):
            return argument
        here = argument.untyped_storage()
        if here.data_ptr() not in memories:
            memories[here.data_ptr()] = here.cuda()
        empty = torch.empty(0, dtype=argument.dtype, device="cuda")
        return empty.set_(memories[here.data_ptr()], argument.storage_offset(), argument.shape, argument.stride())

    moved = [there(argument) for argument in args]
    handle(*moved)
    torch.cuda.synchronize()
    for mine, theirs in zip(args, moved, strict=True):
        if isinstance(mine, torch.Tensor):
            mine.copy_(theirs)


EVERYWHERE = [
    pytest.param(evaluate, id="evaluator"),
    pytest.param(simulate, id="simulator"),
    pytest.param(on_gpu, id="gpu", marks=pytest.mark.gpu),
]


def scheduled(handle, schedule):
    """The same kernel, with this one schedule."""
    return type(handle.script_name, (handle.script_cls,), {"debug_schedule": schedule})()


def poisoned(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    """An output that shows where nobody wrote."""
    return torch.full(shape, float("nan"), dtype=dtype)


def assert_close(out: torch.Tensor, reference: torch.Tensor, tolerance: float | None = None) -> None:
    """Judge the whole result by its relative error against a reference in higher precision.

    The tolerance is that of the result's dtype, unless the operands are less precise than that.
    """
    assert not out.isnan().any(), f"{int(out.isnan().sum())} elements are NaN"
    wide = out.double()
    error = (wide - reference).norm() / max(float(reference.norm()), 1e-30)
    assert error <= (tolerance or TOLERANCE[out.dtype]), f"relative error {error:.2e}"
