# SPDX-License-Identifier: Apache-2.0
"""Loads, stores and copies of boxes become generic ones: a pointer, and an offset and a mask for every position.

A view's pointer is fixed where the view is made. If its value could change before it is used, or if two places make
the same view, a variable keeps it, and a view of its own, made right there, finds a single element. A variable holds
the pointer of a workspace too, which only the launch knows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from tilekit import dtypes
from tilekit.dtypes import PointerType
from tilekit.ir.func import Function
from tilekit.ir.functors import IRRewriter
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.copy_async import CopyAsyncGenericInst, CopyAsyncInst
from tilekit.ir.instructions.memory import (
    GlobalViewInst,
    LoadGlobalGenericInst,
    LoadGlobalInst,
    StoreGlobalGenericInst,
    StoreGlobalInst,
)
from tilekit.ir.instructions.workspace import AllocateGlobalInst
from tilekit.ir.stmt import (
    AssignStmt,
    DeclareStmt,
    InstStmt,
    SeqStmt,
    Stmt,
    TensorItemPtrStmt,
    TensorItemValueStmt,
)
from tilekit.ir.tensor import GlobalTensor
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var
from tilekit.transforms.base import Pass


class LowerLoadStorePass(Pass):
    """Turns `load_global`, `store_global` and `copy_async` into their generic forms; views are dead afterwards."""

    def process_function(self, func: Function) -> Function:
        rewriter = _Rewriter(func)
        if not rewriter.asked and not collect(func, (LoadGlobalInst, StoreGlobalInst, CopyAsyncInst)):
            return func
        lowered = rewriter.visit(func)
        declared = [DeclareStmt(var, None) for var in rewriter.kept.values()]
        return lowered.with_body(SeqStmt((*declared, lowered.body))) if declared else lowered


def lower_load_store_pass() -> Pass:
    return LowerLoadStorePass()


class _Rewriter(IRRewriter):
    def __init__(self, func: Function) -> None:
        super().__init__()
        made: defaultdict[GlobalTensor, list[Expr]] = defaultdict(list)
        for inst in collect(func, GlobalViewInst):
            made[inst.view].append(inst.ptr)
        mutable = {stmt.var for stmt in collect(func, DeclareStmt)}
        self.pointers: dict[GlobalTensor, Expr] = {}
        self.kept: dict[GlobalTensor, Var] = {}
        for view, pointers in made.items():
            if len(pointers) == 1 and not any(var in mutable for var in scalar.free_vars(pointers[0])):
                self.pointers[view] = pointers[0]
            else:
                kept = scalar.var(f"{view.name or 'view'}_ptr", scalar.dtype_of(pointers[0]))
                self.pointers[view] = self.kept[view] = kept
        self.asked = _elements(func, self.kept)
        used = {inst.src for inst in collect(func, (LoadGlobalInst, CopyAsyncInst))}
        used |= {inst.dst for inst in collect(func, StoreGlobalInst)}
        self.workspaces: dict[GlobalTensor, Var] = {
            inst.tensor: scalar.var(f"{inst.tensor.name or 'workspace'}_ptr", PointerType(inst.tensor.dtype))
            for inst in collect(func, AllocateGlobalInst)
            if inst.tensor in used
        }
        self.pointers |= self.workspaces

    def visit_AllocateGlobalInst(self, inst: AllocateGlobalInst) -> Instruction | Stmt:
        pointer = self.workspaces.get(inst.tensor)
        if pointer is None:
            return inst
        first = tuple(scalar.constant(dtypes.int32, 0) for _ in inst.tensor.shape)
        return SeqStmt((InstStmt(inst, span=inst.span), TensorItemPtrStmt(pointer, inst.tensor, first, span=inst.span)))

    def visit_TensorItemValueStmt(self, stmt: TensorItemValueStmt) -> Stmt:
        return self._element(stmt)

    def visit_TensorItemPtrStmt(self, stmt: TensorItemPtrStmt) -> Stmt:
        return self._element(stmt)

    def _element(self, stmt: TensorItemValueStmt | TensorItemPtrStmt) -> Stmt:
        view = stmt.tensor
        if stmt not in self.asked or not isinstance(view, GlobalTensor):
            return stmt
        own = GlobalTensor(view.dtype, view.layout, name=view.name)
        made = GlobalViewInst(own, self.pointers[view], span=stmt.span)
        return SeqStmt((InstStmt(made, span=stmt.span), stmt.replace(tensor=own)))

    def visit_GlobalViewInst(self, inst: GlobalViewInst) -> Instruction | Stmt:
        kept = self.kept.get(inst.view)
        if kept is None:
            return inst
        return SeqStmt((InstStmt(inst, span=inst.span), AssignStmt(kept, inst.ptr, span=inst.span)))

    def visit_LoadGlobalInst(self, inst: LoadGlobalInst) -> Instruction:
        access = inst.access(self.pointers[inst.src])
        return LoadGlobalGenericInst(inst.output, *access, span=inst.span)

    def visit_CopyAsyncInst(self, inst: CopyAsyncInst) -> Instruction:
        access = inst.access(self.pointers[inst.src])
        return CopyAsyncGenericInst(None, inst.dst, *access, evict=inst.evict, span=inst.span)

    def visit_StoreGlobalInst(self, inst: StoreGlobalInst) -> Instruction:
        access = inst.access(self.pointers[inst.dst])
        return StoreGlobalGenericInst(None, inst.x, *access, span=inst.span)


def _elements(func: Function, kept: Mapping[GlobalTensor, Var]) -> set[Stmt]:
    """The statements that ask for an element of a view whose pointer a variable keeps."""
    asking = [stmt for stmt in collect(func, (TensorItemValueStmt, TensorItemPtrStmt)) if stmt.tensor in kept]
    # a view of its own has the keeper for its pointer, and is used once
    uses = Counter(stmt.tensor for stmt in asking)
    uses.update(inst.src for inst in collect(func, (LoadGlobalInst, CopyAsyncInst)))
    uses.update(inst.dst for inst in collect(func, StoreGlobalInst))
    own = {inst.view for inst in collect(func, GlobalViewInst) if isinstance(inst.ptr, Var) and uses[inst.view] == 1}
    return {stmt for stmt in asking if stmt.tensor not in own}
