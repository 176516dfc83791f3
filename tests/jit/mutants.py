# SPDX-License-Identifier: Apache-2.0
"""A pass that makes one small change somewhere, drawn by a number: a mistake, most of the time."""

import random
from dataclasses import replace

from tilekit import dtypes
from tilekit.ir.functors import IRRewriter
from tilekit.ir.inst import Role
from tilekit.ir.layout.shared_layout import SharedLayout
from tilekit.ir.stmt import Stmt
from tilekit.ir.tensor import RegisterTensor
from tilekit.lowir import scalar
from tilekit.lowir.nodes import Add, LessThan, Multiply
from tilekit.transforms import Pass


class MutantPass(Pass):
    """Makes the change of this number, counted around; `did` says which one that was."""

    def __init__(self, number: int):
        self.number = number
        self.did = ""

    def process_function(self, func):
        counted = _Mutant(-1)
        counted.visit(func)
        mutant = _Mutant(self.number % counted.count)
        made = mutant.visit(func)
        self.did = mutant.did
        return made


class _Mutant(IRRewriter):
    """Counts what could be changed, and changes one of it."""

    def __init__(self, number: int):
        super().__init__()
        self.number = number
        self.count = 0
        self.did = ""

    def changes(self, what: str) -> bool:
        self.count += 1
        if self.count - 1 != self.number:
            return False
        self.did = what
        return True

    def expr(self, e):
        value = scalar.constant_value(e)
        if isinstance(value, int) and not isinstance(value, bool):
            return scalar.constant(scalar.dtype_of(e), value + 1) if self.changes(f"{value} + 1") else e
        parts = scalar.children(e)
        made = [self.expr(part) for part in parts]
        if any(a is not b for a, b in zip(parts, made, strict=True)):
            return scalar.rebuild(e, made)
        match e:
            case LessThan() if self.changes("<="):
                return scalar.le(*parts)
            case Add() if self.changes("-"):
                return scalar.sub(*parts)
            case Multiply() if self.changes("+"):
                return scalar.add(*parts)
            case _:
                return e

    def visit_Instruction(self, inst):
        inst = super().visit_Instruction(inst)
        if inst is None or isinstance(inst, Stmt):
            return inst
        if self.changes(f"no {inst.opcode}"):
            return None
        made = {name: self.field(inst, name, value) for name, value in inst.fields_of(Role.SCALAR, Role.STATIC).items()}
        tiles = [(name, x) for name, x in inst.fields_of(Role.OPERAND).items() if isinstance(x, RegisterTensor)]
        if len(tiles) == 2 and tiles[0][1].shape == tiles[1][1].shape and self.changes(f"swapped {inst.opcode}"):
            made |= {tiles[0][0]: tiles[1][1], tiles[1][0]: tiles[0][1]}
        return inst.replace(**made)

    def field(self, inst, name, value):
        is_scalar = inst.roles()[name] is Role.SCALAR
        if isinstance(value, tuple):
            made = tuple(map(self.expr, value)) if is_scalar else value
            same = all(a is b for a, b in zip(value, made, strict=True))
            return made[::-1] if same and len(made) > 1 and self.changes(f"{name} reversed") else made
        if is_scalar and value is not None:
            made = self.expr(value)
            return None if made is value and name == "mask" and self.changes("no mask") else made
        if isinstance(value, int) and not isinstance(value, bool):
            return value + 1 if self.changes(f"{name} + 1") else value
        return value

    def visit_SharedTensor(self, tensor):
        layout = tensor.optional_layout
        if layout is None:
            return tensor
        shape, extents, strides, swizzle = layout.shape, layout.mode_shape, layout.mode_strides, layout.optional_swizzle
        if self.changes(f"strides of {tensor.name}"):
            return replace(tensor, optional_layout=SharedLayout(shape, extents, strides[::-1], swizzle))
        if swizzle is not None and self.changes(f"no swizzle of {tensor.name}"):
            return replace(tensor, optional_layout=SharedLayout(shape, extents, strides))
        return tensor

    def visit_RegisterTensor(self, tensor):
        narrow = tensor.dtype is dtypes.float32 and self.changes(f"{tensor.name} in float16")
        return replace(tensor, dtype=dtypes.float16) if narrow else tensor

    def visit_ForStmt(self, loop):
        loop = super().visit_ForStmt(loop)
        return loop.replace(extent=self.expr(loop.extent))

    def visit_IfStmt(self, stmt):
        stmt = super().visit_IfStmt(stmt)
        return stmt.replace(cond=scalar.logical_not(stmt.cond)) if self.changes("not") else stmt

    def visit_SeqStmt(self, stmt):
        stmt = super().visit_SeqStmt(stmt)
        seq = list(getattr(stmt, "seq", ()))
        if len(seq) < 2 or not self.changes("two statements the other way round"):
            return stmt
        at = random.Random(self.number).randrange(len(seq) - 1)
        seq[at : at + 2] = seq[at + 1], seq[at]
        return stmt.replace(seq=tuple(seq))

    def visit_AssignStmt(self, stmt):
        return stmt.replace(value=self.expr(super().visit_AssignStmt(stmt).value))

    def visit_LetStmt(self, stmt):
        stmt = super().visit_LetStmt(stmt)
        values = tuple(map(self.expr, stmt.bind_values))
        same = all(a is b for a, b in zip(values, stmt.bind_values, strict=True))
        return stmt if same else stmt.replace(bind_values=values)

    def visit_DeclareStmt(self, stmt):
        stmt = super().visit_DeclareStmt(stmt)
        return stmt if stmt.init is None else stmt.replace(init=self.expr(stmt.init))

    def visit_Expr(self, expr):
        return expr
