# SPDX-License-Identifier: Apache-2.0
"""One thread group of one block, walking through the statements of its kernel."""

from __future__ import annotations

import enum
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.diag.span import Span
from tilekit.dtypes import DataType
from tilekit.ir import stmt as stmts
from tilekit.ir.evaluator.scheduler import Barrier
from tilekit.ir.evaluator.state import Launch, State
from tilekit.ir.inst import Instruction
from tilekit.ir.machine import Steps
from tilekit.ir.stmt import Stmt
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var


class Flow(enum.Enum):
    """Where control goes after a statement."""

    NEXT = enum.auto()
    BREAK = enum.auto()
    RETURN = enum.auto()


Walk: TypeAlias = "Generator[None, None, Flow]"


class Group:
    """A thread group: what it knows is in its state, and it counts its steps."""

    def __init__(
        self, launch: Launch, block: tuple[int, int, int], scalars: Mapping[Var, Any], barrier: Barrier
    ) -> None:
        self.state = State(launch, block, scalars, barrier)
        self.body = launch.func.body
        self.step_limit = launch.step_limit
        self.barrier = barrier
        self.steps = 0

    def run(self) -> Steps:
        yield from self.stmt(self.body)
        self.barrier.leave()

    def stuck(self) -> errors.KernelError:
        return self.state.stuck()

    def stmt(self, stmt: Stmt) -> Walk:
        match stmt:
            case stmts.SeqStmt(seq=seq):
                for child in seq:
                    flow = yield from self.stmt(child)
                    if flow is not Flow.NEXT:
                        return flow
                return Flow.NEXT
            case stmts.InstStmt(inst=inst):
                self.step(inst.span or stmt.span)
                yield from self.instruction(inst)
                return Flow.NEXT
            case _:
                self.step(stmt.span)
        match stmt:
            case stmts.ForStmt():
                return (yield from self._for(stmt))
            case stmts.WhileStmt():
                return (yield from self._while(stmt))
            case stmts.IfStmt(cond=cond, then_body=then_body, else_body=else_body):
                body = then_body if self.state.scalar(cond) else else_body
                return Flow.NEXT if body is None else (yield from self.stmt(body))
            case stmts.LetStmt():
                for var, value in zip(stmt.bind_vars, stmt.bind_values, strict=True):
                    self._assign(var, value)
                return (yield from self.stmt(stmt.body))
            case stmts.DeclareStmt(var=var, init=init):
                if init is None:
                    self.state.env.pop(var, None)
                else:
                    self._assign(var, init)
            case stmts.AssignStmt(var=var, value=value):
                self._assign(var, value)
            case stmts.TensorItemValueStmt():
                with self._placed():
                    self.state.env[stmt.var] = self.state.item(stmt.tensor, stmt.offsets)
            case stmts.TensorItemPtrStmt():
                with self._placed():
                    self.state.point_at_item(stmt.ptr_var, stmt.tensor, stmt.offsets)
            case stmts.BreakStmt():
                return Flow.BREAK
            case stmts.ReturnStmt():
                return Flow.RETURN
            case _:
                raise TypeError(f"{type(stmt).__name__} has no NumPy meaning")
        return Flow.NEXT

    def _for(self, loop: stmts.ForStmt) -> Walk:
        dtype = scalar.dtype_of(loop.iter_var)
        assert isinstance(dtype, DataType)
        for i in range(int(self.state.scalar(loop.extent))):
            self.step(loop.span)
            self.state.env[loop.iter_var] = dtypes.quantize(np.asarray(i), dtype)
            flow = yield from self.stmt(loop.body)
            if flow is not Flow.NEXT:
                return Flow.NEXT if flow is Flow.BREAK else flow
        return Flow.NEXT

    def _while(self, loop: stmts.WhileStmt) -> Walk:
        while self.state.scalar(loop.cond):
            self.step(loop.span)
            flow = yield from self.stmt(loop.body)
            if flow is not Flow.NEXT:
                return Flow.NEXT if flow is Flow.BREAK else flow
            self.step(loop.span)
        return Flow.NEXT

    def step(self, span: Span | None) -> None:
        """Count a step, made at `span`."""
        self.steps += 1
        self.state.span = span
        if self.steps > self.step_limit:
            raise self.state.fail("TK703", "timeout", f"the kernel did not end within {self.step_limit} steps")

    def instruction(self, inst: Instruction) -> Steps:
        with self._placed():
            yield from inst.execute(self.state)

    def _assign(self, var: Var, value: Expr) -> None:
        with self._placed():
            self.state.assign(var, value)

    @contextmanager
    def _placed(self) -> Generator[None]:
        """Gives what goes wrong inside, and knows no place, the place where the group stands."""
        try:
            yield
        except errors.TilekitError as error:
            error.located(self.state.span)
            raise
