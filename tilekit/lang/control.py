# SPDX-License-Identifier: Apache-2.0
"""Control flow: decided now where the values are known, else as statements of the tile IR."""

from __future__ import annotations

import ast
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.stmt import BreakStmt, ForStmt, IfStmt, ReturnStmt, SeqStmt, WhileStmt
from tilekit.lang import builder as builders
from tilekit.lang import operators, syntax, values
from tilekit.lang.assignment import Assignment
from tilekit.lang.calls import Returned
from tilekit.lang.frame import Loop, Unavailable
from tilekit.lang.methods import LoopRange
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr

# no kernel runs in a grid without blocks
_GRID = tuple(scalar.grid_dim(axis) for axis in range(3))
_COUNTER = Unavailable("is the counter of a loop and exists only inside of it")


class _Broken(Exception):
    """A break out of a loop that is unrolled at compile time."""


class ControlFlow(Assignment):
    """Executes branches, loops, and what leaves them."""

    def exec_If(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            self.body(node.body if condition else node.orelse)
            return
        self.regions.branch(
            node,
            condition,
            (node.body, lambda: self.body(node.body)),
            (node.orelse, lambda: self.body(node.orelse)),
        )

    # --------------------------------------------------------------------------------------------------------- loops

    @contextmanager
    def _inside(self, node: ast.For | ast.While, *, at_run_time: bool) -> Generator[None]:
        loops = self.frame.loops
        loops.append(Loop(node, at_run_time, self.builder.depth))
        try:
            yield
        finally:
            loops.pop()

    def exec_For(self, node: ast.For) -> None:
        items = self.evaluate(node.iter)
        if isinstance(items, range):
            items = LoopRange(items.start, items.stop, items.step)
        if not isinstance(items, LoopRange):
            with self.at(node.iter):
                unrolled = self.host_items(items)
            self._unrolled(node, unrolled)
            return
        with self.at(node.iter):
            step = _step(items)
        if not isinstance(node.target, ast.Name):
            with self.at(node.target):
                raise errors.LanguageError("TK103", "a run-time loop has one name for its counter")
        self._counted(node, node.target.id, items, step)
        self._otherwise(node)

    def _unrolled(self, node: ast.For, items: list[Any]) -> None:
        """A loop over host values, executed now, item by item."""
        body = syntax.without_continue(node.body)
        try:
            with self._inside(node, at_run_time=False):
                for item in items:
                    self.unpack(node.target, item)
                    self.body(body)
        except _Broken:
            return
        self.body(node.orelse)

    def _counted(self, node: ast.For, name: str, items: LoopRange, step: int | Expr) -> None:
        start, stop = (_counting(self.bindings.snapshot(limit)) for limit in (items.start, items.stop))
        if isinstance(step, Expr):
            with self.at(node.iter):
                step = scalar.as_expr(_signed(_counting(self.bindings.snapshot(step))))
                start, stop = _signed(start), _signed(stop)
            extent = self.builder.declare(f"{name}_trips", self._trips_of_any_step(start, stop, step))
        else:
            extent = self._trips(start, stop, step)
        body = syntax.without_continue(node.body)
        plain = isinstance(step, int) and step == 1 and not isinstance(start, Expr) and start == 0
        is_carried = name in self.frame.owned
        counter = scalar.var(name if plain else f"{name}_count", scalar.dtype_of(extent))
        with self._inside(node, at_run_time=True), self.regions.loop(node, body) as statements:
            value = counter if plain else self._from(start, counter, step)
            if is_carried:
                self.bindings.bind(name, value)
            else:
                self.frame.names[name] = value if plain else self.builder.declare(name, value)
            self.body(body)
        unroll = -1 if items.unroll == "all" else items.unroll
        self.builder.append(ForStmt(counter, extent, SeqStmt.create(statements), unroll, span=self.builder.span))
        if not is_carried:
            self.frame.names[name] = _COUNTER

    def _from(self, start: Any, counter: Expr, step: int | Expr) -> Expr:
        if isinstance(step, Expr):
            return operators.scalar_binary(ast.Add, start, operators.scalar_binary(ast.Mult, counter, step))
        distance = operators.scalar_binary(ast.Mult, counter, abs(step))
        return scalar.as_expr(operators.scalar_binary(ast.Add if step > 0 else ast.Sub, start, distance))

    def _trips(self, start: Any, stop: Any, step: int) -> Expr:
        """How often a range goes round; zero or less for never."""
        first, last = (start, stop) if step > 0 else (stop, start)
        distance = operators.scalar_binary(ast.Sub, last, first)
        dtype = scalar.dtype_of(distance) if isinstance(distance, Expr) else dtypes.int32
        if isinstance(dtype, DataType) and not dtype.is_signed() and not values.same(first, 0):
            # what is less than nothing would wrap
            forward = scalar.lt(*operators.paired(first, last))
            distance = scalar.where(forward, distance, scalar.constant(dtype, 0))
        if abs(step) != 1:
            rounded = operators.scalar_binary(ast.Add, distance, abs(step) - 1)
            distance = operators.scalar_binary(ast.FloorDiv, rounded, abs(step))
        return scalar.as_expr(distance)

    def _trips_of_any_step(self, start: Any, stop: Any, step: Expr) -> Expr:
        """How often a range goes round whose step is known only at run time; a step of 0 divides by it."""
        if self.builder.expand(step) in _GRID:
            towards: int | Expr = 1
        else:
            dtype = scalar.dtype_of(step)
            assert isinstance(dtype, DataType)
            zero, one, minus_one = (scalar.constant(dtype, number) for number in (0, 1, -1))
            towards = scalar.where(scalar.gt(step, zero), one, minus_one)
        distance = operators.scalar_binary(ast.Sub, stop, start)
        rounded = operators.scalar_binary(ast.Add, distance, operators.scalar_binary(ast.Sub, step, towards))
        return operators.scalar_binary(ast.FloorDiv, rounded, step)

    def exec_While(self, node: ast.While) -> None:
        body = syntax.without_continue(node.body)
        with self._inside(node, at_run_time=True), self.regions.loop(node, [ast.Expr(node.test), *body]) as statements:
            condition = self.condition(node.test)
            plain = None if self.walruses else builders.only_declares(statements, scalar.as_expr(condition))
            if plain is not None:
                statements.clear()
            elif isinstance(condition, Expr):
                leave = SeqStmt.create([BreakStmt(span=self.builder.span)])
                self.builder.append(IfStmt(scalar.logical_not(condition), leave, span=self.builder.span))
            if condition is not False:
                self.body(body)
        if condition is not False:
            test = scalar.constant(dtypes.boolean, True) if plain is None else plain
            self.builder.append(WhileStmt(test, SeqStmt.create(statements), span=self.builder.span))
        self._otherwise(node)

    def _otherwise(self, node: ast.For | ast.While) -> None:
        """The else of a run-time loop, which runs unless a break left it."""
        if node.orelse and syntax.jumps(node.body, ast.Break):
            with self.at(node.orelse[0]):
                raise errors.LanguageError(
                    "TK103",
                    "else after a run-time loop with break is not available",
                    help="use a name that remembers it",
                )
        self.body(node.orelse)

    # --------------------------------------------------------------------------------------------------------- jumps

    def exec_Break(self, node: ast.Break) -> None:
        loop = self.frame.loops[-1]
        if loop.at_run_time:
            self.builder.append(BreakStmt(span=self.builder.span))
        elif loop.depth == self.builder.depth:
            raise _Broken
        else:
            raise errors.LanguageError(
                "TK103",
                "run-time control flow cannot break out of a loop over Python values, which is unrolled",
                help="loop over range(…)",
            )

    def exec_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self._returned(node.value)
        is_kernel = len(self.frames) == 1
        if is_kernel and value is not None:
            raise errors.LanguageError(
                "TK112", "a kernel returns nothing", help="store the result in a tensor that the caller gave"
            )
        if self.builder.depth == self.frame.depth:
            raise Returned(value)
        if value is not None:
            raise errors.LanguageError(
                "TK112",
                "a helper method cannot return a value from inside run-time control flow",
                help="bind the result to a name in each branch, and return it at the end",
            )
        # also in a helper method this ends the kernel, not the method: a thread that leaves comes back nowhere
        self.builder.append(ReturnStmt(span=self.builder.span))

    def _returned(self, node: ast.expr) -> Any:
        """A returned value; the elements of a tuple need no copies, for the names that hold them end here."""
        if isinstance(node, ast.Tuple) and not any(isinstance(part, ast.Starred) for part in node.elts):
            return tuple(self.evaluate(part) for part in node.elts)
        return self.evaluate(node)


def _counting(limit: Any) -> Any:
    """A limit of a range in a type that counts the rounds: of a narrow one they may be more than it holds."""
    dtype = scalar.dtype_of(limit) if isinstance(limit, Expr) else None
    return scalar.cast(limit, dtypes.int32) if isinstance(dtype, DataType) and dtype.nbits < 32 else limit


def _signed(limit: Any) -> Any:
    """A limit as a signed number: the way from one to the other may lead down."""
    dtype = scalar.dtype_of(limit) if isinstance(limit, Expr) else None
    if not isinstance(dtype, DataType) or dtype.is_signed():
        return limit
    if dtype.nbits > 32:
        raise errors.LanguageError(
            "TK106",
            f"with a step that is known only at run time, no part of a range can be {dtype}",
            help="write a while loop: i: uint64 = start, then while i < stop: … and i += step at its end",
        )
    return scalar.cast(limit, dtypes.int64)


def _step(items: LoopRange) -> int | Expr:
    step = values.known(items.step)
    step = int(step) if isinstance(step, dtypes.Literal) else step
    if isinstance(step, int) and step == 0:
        raise errors.LanguageError("TK104", "the step of a loop cannot be 0")
    return step
