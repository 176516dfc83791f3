# SPDX-License-Identifier: Apache-2.0
"""Passes that make a program wrong, each in its own way; all of them keep the rules of the IR."""

from dataclasses import replace

from tilekit import dtypes
from tilekit.ir.func import Function
from tilekit.ir.functors import IRRewriter
from tilekit.ir.instructions.copy_async import CopyAsyncCommitGroupInst, CopyAsyncWaitGroupInst
from tilekit.ir.instructions.memory import (
    LoadGlobalGenericInst,
    LoadGlobalInst,
    StoreGlobalGenericInst,
    StoreGlobalInst,
)
from tilekit.ir.instructions.register import AllocateRegisterInst
from tilekit.ir.instructions.shared import StoreSharedInst
from tilekit.ir.instructions.sync import SyncThreadsInst
from tilekit.ir.layout.shared_layout import shared_layout
from tilekit.ir.stmt import ForStmt, InstStmt, SeqStmt, Stmt
from tilekit.ir.tensor import RegisterTensor, SharedTensor
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.transforms import Pass


class _Changed(IRRewriter):
    """Rewrites every instruction or loop that `change` wants to change."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def visit_Instruction(self, inst):
        return self.change(inst)

    def visit_ForStmt(self, loop):
        return self.change(super().visit_ForStmt(loop))


class WrongPass(Pass):
    """Changes what `change` says; a subclass that finds nothing to change is a mistake of the test."""

    def process_function(self, func: Function) -> Function:
        changed = _Changed(self.change).visit(func)
        assert changed is not func, f"{self.name} found nothing to change"
        return changed

    def change(self, node):
        return node


class DropBarrierPass(WrongPass):
    """Takes out one barrier of several."""

    def __init__(self, number: int):
        self.number = number

    def process_function(self, func):
        self.dropped = collect(func, SyncThreadsInst)[self.number]
        return super().process_function(func)

    def change(self, node):
        return None if node is self.dropped else node


class SwapOffsetsPass(WrongPass):
    """Reads a tile at (column, row)."""

    def change(self, node):
        return node.replace(offsets=node.offsets[::-1]) if isinstance(node, LoadGlobalInst) else node


class LateMaskPass(WrongPass):
    """Of what is stored under a mask, leaves the last element of each row out."""

    def change(self, node):
        if not isinstance(node, StoreGlobalGenericInst):
            return node
        last = scalar.lt(node.axes[-1], scalar.int32(node.x.shape[-1] - 1))
        return node.replace(mask=last if node.mask is None else scalar.logical_and(node.mask, last))


class NoMaskPass(WrongPass):
    """Loads behind the end of a tensor."""

    def change(self, node):
        return node.replace(mask=None) if isinstance(node, LoadGlobalGenericInst) and node.mask is not None else node


class ShortLoopPass(WrongPass):
    """Runs loops once less."""

    def change(self, node):
        return node.replace(extent=scalar.sub(node.extent, scalar.int32(1))) if isinstance(node, ForStmt) else node


class NextElementPass(WrongPass):
    """Loads what lies one element further."""

    def change(self, node):
        if not isinstance(node, LoadGlobalGenericInst):
            return node
        return node.replace(offset=scalar.add(node.offset, scalar.cast(scalar.int32(1), scalar.dtype_of(node.offset))))


class NoStorePass(WrongPass):
    """Forgets what is stored in shared memory last."""

    def process_function(self, func):
        self.last = collect(func, StoreSharedInst)[-1]
        return super().process_function(func)

    def change(self, node):
        return None if node is self.last else node


class NoGlobalStorePass(WrongPass):
    """Forgets what is stored in global memory."""

    def change(self, node):
        return None if isinstance(node, StoreGlobalInst) else node


class _Retyped(IRRewriter):
    def __init__(self, wanted, made):
        super().__init__()
        self.wanted, self.made = wanted, made

    def visit_Tensor(self, tensor):
        return self.made(tensor) if self.wanted(tensor) else tensor


class NarrowSumPass(Pass):
    """Keeps accumulators of float32 in float16."""

    def process_function(self, func):
        def wide(tensor):
            return isinstance(tensor, RegisterTensor) and tensor.name == "acc" and tensor.dtype is dtypes.float32

        return _Narrowed(wide, lambda tensor: replace(tensor, dtype=dtypes.float16)).visit(func)


class _Narrowed(_Retyped):
    def visit_AllocateRegisterInst(self, inst):
        made = self.visit_Instruction(inst)
        return made if made is inst else made.replace(init=scalar.cast(inst.init, dtypes.float16))


class EveryRowInOnePlacePass(Pass):
    """Gives shared tensors a layout in which all rows lie on the first."""

    def process_function(self, func):
        def flat(tensor):
            strides = [0] * (len(tensor.shape) - 1) + [1]
            return replace(tensor, optional_layout=shared_layout(tensor.shape, tensor.shape, strides))

        return _Retyped(lambda tensor: isinstance(tensor, SharedTensor), flat).visit(func)


class LateCommitPass(Pass):
    """In a loop that waits for copies and starts others, makes a group of those behind the wait that counts on it."""

    def process_function(self, func):
        return _Reordered().visit(func)


class _Reordered(IRRewriter):
    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        children = list(super().visit_SeqStmt(stmt).seq)
        kinds = [type(each.inst) if isinstance(each, InstStmt) else None for each in children]
        if CopyAsyncWaitGroupInst in kinds and CopyAsyncCommitGroupInst in kinds:
            commit = children.pop(kinds.index(CopyAsyncCommitGroupInst))
            children.insert(kinds.index(CopyAsyncWaitGroupInst) + 1, commit)
            return stmt.replace(seq=tuple(children))
        return super().visit_SeqStmt(stmt)


class LooseWaitPass(WrongPass):
    """Waits for one group of copies less."""

    def change(self, node):
        return node.replace(n=node.n + 1) if isinstance(node, CopyAsyncWaitGroupInst) else node


class RaisingPass(Pass):
    def process_function(self, func):
        raise RuntimeError("this pass\nfails")


class FromOnePass(WrongPass):
    """Begins sums with 1."""

    def change(self, node):
        is_sum = isinstance(node, AllocateRegisterInst) and node.init is not None
        return node.replace(init=scalar.constant(node.register_output.dtype, 1)) if is_sum else node


class RebuildPass(WrongPass):
    """Makes every barrier anew, which is right."""

    def change(self, node):
        return SyncThreadsInst.create() if isinstance(node, SyncThreadsInst) else node


class InPlacePass(Pass):
    """Changes the program that it is given, and hands it on."""

    def process_function(self, func):
        loop = next(stmt for stmt in collect(func, ForStmt))
        object.__setattr__(loop, "extent", scalar.sub(loop.extent, scalar.int32(1)))
        return func
