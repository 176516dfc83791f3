# SPDX-License-Identifier: Apache-2.0
"""One thread group of one block: its scalars, its tiles, and the statements it walks through."""

from __future__ import annotations

import enum
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.diag.span import Span
from tilekit.dtypes import DataType, PointerType
from tilekit.ir import stmt as stmts
from tilekit.ir.evaluator.memory import Elements, Window
from tilekit.ir.evaluator.scheduler import Barrier
from tilekit.ir.func import Function
from tilekit.ir.inst import Instruction
from tilekit.ir.machine import Access, Array, Mask, Steps, Value
from tilekit.ir.stmt import Stmt
from tilekit.ir.tensor import GlobalTensor, RegisterTensor
from tilekit.ir.text.names import Names
from tilekit.lowir import scalar, scalar_eval
from tilekit.lowir.scalar import Expr, Var


class Flow(enum.Enum):
    """Where control goes after a statement."""

    NEXT = enum.auto()
    BREAK = enum.auto()
    RETURN = enum.auto()


Walk: TypeAlias = "Generator[None, None, Flow]"


class Group:
    """A thread group; it is the `Machine` that the instructions run on."""

    def __init__(
        self,
        func: Function,
        block: tuple[int, int, int],
        scalars: Mapping[Var, Any],
        windows: Mapping[Var, Window],
        barrier: Barrier,
        step_limit: int,
    ) -> None:
        self.func = func
        self.block = block
        self.env: dict[Var, Any] = dict(scalars)
        self.block_barrier = barrier
        self.step_limit = step_limit
        self.steps = 0
        self.span: Span | None = func.span
        # which parameter's memory the value of a pointer variable points into
        self.windows: dict[Var, Window] = dict(windows)
        self.tiles: dict[RegisterTensor, Value] = {}
        self.views: dict[GlobalTensor, Var] = {}

    # ---------------------------------------------------------------------------------------------- control flow

    def run(self) -> Steps:
        yield from self.stmt(self.func.body)
        self.block_barrier.leave()

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
                body = then_body if self.scalar(cond) else else_body
                return Flow.NEXT if body is None else (yield from self.stmt(body))
            case stmts.LetStmt():
                for var, value in zip(stmt.bind_vars, stmt.bind_values, strict=True):
                    self.assign(var, value)
                return (yield from self.stmt(stmt.body))
            case stmts.DeclareStmt(var=var, init=init):
                if init is None:
                    self.env.pop(var, None)
                else:
                    self.assign(var, init)
            case stmts.AssignStmt(var=var, value=value):
                self.assign(var, value)
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
        for i in range(int(self.scalar(loop.extent))):
            self.step(loop.span)
            self.env[loop.iter_var] = dtypes.quantize(np.asarray(i), dtype)
            flow = yield from self.stmt(loop.body)
            if flow is not Flow.NEXT:
                return Flow.NEXT if flow is Flow.BREAK else flow
        return Flow.NEXT

    def _while(self, loop: stmts.WhileStmt) -> Walk:
        while self.scalar(loop.cond):
            self.step(loop.span)
            flow = yield from self.stmt(loop.body)
            if flow is not Flow.NEXT:
                return Flow.NEXT if flow is Flow.BREAK else flow
            self.step(loop.span)
        return Flow.NEXT

    def step(self, span: Span | None) -> None:
        """Count a step, made at `span`."""
        self.steps += 1
        self.span = span
        if self.steps > self.step_limit:
            raise self.fail("TK703", "timeout", f"the kernel did not end within {self.step_limit} steps")

    def instruction(self, inst: Instruction) -> Steps:
        with self._placed():
            yield from inst.execute(self)

    def assign(self, var: Var, value: Expr) -> None:
        with self._placed():
            self.env[var] = self.scalar(value)
            if isinstance(scalar.dtype_of(var), PointerType):
                self._point(var, value)

    # -------------------------------------------------------------------------------------------------- failures

    def fail(self, code: str, kind: str, message: str, **data: object) -> errors.KernelError:
        facts = {"kind": kind, "block": self.block, **data}
        return errors.KernelError(code, f"{message} (block {list(self.block)})", at=self.span, data=facts)

    def stuck(self) -> errors.KernelError:
        return self.fail("TK710", "deadlock", "every thread group waits for another one")

    @contextmanager
    def _placed(self) -> Generator[None]:
        try:
            yield
        except errors.TilekitError as error:
            error.located(self.span)
            raise

    # -------------------------------------------------------------------------------------------- tiles, scalars

    def read(self, tensor: RegisterTensor) -> Value:
        value = self.tiles.get(tensor)
        if value is not None:
            return value
        dtype = dtypes.numpy_dtype(tensor.dtype)
        return Value(np.zeros(tensor.shape, dtype), np.zeros(tensor.shape, np.bool_))

    def write(self, tensor: RegisterTensor, data: Array, defined: Mask) -> None:
        rounded: Array = np.asarray(dtypes.quantize(np.asarray(data), tensor.dtype))
        self.tiles[tensor] = Value(np.broadcast_to(rounded, tensor.shape), np.broadcast_to(defined, tensor.shape))

    def scalar(self, expr: Expr) -> Any:
        return self._evaluate(expr, self.env)

    def over(self, axes: Sequence[Var], shape: Sequence[int], expr: Expr) -> Array:
        rank = len(shape)
        box = {
            axis: np.arange(extent, dtype=np.int32).reshape([-1 if d == dim else 1 for d in range(rank)])
            for dim, (axis, extent) in enumerate(zip(axes, shape, strict=True))
        }
        return np.broadcast_to(self._evaluate(expr, {**self.env, **box}), tuple(shape))

    def _evaluate(self, expr: Expr, env: Mapping[Var, Any]) -> Any:
        for var in scalar.free_vars(expr):
            if var not in env:
                name = scalar.name_hint(var)
                raise self.fail("TK701", "uninitialized", f"{name} is read before it is written", tensor=name)
        return scalar_eval.evaluate(expr, env)

    # ---------------------------------------------------------------------------------------------------- memory

    def bind_view(self, tensor: GlobalTensor, pointer: Expr) -> None:
        var = self.views.setdefault(tensor, scalar.var(tensor.name, scalar.dtype_of(pointer)))
        self.assign(var, pointer)

    def address_of(self, tensor: GlobalTensor) -> Expr:
        return self.views[tensor]

    def load(self, tile: RegisterTensor, access: Access) -> None:
        elements, offsets, mask = self._access("reads", tile, access)
        data = np.zeros(tile.shape, dtypes.numpy_dtype(tile.dtype))
        defined = np.ones(tile.shape, np.bool_)
        data[mask], defined[mask] = elements.load(offsets[mask])
        self.write(tile, data, defined)

    def store(self, tile: RegisterTensor, access: Access) -> None:
        elements, offsets, mask = self._access("writes", tile, access)
        value = self.read(tile)
        if np.any(mask & ~value.defined):
            self._refuse_undefined(tile, mask & ~value.defined)
        elements.store(offsets[mask], value.data[mask])

    def barrier(self) -> Steps:
        yield from self.block_barrier.wait()

    def _access(self, does: str, tile: RegisterTensor, access: Access) -> tuple[Elements, NDArray[np.int64], Mask]:
        """The memory behind an access, and of each position of the tile the offset and whether it takes part."""
        offsets = self.over(access.axes, tile.shape, access.offset).astype(np.int64)
        mask = np.ones(tile.shape, np.bool_)
        if access.mask is not None:
            mask = self.over(access.axes, tile.shape, access.mask)
        address = int(self.scalar(access.pointer))
        window = self._window(access.pointer, address)
        if address % tile.dtype.nbytes:
            message = f"{self._name(tile)} {does} {tile.dtype} at an address that is no multiple of its size"
            raise self.fail("TK704", "misaligned", message, tensor=window.name)
        elements = window.elements(address, tile.dtype)
        outside = mask & ~elements.inside(offsets)
        if np.any(outside):
            self._refuse_outside(does, tile, window, elements, offsets, outside)
        if does == "writes" and not window.buffer.flags.writeable:
            raise errors.ArgumentError("TK624", f"the kernel writes {window.name}, which is read-only", at=self.span)
        return elements, offsets, mask

    def _window(self, pointer: Expr, address: int) -> Window:
        """The memory that a pointer comes from; of a pointer made from a number, the memory that it points into."""
        for var in scalar.free_vars(pointer):
            if var in self.windows:
                return self.windows[var]
        for window in self.windows.values():
            if 0 <= address - window.address < window.buffer.size:
                return window
        raise self.fail("TK702", "out_of_bounds", f"address {address:#x} belongs to no parameter")

    def _point(self, var: Var, pointer: Expr) -> None:
        origin = next((self.windows[v] for v in scalar.free_vars(pointer) if v in self.windows), None)
        if origin is None:
            self.windows.pop(var, None)
        else:
            self.windows[var] = origin

    def _refuse_outside(
        self,
        does: str,
        tile: RegisterTensor,
        window: Window,
        elements: Elements,
        offsets: NDArray[np.int64],
        outside: Mask,
    ) -> NoReturn:
        index, name = _first(outside), self._name(tile)
        element = int(offsets[index]) + elements.origin
        message = f"{name}{list(index)} {does} element {element} of {window.name}, which has {len(elements.cells)}"
        raise self.fail("TK702", "out_of_bounds", message, tensor=window.name, index=index, offset=element)

    def _refuse_undefined(self, tile: RegisterTensor, undefined: Mask) -> NoReturn:
        index, name = _first(undefined), self._name(tile)
        message = f"{name}{list(index)} is stored, but was never written"
        raise self.fail("TK701", "uninitialized", message, tensor=name, index=index)

    def _name(self, tile: RegisterTensor) -> str:
        return Names.of_function(self.func).name(tile)


def _first(mask: Mask) -> tuple[int, ...]:
    """The first index at which the mask holds."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
