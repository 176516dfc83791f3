# SPDX-License-Identifier: Apache-2.0
"""The passes over Hidet IR: what emitters may leave lying about is cleared away before printing.

hidet has passes of its own. None of them is used: its simplifiers reassociate floats, ignore overflow and the signs of
C's division, turn zeros into int32 and lose a `break` with the loop around it, and what they were needed for elsewhere,
register indices that depend on the thread, is not built here (`verifier`). A pass that changes nothing returns the
function that it was given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilekit.dtypes import DataType
from tilekit.events import BY_HAND, Sink, Stage, step
from tilekit.lowir import _load, prims, scalar, statements, verifier
from tilekit.lowir.nodes import (
    AssignStmt,
    BlackBoxStmt,
    BreakStmt,
    ContinueStmt,
    DeclareStmt,
    EvaluateStmt,
    Expr,
    ForStmt,
    Function,
    HTensorType,
    IfStmt,
    IRModule,
    SeqStmt,
    Stmt,
    Var,
    WhileStmt,
)
from tilekit.lowir.statements import Printf


@dataclass(frozen=True)
class Pass:
    """A named rewrite of one function."""

    name: str
    run: Callable[[Function], Function]

    def __call__(self, module: IRModule, sink: Sink = BY_HAND) -> IRModule:
        """The module with every function rewritten, of which `sink` is told; the module itself if none changes."""
        with step(sink, Stage.HIDET, self.name, module) as underway:
            functions = {name: self.run(function) for name, function in module.functions.items()}
            changed = any(functions[name] is not function for name, function in module.functions.items())
            after = IRModule(functions) if changed else module
            underway.made(after)
        return after


def simplify(function: Function) -> Function:
    """Take decided branches, loops of no or one iteration, and empty statements out."""
    return statements.with_body(function, _Simplifier().stmt(function.body))


def remove_unused(function: Function) -> Function:
    """Take out variables that nothing reads, and with them what was computed for them alone."""
    body = function.body
    while True:
        read = Counter(statements.reads(body))
        shorter = _Remover(read).stmt(body)
        if shorter is body:
            return statements.with_body(function, body)
        body = shorter


PASSES: tuple[Pass, ...] = (Pass("simplify", simplify), Pass("remove_unused", remove_unused))


def optimize(module: IRModule, sink: Sink = BY_HAND, passes: Sequence[Pass] = PASSES) -> IRModule:
    """Run the passes in order, tell `sink` of each, and verify the result."""
    with _load.lock():
        for run in passes:
            module = run(module, sink)
        verifier.verify(module)
        return module


# ------------------------------------------------------------------------------------------------------------ simplify


class _Simplifier:
    """Rewrites statements, with loop variables of one value replaced by it."""

    def __init__(self) -> None:
        self.values: dict[Var, Expr] = {}

    def expr(self, e: Expr) -> Expr:
        return scalar.rewrite(e, self.values) if self.values else e

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case ForStmt() if _never_repeats(stmt):
                return self.once(stmt)
            case IfStmt() if isinstance(decided := scalar.constant_value(self.expr(stmt.cond)), bool):
                branch = stmt.then_body if decided else stmt.else_body
                return statements.NOTHING if branch is None else self.stmt(branch)
            case _:
                return _tidy(statements.rebuild(stmt, self.stmt, self.expr))

    def once(self, stmt: ForStmt) -> Stmt:
        """The body of a loop that runs at most once."""
        if scalar.constant_value(stmt.extent) < 1:
            return statements.NOTHING
        dtype = scalar.dtype_of(stmt.loop_var)
        assert isinstance(dtype, DataType)
        self.values[stmt.loop_var] = scalar.constant(dtype, 0)
        return self.stmt(stmt.body)


def _never_repeats(stmt: ForStmt) -> bool:
    """Whether a loop is known to run at most once, and no `break` or `continue` needs it."""
    extent = scalar.constant_value(stmt.extent)
    return extent is not None and extent <= 1 and (extent < 1 or not _leaves(stmt.body))


def _leaves(stmt: Stmt) -> bool:
    """Whether a `break` or `continue` leaves this statement."""
    if isinstance(stmt, (BreakStmt, ContinueStmt)):
        return True
    return not isinstance(stmt, (ForStmt, WhileStmt)) and any(map(_leaves, statements.parts(stmt)))


def _tidy(stmt: Stmt) -> Stmt:
    """The statement without empty parts, its sequences flat."""
    match stmt:
        case SeqStmt():
            flat = [part for inner in stmt.seq for part in (inner.seq if isinstance(inner, SeqStmt) else (inner,))]
            return SeqStmt(flat) if any(isinstance(part, SeqStmt) for part in stmt.seq) else stmt
        case IfStmt() if stmt.else_body is not None and _is_empty(stmt.else_body):
            return _tidy(IfStmt(stmt.cond, stmt.then_body))
        case IfStmt() if _is_empty(stmt.then_body) and prims.is_pure(stmt.cond):
            if stmt.else_body is None:
                return statements.NOTHING
            return IfStmt(scalar.logical_not(stmt.cond), stmt.else_body)
        case ForStmt() if _is_empty(stmt.body):
            return statements.NOTHING
        case _:
            return stmt


def _is_empty(stmt: Stmt) -> bool:
    """Whether a statement consists of comments at most."""
    comment = isinstance(stmt, BlackBoxStmt) and not isinstance(stmt, Printf)
    return comment or (isinstance(stmt, SeqStmt) and all(map(_is_empty, stmt.seq)))


# ------------------------------------------------------------------------------------------------------- remove_unused


class _Remover:
    """Drops the declarations and assignments of variables that are not among the read ones."""

    def __init__(self, read: Counter[Var]) -> None:
        self.read = read

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case DeclareStmt() if not self.read[stmt.var]:
                return statements.NOTHING if isinstance(stmt.var.type, HTensorType) else _effects(stmt.init)
            case AssignStmt() if not self.read[stmt.var]:
                return _effects(stmt.value)
            case _:
                return _tidy(statements.rebuild(stmt, self.stmt, lambda e: e))


def _effects(value: Expr | None) -> Stmt:
    """What is left of a value that nobody reads."""
    return statements.NOTHING if value is None or prims.is_pure(value) else EvaluateStmt(value)
