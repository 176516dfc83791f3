# SPDX-License-Identifier: Apache-2.0
"""Whether two pieces of IR say the same, up to the names of tensors and variables and the places they come from."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from tilekit.ir import stmt as stmts
from tilekit.ir.func import Analysis, Function, Metadata
from tilekit.ir.inst import Instruction, Role
from tilekit.ir.prog import Program
from tilekit.ir.stmt import Stmt
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.ir.text import blocks, names, printer
from tilekit.ir.text.blocks import Block, Let, Line, Scope
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var

T = TypeVar("T")
# the variable, the tensor, and where in it
_Item: TypeAlias = "tuple[Var, Tensor, tuple[Expr, ...]]"
Comparable: TypeAlias = "Program | Function | Stmt | Instruction"


def structurally_equal(a: Comparable, b: Comparable) -> bool:
    """Whether `a` becomes `b` by giving its tensors and variables other names, one to one.

    What only one of the two could bind, a parameter of a lone statement for example, must be the same object in both.
    Sequences inside sequences make no difference, as they make none in print.
    """
    match a, b:
        case Program(), Program():
            theirs = b.functions
            return a.functions.keys() == theirs.keys() and all(_functions(f, theirs[n]) for n, f in a.functions.items())
        case Function(), Function():
            return _functions(a, b)
        case Stmt(), Stmt():
            return _Matching().blocks(blocks.block_of(a), blocks.block_of(b))
        case Instruction(), Instruction():
            return _Matching().instructions(a, b)
        case _:
            return False


def _functions(a: Function, b: Function) -> bool:
    return _Matching().functions(a, b)


class _Matching:
    """Which tensor and which variable of `b` stands for which of `a`: one to one, and fixed once it is said."""

    def __init__(self) -> None:
        self.theirs: dict[Any, Any] = {}
        self.ours: dict[Any, Any] = {}

    def bind(self, a: Tensor | Var, b: Tensor | Var) -> bool:
        """Whether `b` can stand for `a` from here on."""
        if a in self.theirs or b in self.ours:
            return self.theirs.get(a) is b and self.ours.get(b) is a
        self.theirs[a], self.ours[b] = b, a
        return True

    def bind_vars(self, a: Iterable[Var], b: Iterable[Var]) -> bool:
        return _each(lambda x, y: scalar.dtype_of(x) == scalar.dtype_of(y) and self.bind(x, y), a, b)

    # ------------------------------------------------------------------------------------------------- functions

    def functions(self, a: Function, b: Function) -> bool:
        return (
            a.name == b.name
            and self.bind_vars(a.params, b.params)
            and self.bind_vars(a.metadata.block_indices, b.metadata.block_indices)
            and self.blocks(blocks.block_of(a.body), blocks.block_of(b.body))
            and self.metadata(a.metadata, b.metadata)
        )

    def metadata(self, a: Metadata, b: Metadata) -> bool:
        return (
            self.exprs(a.grid_blocks, b.grid_blocks)
            and a.cluster_blocks == b.cluster_blocks
            and a.num_warps == b.num_warps
            and self.facts(a.param2divisibility, b.param2divisibility)
            and self.analyses(a.analysis, b.analysis)
        )

    def analyses(self, a: Analysis | None, b: Analysis | None) -> bool:
        if a is None or b is None:
            return a is b
        return all(self.facts(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(Analysis))

    def facts(self, a: Mapping[Var, int], b: Mapping[Var, int]) -> bool:
        """Facts about variables that the function no longer has say nothing."""
        ours = {self.var(x): fact for x, fact in a.items() if x in self.theirs or names.is_special(x)}
        theirs = {y: fact for y, fact in b.items() if y in self.ours or names.is_special(y)}
        return ours == theirs

    # ------------------------------------------------------------------------------------------------ statements

    def blocks(self, a: Block, b: Block) -> bool:
        return _each(self.lines, a, b)

    def lines(self, a: Line, b: Line) -> bool:
        match a, b:
            case Let(), Let():
                return self.expr(a.value, b.value) and self.bind_vars([a.var], [b.var])
            case Scope(), Scope():
                return self.blocks(a.body, b.body)
            case stmts.ForStmt(), stmts.ForStmt():
                return (
                    a.unroll_factor == b.unroll_factor
                    and self.expr(a.extent, b.extent)
                    and self.bind_vars([a.iter_var], [b.iter_var])
                    and self.bodies(a.body, b.body)
                )
            case stmts.WhileStmt(), stmts.WhileStmt():
                return self.expr(a.cond, b.cond) and self.bodies(a.body, b.body)
            case stmts.IfStmt(), stmts.IfStmt():
                return (
                    self.expr(a.cond, b.cond)
                    and self.bodies(a.then_body, b.then_body)
                    and self.bodies(a.else_body, b.else_body)
                )
            case stmts.DeclareStmt(), stmts.DeclareStmt():
                return self.optional_expr(a.init, b.init) and self.bind_vars([a.var], [b.var])
            case stmts.AssignStmt(), stmts.AssignStmt():
                return self.expr(a.value, b.value) and self.var(a.var) is b.var
            case stmts.TensorItemValueStmt(), stmts.TensorItemValueStmt():
                return self.items((a.var, a.tensor, a.offsets), (b.var, b.tensor, b.offsets))
            case stmts.TensorItemPtrStmt(), stmts.TensorItemPtrStmt():
                return self.items((a.ptr_var, a.tensor, a.offsets), (b.ptr_var, b.tensor, b.offsets))
            case stmts.InstStmt(), stmts.InstStmt():
                return self.instructions(a.inst, b.inst)
            case (stmts.BreakStmt(), stmts.BreakStmt()) | (stmts.ReturnStmt(), stmts.ReturnStmt()):
                return True
            case _:
                return False

    def items(self, a: _Item, b: _Item) -> bool:
        return self.operands(a[1], b[1]) and self.exprs(a[2], b[2]) and self.bind_vars([a[0]], [b[0]])

    def bodies(self, a: Stmt | None, b: Stmt | None) -> bool:
        return self.blocks(blocks.block_of(a), blocks.block_of(b))

    # ---------------------------------------------------------------------------------------------- instructions

    def instructions(self, a: Instruction, b: Instruction) -> bool:
        if type(a) is not type(b):
            return False
        ours, theirs = (inst.fields_of(Role.OPERAND, Role.INOUT).values() for inst in (a, b))
        return _each(self.operands, ours, theirs) and self.attributes(a, b) and self.outputs(a.output, b.output)

    def operands(self, a: Any, b: Any) -> bool:
        if isinstance(a, tuple) and isinstance(b, tuple):
            return _each(self.operands, cast("tuple[Any, ...]", a), cast("tuple[Any, ...]", b))
        return self.theirs.get(a, a) is b

    def outputs(self, a: Tensor | None, b: Tensor | None) -> bool:
        if a is None or b is None:
            return a is b
        return self.bind(a, b) and self.types(a, b)

    def types(self, a: Tensor, b: Tensor) -> bool:
        if type(a) is not type(b) or a.dtype is not b.dtype:
            return False
        match a, b:
            case (RegisterTensor(), RegisterTensor()) | (SharedTensor(), SharedTensor()):
                return a.shape == b.shape and a.optional_layout == b.optional_layout
            case GlobalTensor(), GlobalTensor():
                return self.exprs(a.layout.shape, b.layout.shape) and self.exprs(a.layout.strides, b.layout.strides)
            case _:
                return False

    def attributes(self, a: Instruction, b: Instruction) -> bool:
        """Scalars and plain data; what binders bind is good for this instruction alone."""
        outer = dict(self.theirs), dict(self.ours)
        equal = (
            _each(self.bind_vars, a.fields_of(Role.BINDER).values(), b.fields_of(Role.BINDER).values())
            and _each(self.scalars, a.fields_of(Role.SCALAR).values(), b.fields_of(Role.SCALAR).values())
            and _each(_data, a.fields_of(Role.STATIC).values(), b.fields_of(Role.STATIC).values())
        )
        self.theirs, self.ours = outer
        return equal

    # ----------------------------------------------------------------------------------------------- expressions

    def scalars(self, a: Any, b: Any) -> bool:
        if isinstance(a, tuple):
            ours, theirs = cast("tuple[Expr, ...]", a), cast("tuple[Expr, ...]", b)
            return isinstance(b, tuple) and self.exprs(ours, theirs)
        return not isinstance(b, tuple) and self.optional_expr(a, b)

    def exprs(self, a: Iterable[Expr], b: Iterable[Expr]) -> bool:
        return _each(self.expr, a, b)

    def optional_expr(self, a: Expr | None, b: Expr | None) -> bool:
        if a is None or b is None:
            return a is b
        return self.expr(a, b)

    def expr(self, a: Expr, b: Expr) -> bool:
        return scalar.structurally_equal(a, b, self.theirs)

    def var(self, a: Var) -> Var:
        return self.theirs.get(a, a)


def _each(same: Callable[[T, T], bool], a: Iterable[T], b: Iterable[T]) -> bool:
    """Whether both have as many elements and each is the same as its partner."""
    ours, theirs = list(a), list(b)
    return len(ours) == len(theirs) and all(map(same, ours, theirs))


def _data(a: object, b: object) -> bool:
    """Plain data is compared as it prints: zeros by their sign, nans as equal, truth values unlike numbers."""
    return printer.print_data(a) == printer.print_data(b)
