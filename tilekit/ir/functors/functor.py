# SPDX-License-Identifier: Apache-2.0
"""Visiting and rewriting IR: one method per class of node, each node visited once.

`visit(node)` calls `visit_<Class>` of the node's class, or of the nearest base class that has one, and remembers the
result by the identity of the node: a node that appears twice is visited once. A visitor does not enter scalar
expressions (`visit_Expr` does nothing); use `scalar.free_vars` on them.

Within `watched_by(watcher)` every visit of a functor that is made there goes through the watcher: who runs a pass of a
person's own learns from it which method did what.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, cast

from tilekit.ir.func import Function, Metadata
from tilekit.ir.inst import Instruction, Role
from tilekit.ir.prog import Program
from tilekit.ir.stmt import (
    AssignStmt,
    DeclareStmt,
    ForStmt,
    IfStmt,
    InstStmt,
    LetStmt,
    SeqStmt,
    Stmt,
    TensorItemPtrStmt,
    TensorItemValueStmt,
    WhileStmt,
)
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, Tensor
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var


class Watcher(Protocol):
    """Stands around every visit, and answers it with `functor.answer(node)`."""

    def visit(self, functor: IRFunctor, node: Any) -> Any: ...


# a person's pass makes its functors where nobody can hand them anything
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched_by(watcher: Watcher) -> Generator[None]:
    """Within the block, functors that are made are watched."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


class IRFunctor:
    """Dispatch by class, memory by identity."""

    def __init__(self) -> None:
        # the node stays in the memo beside its result, so that its id is not given to another object meanwhile
        self.memo: dict[int, tuple[Any, Any]] = {}
        self._watcher = _watcher.get()

    def visit(self, node: Any) -> Any:
        return self.answer(node) if self._watcher is None else self._watcher.visit(self, node)

    def answer(self, node: Any) -> Any:
        """The result for a node: the remembered one, or that of its method."""
        remembered = self.memo.get(id(node))
        if remembered is not None:
            return remembered[1]
        result = self._dispatch(node)
        self.memo[id(node)] = (node, result)
        return result

    def __call__(self, node: Any) -> Any:
        return self.visit(node)

    def _dispatch(self, node: Any) -> Any:
        return self.method_for(node)(node)

    def method_for(self, node: Any) -> Callable[[Any], Any]:
        """The method that visits a node of this class."""
        if isinstance(node, Expr):
            return self.visit_Expr
        for cls in type(node).__mro__:
            method = getattr(self, f"visit_{cls.__name__}", None)
            if method is not None:
                return method
        raise TypeError(f"{type(self).__name__} cannot visit a {type(node).__name__}")

    def visit_Expr(self, expr: Expr) -> Any:
        raise NotImplementedError

    def visit_NoneType(self, node: None) -> Any:
        return None


class IRVisitor(IRFunctor):
    """Walks the IR and returns nothing; subclasses look at the nodes they name."""

    def visit_Program(self, prog: Program) -> None:
        for func in prog:
            self.visit(func)

    def visit_Function(self, func: Function) -> None:
        for param in func.params:
            self.visit(param)
        self.visit(func.body)

    def visit_SeqStmt(self, stmt: SeqStmt) -> None:
        for child in stmt.seq:
            self.visit(child)

    def visit_ForStmt(self, stmt: ForStmt) -> None:
        self.visit(stmt.extent)
        self.visit(stmt.body)

    def visit_WhileStmt(self, stmt: WhileStmt) -> None:
        self.visit(stmt.cond)
        self.visit(stmt.body)

    def visit_IfStmt(self, stmt: IfStmt) -> None:
        self.visit(stmt.cond)
        self.visit(stmt.then_body)
        self.visit(stmt.else_body)

    def visit_LetStmt(self, stmt: LetStmt) -> None:
        for value in stmt.bind_values:
            self.visit(value)
        self.visit(stmt.body)

    def visit_DeclareStmt(self, stmt: DeclareStmt) -> None:
        self.visit(stmt.init)

    def visit_AssignStmt(self, stmt: AssignStmt) -> None:
        self.visit(stmt.value)

    def visit_TensorItemValueStmt(self, stmt: TensorItemValueStmt) -> None:
        self.visit(stmt.tensor)
        for offset in stmt.offsets:
            self.visit(offset)

    def visit_TensorItemPtrStmt(self, stmt: TensorItemPtrStmt) -> None:
        self.visit(stmt.tensor)
        for offset in stmt.offsets:
            self.visit(offset)

    def visit_Stmt(self, stmt: Stmt) -> None:
        """A statement without parts."""

    def visit_InstStmt(self, stmt: InstStmt) -> None:
        self.visit(stmt.inst)

    def visit_Instruction(self, inst: Instruction) -> None:
        self.visit(inst.output)
        for tensor in inst.inputs:
            self.visit(tensor)
        for value in inst.fields_of(Role.SCALAR).values():
            for expr in cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,):
                self.visit(expr)

    def visit_Tensor(self, tensor: Tensor) -> None:
        """A tensor without expressions."""

    def visit_GlobalTensor(self, tensor: GlobalTensor) -> None:
        for expr in (*tensor.layout.shape, *tensor.layout.strides):
            self.visit(expr)

    def visit_Expr(self, expr: Expr) -> None:
        """Does nothing and does not descend; collect variables with `scalar.free_vars(expr)`."""


