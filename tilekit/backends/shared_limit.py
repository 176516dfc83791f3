# SPDX-License-Identifier: Apache-2.0
"""A kernel that needs more shared memory than a block has is told which tensors take it, and what to make smaller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilekit.backends.shared_steps import SharedPlan
from tilekit.diag import errors
from tilekit.diag.span import Span
from tilekit.ir.func import Function
from tilekit.ir.instructions.shared import AllocateSharedInst
from tilekit.ir.text.names import Names
from tilekit.ir.tools.instruction_collector import collect
from tilekit.target import Target

# how many of them a person is told about
SHOWN = 6


@dataclass(frozen=True)
class _Taken:
    """Bytes that a tensor takes, and its extents; none for memory that an instruction needs for itself."""

    what: str
    nbytes: int
    span: Span | None
    shape: tuple[int, ...] = ()


def check(func: Function, shared: SharedPlan, names: Names, target: Target) -> None:
    """Raise a `CodegenError` where the plan does not fit."""
    needed, limit = shared.plan.nbytes, target.shared_memory_per_block
    if needed <= limit:
        return
    made_at = {inst.shared_output: inst.span for inst in reversed(collect(func, AllocateSharedInst))}
    tensors = [_Taken(names.name(t), shared.nbytes[t], made_at[t], t.shape) for t in shared.tensors]
    workspaces = [
        _Taken(f"{inst.opcode}, which moves elements between threads,", shared.nbytes[inst], inst.span)
        for inst in shared.workspaces
    ]
    taken = sorted([*tensors, *workspaces], key=lambda each: -each.nbytes)
    error = errors.CodegenError(
        "TK402",
        f"{func.name} needs {needed} bytes of shared memory, {needed - limit} more than the {limit} that a block has "
        f"on {target.name}",
        at=taken[0].span,
        help=_advice(taken, needed - limit),
    )
    for each in taken[:SHOWN]:
        error.noted(f"{each.what} takes {each.nbytes} bytes", each.span)
    raise error


def _advice(taken: Sequence[_Taken], too_much: int) -> str:
    """Fewer stages where tensors of three dimensions have as many, else smaller tiles."""
    for stages in dict.fromkeys(each.shape[0] for each in taken if len(each.shape) > 2):
        alike = [each for each in taken if len(each.shape) > 2 and each.shape[0] == stages]
        saved = sum(each.nbytes // stages for each in alike)
        fewer = -(-too_much // saved)
        if stages > fewer:
            who = " and ".join(each.what for each in alike)
            take = "takes" if len(alike) == 1 else "take"
            return f"fewer stages: with {stages - fewer} in place of {stages}, {who} {take} {fewer * saved} bytes less"
    return "make the tiles smaller, or call self.free_shared on what is not needed any more before others are made"
