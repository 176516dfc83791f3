# SPDX-License-Identifier: Apache-2.0
"""Loads and stores of boxes become generic ones: a pointer, and an offset and a mask for every position of the tile.

A view's pointer is fixed where the view is made. If its value could change before it is used, or if two places make
the same view, a variable keeps it.
"""

from __future__ import annotations

from collections import defaultdict

from tilekit.ir.func import Function
from tilekit.ir.functors import IRRewriter
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.memory import (
    GlobalViewInst,
    LoadGlobalGenericInst,
    LoadGlobalInst,
    StoreGlobalGenericInst,
    StoreGlobalInst,
)
from tilekit.ir.stmt import AssignStmt, DeclareStmt, InstStmt, SeqStmt, Stmt
from tilekit.ir.tensor import GlobalTensor
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var
from tilekit.transforms.base import Pass


class LowerLoadStorePass(Pass):
    """Turns `load_global` and `store_global` into their generic forms; views are dead afterwards."""

    def process_function(self, func: Function) -> Function:
        if not collect(func, (LoadGlobalInst, StoreGlobalInst)):
            return func
        rewriter = _Rewriter(func)
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

    def visit_GlobalViewInst(self, inst: GlobalViewInst) -> Instruction | Stmt:
        kept = self.kept.get(inst.view)
        if kept is None:
            return inst
        return SeqStmt((InstStmt(inst, span=inst.span), AssignStmt(kept, inst.ptr, span=inst.span)))

    def visit_LoadGlobalInst(self, inst: LoadGlobalInst) -> Instruction:
        access = inst.access(self.pointers[inst.src])
        return LoadGlobalGenericInst(inst.output, *access, span=inst.span)

    def visit_StoreGlobalInst(self, inst: StoreGlobalInst) -> Instruction:
        access = inst.access(self.pointers[inst.dst])
        return StoreGlobalGenericInst(None, inst.x, *access, span=inst.span)
