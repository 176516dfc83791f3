# SPDX-License-Identifier: Apache-2.0
"""What a thread group knows and can reach: scalars, tiles, memories. It is the machine that instructions run on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.diag.span import Span
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.evaluator.memory import Elements, Window
from tilekit.ir.evaluator.scheduler import Barrier
from tilekit.ir.evaluator.shared import Buffer, Copies, View
from tilekit.ir.func import Function
from tilekit.ir.machine import Access, Array, Mask, Pick, Steps, Value
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.ir.text.names import Names
from tilekit.lowir import scalar, scalar_eval
from tilekit.lowir.scalar import Expr, Var


@dataclass(frozen=True, eq=False)
class Launch:
    """What all blocks of a launch have in common."""

    func: Function
    windows: Mapping[Var, Window]  # which memory each pointer parameter points into
    workspaces: Mapping[GlobalTensor, Window]
    step_limit: int
    printed: list[str] = field(default_factory=list[str])

    @cached_property
    def names(self) -> Names:
        return Names.of_function(self.func)


class State:
    """What one thread group knows; it is the `Machine` that the instructions run on."""

    def __init__(
        self, launch: Launch, block: tuple[int, int, int], scalars: Mapping[Var, Any], barrier: Barrier
    ) -> None:
        self.launch = launch
        self.block = block
        # where in the source it stands
        self.span: Span | None = launch.func.span
        self.env: dict[Var, Any] = dict(scalars)
        self.block_barrier = barrier
        # what it waits for, in the words of an error; None: for other thread groups
        self.waits_for: str | None = None
        # which memory the value of a pointer variable points into
        self.windows: dict[Var, Window] = dict(launch.windows)
        self.tiles: dict[RegisterTensor, Value] = {}
        self.views: dict[GlobalTensor, Var] = {}
        self.shared: dict[SharedTensor, View] = {}
        self.copies = Copies()
        # shared tensors that were read while a copy into them was on its way
        self.read_early: dict[SharedTensor, None] = {}

    # -------------------------------------------------------------------------------------------------- failures

    def fail(self, code: str, kind: str, message: str, **data: object) -> errors.KernelError:
        facts = {"kind": kind, "block": self.block, **data}
        return errors.KernelError(code, f"{message} (block {list(self.block)})", at=self.span, data=facts)

    def stuck(self) -> errors.KernelError:
        if self.waits_for is not None:
            return self.fail("TK710", "deadlock", f"{self.waits_for}, and nobody is left who could change that")
        return self.fail("TK710", "deadlock", "every thread group waits for another one")

    def refuse(self, code: str, kind: str, message: str) -> errors.KernelError:
        return self.fail(code, kind, message)

    def name_of(self, tensor: Tensor) -> str:
        if isinstance(tensor, SharedTensor) and not tensor.name and tensor in self.shared:
            return self.shared[tensor].text()
        names = self.launch.names
        return names.name(tensor) if tensor in names else tensor.name

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

    def assign(self, var: Var, value: Expr) -> None:
        """Give a scalar variable the present value of an expression."""
        self.env[var] = self.scalar(value)
        if isinstance(scalar.dtype_of(var), PointerType):
            self._point(var, value)

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

    def bind_workspace(self, tensor: GlobalTensor) -> None:
        var = self.views.setdefault(tensor, scalar.var(tensor.name, PointerType(tensor.dtype)))
        window = self.launch.workspaces[tensor]
        self.env[var], self.windows[var] = np.uint64(window.address), window

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

    def load_word(self, pointer: Expr) -> Any:
        data, defined = self._word("reads", pointer).load(np.zeros((), np.int64))
        if not defined:
            raise self.fail("TK701", "uninitialized", "what the pointer points at was never written")
        return data[()]

    def store_word(self, pointer: Expr, value: Any) -> None:
        self._word("writes", pointer).store(np.zeros((), np.int64), np.asarray(value))

    def global_value(self, tensor: GlobalTensor) -> Value:
        shape = tuple(int(self.scalar(extent)) for extent in tensor.shape)
        axes = tuple(scalar.var("i", dtypes.int64) for _ in shape)
        whole = RegisterTensor(tensor.dtype, shape, name=tensor.name)
        access = Access(self.address_of(tensor), axes, tensor.layout.offset(axes), None)
        elements, offsets, _ = self._access("reads", whole, access)
        return Value(*elements.load(offsets))

    def barrier(self) -> Steps:
        yield from self.block_barrier.wait()

    def wait_until(self, ready: Callable[[], bool], what: str) -> Steps:
        self.waits_for = what
        while not ready():
            yield
        self.waits_for = None

    @property
    def num_threads(self) -> int:
        return self.launch.func.metadata.num_threads

    def print(self, text: str) -> None:
        self.launch.printed.append(text)

    def item(self, tensor: Tensor, offsets: Sequence[Expr]) -> Any:
        """The value of one element."""
        match tensor:
            case RegisterTensor():
                value = self.read(tensor)
            case SharedTensor():
                value = self.load_shared(tensor, self._element(tensor, offsets))
            case GlobalTensor():
                return self.load_word(scalar.add(self.address_of(tensor), tensor.layout.offset(offsets)))
            case _:
                raise TypeError(f"{type(tensor).__name__} has no elements")
        if not np.all(value.defined):
            raise self._undefined(f"{self.name_of(tensor)} is read as a number")
        return value.data.reshape(())[()]

    def point_at_item(self, var: Var, tensor: SharedTensor | GlobalTensor, offsets: Sequence[Expr]) -> None:
        """Make a variable point at one element."""
        if isinstance(tensor, GlobalTensor):
            self.assign(var, scalar.add(self.address_of(tensor), tensor.layout.offset(offsets)))
            return
        view = self._view(tensor)
        number = int(view.where[self._element(tensor, offsets)])
        self.env[var] = np.uint64(view.buffer.window.address + number * tensor.dtype.nbytes)
        self.windows[var] = view.buffer.window

    def _word(self, does: str, pointer: Expr) -> Elements:
        """The memory behind a pointer, cut into elements of which the one that it points at is number 0."""
        type_ = scalar.dtype_of(pointer)
        assert isinstance(type_, PointerType)
        assert isinstance(type_.base, DataType)
        word = RegisterTensor(type_.base, (), name="the pointer")
        elements, _, _ = self._access(does, word, Access(pointer, (), scalar.constant(dtypes.int64, 0), None))
        return elements

    def _access(
        self, does: str, tile: RegisterTensor | SharedTensor, access: Access
    ) -> tuple[Elements, NDArray[np.int64], Mask]:
        """The memory behind an access, and of each position of the tile the offset and whether it takes part."""
        offsets = self.over(access.axes, tile.shape, access.offset).astype(np.int64)
        mask = np.ones(tile.shape, np.bool_)
        if access.mask is not None:
            mask = self.over(access.axes, tile.shape, access.mask)
        address = int(self.scalar(access.pointer))
        window = self._window(access.pointer, address)
        if address % tile.dtype.nbytes:
            message = f"{self.name_of(tile)} {does} {tile.dtype} at an address that is no multiple of its size"
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
        tile: RegisterTensor | SharedTensor,
        window: Window,
        elements: Elements,
        offsets: NDArray[np.int64],
        outside: Mask,
    ) -> NoReturn:
        index, name = _first(outside), self.name_of(tile)
        element = int(offsets[index]) + elements.origin
        message = f"{name}{_at(index)} {does} element {element} of {window.name}, which has {len(elements.cells)}"
        raise self.fail("TK702", "out_of_bounds", message, tensor=window.name, index=index, offset=element)

    def _refuse_undefined(self, tile: RegisterTensor, undefined: Mask) -> NoReturn:
        index, name = _first(undefined), self.name_of(tile)
        raise self._undefined(f"{name}{_at(index)} is stored", tensor=name, index=index)

    def _undefined(self, what: str, **data: object) -> errors.KernelError:
        """That something without a value is used; where a copy may be why, that too."""
        error = self.fail("TK701", "uninitialized", f"{what}, but was never written", **data)
        for tensor in self.read_early:
            error.noted(
                f"{self.name_of(tensor)} was read while a copy_async into it was on its way: wait for it first, with "
                f"copy_async_wait_group or copy_async_wait_all"
            )
        return error

    # ---------------------------------------------------------------------------------------------- shared memory

    def allocate_shared(self, tensor: SharedTensor) -> None:
        where = np.arange(tensor.size, dtype=np.int64).reshape(tensor.shape)
        self.shared[tensor] = View(Buffer.of(tensor, self.name_of(tensor)), where)

    def free_shared(self, tensor: SharedTensor) -> None:
        buffer = self._view(tensor).buffer
        if np.any(buffer.on_its_way):
            message = f"{self.name_of(tensor)} is freed while a copy_async into it is on its way"
            raise self.fail("TK705", "use_after_free", message)
        buffer.is_free = True

    def show_shared(self, view: SharedTensor, of: SharedTensor, pick: Pick) -> None:
        shown = self._view(of)
        self.shared[view] = View(shown.buffer, pick(shown.where))

    def load_shared(self, tensor: SharedTensor, part: tuple[int, ...] = ()) -> Value:
        view = self._view(tensor)
        chosen = View(view.buffer, view.where[part])
        if np.any(view.buffer.on_its_way[chosen.where]):
            self.read_early[tensor] = None
        return chosen.load()

    def store_shared(self, tensor: SharedTensor, value: Value) -> None:
        self._view(tensor).store(value.data, value.defined)

    def start_copy(self, dst: SharedTensor, access: Access) -> None:
        elements, offsets, mask = self._access("reads", dst, access)
        view = self._view(dst)
        view.buffer.on_its_way[view.where] = True

        def land() -> None:
            data = np.zeros(dst.shape, dtypes.numpy_dtype(dst.dtype))
            defined = np.ones(dst.shape, np.bool_)
            data[mask], defined[mask] = elements.load(offsets[mask])
            view.store(data, defined)
            view.buffer.on_its_way[view.where] = False

        self.copies.started.append(land)

    def commit_copies(self) -> None:
        self.copies.commit()

    def wait_for_copies(self, pending: int | None) -> None:
        self.copies.wait(pending)

    def offset_of(self, what: str, offset: Expr, extent: int, size: int) -> int:
        first = int(self.scalar(offset))
        if not 0 <= first <= size - extent:
            wanted = f"element {first}" if extent == 1 else f"elements {first} to {first + extent - 1}"
            raise self.fail("TK702", "out_of_bounds", f"{what} takes {wanted}, but there are {size}")
        return first

    def _view(self, tensor: SharedTensor) -> View:
        view = self.shared[tensor]
        if view.buffer.is_free:
            raise self.fail("TK705", "use_after_free", f"{self.name_of(tensor)} is used after free_shared")
        return view

    def _element(self, tensor: SharedTensor, offsets: Sequence[Expr]) -> tuple[int, ...]:
        """The index of the element at `offsets`, which lies inside."""
        return tuple(
            self.offset_of(f"{self.name_of(tensor)}, dimension {dim},", start, 1, extent)
            for dim, (start, extent) in enumerate(zip(offsets, tensor.shape, strict=True))
        )


def _first(mask: Mask) -> tuple[int, ...]:
    """The first index at which the mask holds."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def _at(index: Sequence[int]) -> str:
    return str(list(index)) if index else ""