class IRRewriter(IRFunctor):
    """Rebuilds what changed and returns the very same node where nothing did."""

    def visit_Program(self, prog: Program) -> Program:
        functions = {name: self.visit(func) for name, func in prog.functions.items()}
        if all(functions[name] is func for name, func in prog.functions.items()):
            return prog
        return Program.create(functions)

    def visit_Function(self, func: Function) -> Function:
        params = _same(func.params, tuple(self.visit(param) for param in func.params))
        return func.replace(params=params, body=self.visit(func.body), metadata=self.visit(func.metadata))

    def visit_Metadata(self, metadata: Metadata) -> Metadata:
        return metadata

    def visit_SeqStmt(self, stmt: SeqStmt) -> Stmt:
        return stmt.replace(seq=_same(stmt.seq, tuple(self.visit(child) for child in stmt.seq)))

    def visit_ForStmt(self, stmt: ForStmt) -> Stmt:
        return stmt.replace(
            iter_var=self.visit(stmt.iter_var), extent=self.visit(stmt.extent), body=self.visit(stmt.body)
        )

    def visit_WhileStmt(self, stmt: WhileStmt) -> Stmt:
        return stmt.replace(cond=self.visit(stmt.cond), body=self.visit(stmt.body))

    def visit_IfStmt(self, stmt: IfStmt) -> Stmt:
        return stmt.replace(
            cond=self.visit(stmt.cond), then_body=self.visit(stmt.then_body), else_body=self.visit(stmt.else_body)
        )

    def visit_LetStmt(self, stmt: LetStmt) -> Stmt:
        return stmt.replace(
            bind_vars=_same(stmt.bind_vars, tuple(self.visit(v) for v in stmt.bind_vars)),
            bind_values=_same(stmt.bind_values, tuple(self.visit(v) for v in stmt.bind_values)),
            body=self.visit(stmt.body),
        )

    def visit_DeclareStmt(self, stmt: DeclareStmt) -> Stmt:
        return stmt.replace(var=self.visit(stmt.var), init=self.visit(stmt.init))

    def visit_AssignStmt(self, stmt: AssignStmt) -> Stmt:
        return stmt.replace(var=self.visit(stmt.var), value=self.visit(stmt.value))

    def visit_TensorItemValueStmt(self, stmt: TensorItemValueStmt) -> Stmt:
        offsets = _same(stmt.offsets, tuple(self.visit(offset) for offset in stmt.offsets))
        return stmt.replace(var=self.visit(stmt.var), tensor=self.visit(stmt.tensor), offsets=offsets)

    def visit_TensorItemPtrStmt(self, stmt: TensorItemPtrStmt) -> Stmt:
        offsets = _same(stmt.offsets, tuple(self.visit(offset) for offset in stmt.offsets))
        return stmt.replace(ptr_var=self.visit(stmt.ptr_var), tensor=self.visit(stmt.tensor), offsets=offsets)

    def visit_Stmt(self, stmt: Stmt) -> Stmt:
        return stmt

    def visit_InstStmt(self, stmt: InstStmt) -> Stmt:
        inst = self.visit(stmt.inst)
        if inst is None:
            return SeqStmt(())
        if isinstance(inst, Stmt):
            return inst
        return stmt.replace(inst=inst)

    def visit_Instruction(self, inst: Instruction) -> Instruction | Stmt | None:
        """Rewrite every part; None deletes the instruction, a statement takes its place."""
        changes: dict[str, Any] = {"output": self.visit(inst.output)}
        for name, value in inst.fields_of(Role.OPERAND, Role.INOUT, Role.SCALAR, Role.BINDER).items():
            if isinstance(value, tuple):
                parts = cast("tuple[Any, ...]", value)
                changes[name] = _same(parts, tuple(self.visit(part) for part in parts))
            else:
                changes[name] = self.visit(value)
        return inst.replace(**changes)

    def visit_Tensor(self, tensor: Tensor) -> Tensor:
        return tensor

    def visit_GlobalTensor(self, tensor: GlobalTensor) -> Tensor:
        layout = tensor.layout
        shape = _same(layout.shape, tuple(self.visit(e) for e in layout.shape))
        strides = _same(layout.strides, tuple(self.visit(e) for e in layout.strides))
        if shape is layout.shape and strides is layout.strides:
            return tensor
        return tensor.replace(layout=GlobalLayout(shape, strides))

    def visit_Expr(self, expr: Expr) -> Expr:
        return expr


def _same(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[Any, ...]:
    """`old` itself where every part of `new` is the same object."""
    return old if len(old) == len(new) and all(a is b for a, b in zip(old, new, strict=True)) else new


class Substitution(IRRewriter):
    """Replaces tensors, instructions and scalar variables by the map it is given."""

    def __init__(self, replacements: Mapping[Any, Any]) -> None:
        super().__init__()
        self.replacements = replacements
        self._variables = {old: new for old, new in replacements.items() if isinstance(old, Var)}

    def _dispatch(self, node: Any) -> Any:
        if not isinstance(node, Expr) and node in self.replacements:
            return self.replacements[node]
        return super()._dispatch(node)

    def visit_Expr(self, expr: Expr) -> Expr:
        return scalar.rewrite(expr, self._variables)
