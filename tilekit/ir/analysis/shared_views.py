# SPDX-License-Identifier: Apache-2.0
"""Views of shared tensors: which tensor's memory they show."""

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
