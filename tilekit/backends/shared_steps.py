# SPDX-License-Identifier: Apache-2.0
"""A tile program as steps on shared memory: what its tensors and the workspaces of its instructions need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilekit.backends import registry, shared_memory
from tilekit.backends.shared_memory import ALIGNMENT, Branch, Buffer, Leave, Loop, Plan, Step
from tilekit.ir.analysis import shared_views
from tilekit.ir.func import Function
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.shared import AllocateSharedInst, FreeSharedInst
from tilekit.ir.stmt import (
    BreakStmt,
    ForStmt,
    IfStmt,
    InstStmt,
    LetStmt,
    ReturnStmt,
    SeqStmt,
    Stmt,
    TensorItemPtrStmt,
    TensorItemValueStmt,
    WhileStmt,
)
from tilekit.ir.tensor import SharedTensor, Tensor
from tilekit.target import Target


@dataclass(frozen=True)
class SharedPlan:
    """The first byte of every allocated tensor and workspace, and before which steps a barrier must stand.

    `nbytes` is what a tensor, or an instruction for its workspace, takes.
    """

    tensors: Mapping[SharedTensor, int]
    workspaces: Mapping[Instruction, int]
    nbytes: Mapping[SharedTensor | Instruction, int]
    plan: Plan

    def needs_barrier(self, owner: Instruction | Stmt) -> bool:
        return owner in self.plan.barriers


def plan(func: Function, target: Target) -> SharedPlan:
    """Place everything that a kernel keeps in shared memory."""
    steps = _Steps(func, target)
    found = shared_memory.plan(steps.of(func.body))
    return SharedPlan(
        {tensor: found.offsets[buffer] for tensor, buffer in steps.tensors.items()},
        {inst: found.offsets[buffer] for inst, buffer in steps.workspaces.items()},
        {owner: buffer.nbytes for owner, buffer in (*steps.tensors.items(), *steps.workspaces.items())},
        found,
    )


class _Steps:
    def __init__(self, func: Function, target: Target) -> None:
        self.target = target
        self.views = shared_views.views(func)
        self.tensors: dict[SharedTensor, Buffer] = {}
        self.workspaces: dict[Instruction, Buffer] = {}

    def of(self, stmt: Stmt) -> shared_memory.Tree:
        match stmt:
            case SeqStmt():
                return [step for child in stmt.seq for step in self.of(child)]
            case InstStmt():
                return [self.instruction(stmt.inst)]
            case ForStmt() | WhileStmt():
                return [Loop(self.of(stmt.body))]
            case IfStmt():
                return [Branch((self.of(stmt.then_body), self.of(stmt.else_body or SeqStmt(()))))]
            case LetStmt():
                return self.of(stmt.body)
            case TensorItemValueStmt() | TensorItemPtrStmt():
                return [Step(stmt, touches=self.buffers(stmt.tensor))]
            case BreakStmt() | ReturnStmt():
                return [Leave(kernel=isinstance(stmt, ReturnStmt))]
            case _:
                return []

    def instruction(self, inst: Instruction) -> Step:
        match inst:
            case AllocateSharedInst():
                return Step(inst, begins=(self.allocated(inst.shared_output),))
            case FreeSharedInst():
                return Step(inst, ends=self.buffers(inst.tensor))
            case _ if inst.output in self.views:
                return Step(inst)
            case _:
                return self.access(inst)

    def access(self, inst: Instruction) -> Step:
        emitter = registry.find(inst, self.target)
        nbytes = emitter.workspace(inst)
        touched = tuple(buffer for tensor in inst.inputs for buffer in self.buffers(tensor))
        if not nbytes:
            return Step(inst, touches=touched, settles=emitter.barrier)
        own = self.workspaces[inst] = Buffer(nbytes, name=f"workspace of {inst.opcode}")
        return Step(inst, (own,), (*touched, own), (own,), barrier=True, settles=emitter.barrier)

    def allocated(self, tensor: SharedTensor) -> Buffer:
        if tensor not in self.tensors:
            layout, element = tensor.layout, tensor.dtype.nbytes
            swizzle = layout.optional_swizzle
            period = 1 if swizzle is None else swizzle.period * element
            self.tensors[tensor] = Buffer(layout.count_size() * element, max(ALIGNMENT, period), tensor.name)
        return self.tensors[tensor]

    def buffers(self, tensor: Tensor) -> tuple[Buffer, ...]:
        """The memory that a tensor shows, if it is shared."""
        return (self.allocated(shared_views.root(tensor, self.views)),) if isinstance(tensor, SharedTensor) else ()
