# SPDX-License-Identifier: Apache-2.0
"""Views of shared tensors: which tensor's memory they show, and along which of their dimensions it is contiguous."""

from __future__ import annotations

from collections.abc import Mapping

from tilekit.ir.func import Function
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.shared import PermuteSharedInst, ReshapeSharedInst, SliceSharedInst
from tilekit.ir.tensor import SharedTensor
from tilekit.ir.tools.instruction_collector import collect

VIEWS = (SliceSharedInst, PermuteSharedInst, ReshapeSharedInst)
View = SliceSharedInst | PermuteSharedInst | ReshapeSharedInst


def views(func: Function) -> Mapping[SharedTensor, View]:
    """The instruction that makes each view."""
    return {inst.shared_output: inst for inst in collect(func, Instruction) if isinstance(inst, VIEWS)}


def root(tensor: SharedTensor, made: Mapping[SharedTensor, View]) -> SharedTensor:
    """The allocated tensor whose memory `tensor` shows."""
    while tensor in made:
        tensor = made[tensor].x
    return tensor


def inner_dim(tensor: SharedTensor, made: Mapping[SharedTensor, View]) -> int | None:
    """The dimension that runs along the last one of the allocated tensor; None where none does alone."""
    view = made.get(tensor)
    if view is None:
        return len(tensor.shape) - 1 if tensor.shape else None
    inner = inner_dim(view.x, made)
    if inner is None:
        return None
    match view:
        case SliceSharedInst() | PermuteSharedInst():
            return view.dims.index(inner) if inner in view.dims else None
        case ReshapeSharedInst():
            return len(tensor.shape) - 1 if tensor.shape and inner == len(view.x.shape) - 1 else None
