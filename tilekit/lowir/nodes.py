# SPDX-License-Identifier: Apache-2.0
"""The node classes of Hidet IR that tilekit uses, with the types that hidet leaves unsaid.

hidet's expressions overload Python's operators, which fold with Python's meaning, promote silently and ignore overflow.
The declarations here have no operators, so the type checker refuses them: expressions are built by `scalar`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilekit.lowir import _load

_expr = _load.load("ir.expr")
_stmt = _load.load("ir.stmt")
_func = _load.load("ir.func")
_module = _load.load("ir.module")
_type = _load.load("ir.type")

if TYPE_CHECKING:

    class BaseType: ...

    class HDataType(BaseType):
        name: str

        def __init__(self, name: str, short_name: str, nbytes: int) -> None: ...

    class HPointerType(BaseType):
        base_type: BaseType

        def __init__(self, base_type: BaseType) -> None: ...

    class HVoidType(BaseType): ...

    class HTensorType(BaseType):
        dtype: HDataType
        shape: tuple[Expr, ...]

    class HTensorPointerType(BaseType):
        tensor_type: HTensorType

    class HFuncType(BaseType):
        param_types: Sequence[BaseType]
        ret_type: BaseType

        def __init__(self, param_types: Sequence[BaseType], ret_type: BaseType) -> None: ...

    class Expr:
        """A scalar expression; compared by identity, hashable."""

    class Var(Expr):
        """A variable; `hint` is the name it should have, `name` the one it must have."""

        hint: str | None
        name: str | None
        type: BaseType

        def __init__(self, hint: str | None, type: BaseType, name: str | None = None) -> None: ...

    class Constant(Expr):
        value: Any
        type: BaseType

        def __init__(self, value: object, const_type: BaseType) -> None: ...

    class BinaryExpr(Expr):
        a: Expr
        b: Expr

        def __init__(self, a: Expr, b: Expr) -> None: ...

    class UnaryExpr(Expr):
        a: Expr

        def __init__(self, a: Expr) -> None: ...

    class Add(BinaryExpr): ...

    class Sub(BinaryExpr): ...

    class Multiply(BinaryExpr): ...

    class Div(BinaryExpr): ...

    class Mod(BinaryExpr): ...

    class BitwiseAnd(BinaryExpr): ...

    class BitwiseOr(BinaryExpr): ...

    class BitwiseXor(BinaryExpr): ...

    class LeftShift(BinaryExpr): ...

    class RightShift(BinaryExpr): ...

    class LessThan(BinaryExpr): ...

    class LessEqual(BinaryExpr): ...

    class Equal(BinaryExpr): ...

    class NotEqual(BinaryExpr): ...

    class LogicalAnd(BinaryExpr): ...

    class LogicalOr(BinaryExpr): ...

    class LogicalNot(UnaryExpr): ...

    class BitwiseNot(UnaryExpr): ...

    class Neg(UnaryExpr): ...

    class Cast(Expr):
        expr: Expr
        target_type: BaseType

        def __init__(self, expr: Expr, target_type: BaseType) -> None: ...

    class IfThenElse(Expr):
        cond: Expr
        then_expr: Expr
        else_expr: Expr

        def __init__(self, cond: Expr, then_expr: Expr, else_expr: Expr) -> None: ...

    class Call(Expr):
        func_var: Var
        args: tuple[Expr, ...]

        def __init__(self, func_var: Var, args: tuple[Expr, ...]) -> None: ...

    class TensorElement(Expr):
        base: Expr
        indices: tuple[Expr, ...]

        def __init__(self, base: Expr, indices: tuple[Expr, ...]) -> None: ...

    class Address(Expr):
        expr: Expr

        def __init__(self, expr: Expr) -> None: ...

    class Dereference(Expr):
        expr: Expr

        def __init__(self, expr: Expr) -> None: ...

    class Stmt: ...

    class EvaluateStmt(Stmt):
        expr: Expr

        def __init__(self, expr: Expr) -> None: ...

    class DeclareStmt(Stmt):
        var: Var
        init: Expr | None

        def __init__(self, var: Var, init: Expr | None = None) -> None: ...

    class BufferStoreStmt(Stmt):
        buf: Expr
        indices: tuple[Expr, ...]
        value: Expr

        def __init__(self, buf: Expr, indices: Sequence[Expr], value: Expr) -> None: ...

    class AssignStmt(Stmt):
        var: Var
        value: Expr

        def __init__(self, var: Var, value: Expr) -> None: ...

    class ReturnStmt(Stmt): ...

    class LetStmt(Stmt):
        bind_vars: Sequence[Var]
        bind_values: Sequence[Expr]
        body: Stmt

        def __init__(self, bind_vars: Sequence[Var], bind_values: Sequence[Expr], body: Stmt) -> None: ...

    class ForStmtAttr:
        unroll: bool
        unroll_factor: int | None
        unroll_explicit: bool

        def __init__(
            self, unroll: bool = False, unroll_factor: int | None = None, unroll_explicit: bool = False
        ) -> None: ...

    class ForStmt(Stmt):
        loop_var: Var
        extent: Expr
        body: Stmt
        attr: ForStmtAttr

        def __init__(self, loop_var: Var, extent: Expr, body: Stmt, *, attr: ForStmtAttr) -> None: ...

    class WhileStmt(Stmt):
        cond: Expr
        body: Stmt

        def __init__(self, cond: Expr, body: Stmt) -> None: ...

    class BreakStmt(Stmt): ...

    class ContinueStmt(Stmt): ...

    class IfStmt(Stmt):
        cond: Expr
        then_body: Stmt
        else_body: Stmt | None

        def __init__(self, cond: Expr, then_body: Stmt, else_body: Stmt | None = None) -> None: ...

    class SeqStmt(Stmt):
        seq: tuple[Stmt, ...]

        def __init__(self, seq: Sequence[Stmt]) -> None: ...

    class BlackBoxStmt(Stmt):
        template_string: str

        def __init__(self, template_string: str, *exprs: Expr) -> None: ...

    class Function:
        name: str
        kind: str
        params: list[Var]
        body: Stmt
        ret_type: BaseType
        attrs: dict[str, Any]

        def __init__(
            self,
            name: str,
            params: Sequence[Var],
            body: Stmt,
            ret_type: BaseType,
            kind: str,
            attrs: dict[str, Any] | None = None,
        ) -> None: ...

    class IRModule:
        functions: dict[str, Function]

        def __init__(self, functions: dict[str, Function] | None = None) -> None: ...

else:
    BaseType = _type.BaseType
    HDataType = _type.DataType
    HPointerType = _type.PointerType
    HVoidType = _type.VoidType
    HTensorType = _type.TensorType
    HTensorPointerType = _type.TensorPointerType
    HFuncType = _type.FuncType

    Expr = _expr.Expr
    Var = _expr.Var
    Constant = _expr.Constant
    BinaryExpr = _expr.BinaryExpr
    UnaryExpr = _expr.UnaryExpr
    Add = _expr.Add
    Sub = _expr.Sub
    Multiply = _expr.Multiply
    Div = _expr.Div
    Mod = _expr.Mod
    BitwiseAnd = _expr.BitwiseAnd
    BitwiseOr = _expr.BitwiseOr
    BitwiseXor = _expr.BitwiseXor
    LeftShift = _expr.LeftShift
    RightShift = _expr.RightShift
    LessThan = _expr.LessThan
    LessEqual = _expr.LessEqual
    Equal = _expr.Equal
    NotEqual = _expr.NotEqual
    LogicalAnd = _expr.LogicalAnd
    LogicalOr = _expr.LogicalOr
    LogicalNot = _expr.LogicalNot
    BitwiseNot = _expr.BitwiseNot
    Neg = _expr.Neg
    Cast = _expr.Cast
    IfThenElse = _expr.IfThenElse
    Call = _expr.Call
    TensorElement = _expr.TensorElement
    Address = _expr.Address
    Dereference = _expr.Dereference

    Stmt = _stmt.Stmt
    EvaluateStmt = _stmt.EvaluateStmt
    DeclareStmt = _stmt.DeclareStmt
    BufferStoreStmt = _stmt.BufferStoreStmt
    AssignStmt = _stmt.AssignStmt
    ReturnStmt = _stmt.ReturnStmt
    LetStmt = _stmt.LetStmt
    ForStmtAttr = _stmt.ForStmtAttr
    ForStmt = _stmt.ForStmt
    WhileStmt = _stmt.WhileStmt
    BreakStmt = _stmt.BreakStmt
    ContinueStmt = _stmt.ContinueStmt
    IfStmt = _stmt.IfStmt
    SeqStmt = _stmt.SeqStmt
    BlackBoxStmt = _stmt.BlackBoxStmt

    Function = _func.Function
    IRModule = _module.IRModule
