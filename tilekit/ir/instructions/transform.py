# SPDX-License-Identifier: Apache-2.0
"""Tiles under other shapes and types, parts of tiles, and layouts that a person chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.inst import PURE, Instruction, inout, operand, scalars, static
from tilekit.ir.instructions.shared import PermuteSharedInst, ReshapeSharedInst, box, check_slice, to_dims
from tilekit.ir.layout import ops
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shapes import LayoutOperationError
from tilekit.ir.layout.shared_layout import SharedLayout
from tilekit.ir.layouts import LayoutContext, Layouts
from tilekit.ir.machine import Array, Machine, Mask, Steps, Value
from tilekit.ir.surface import Surface, axes, check_offsets, describe, result_tile
from tilekit.ir.tensor import LaidOut, Layout, RegisterTensor, SharedTensor, Tensor
from tilekit.lowir.scalar import Expr

_Change: TypeAlias = Callable[[RegisterLayout], RegisterLayout]


class TransposeInst(Instruction, opcode="transpose", effects=PURE, order=12):
    """The matrix `x` with rows for columns."""

    x: RegisterTensor = operand()

    @staticmethod
    def create(x: RegisterTensor, output: RegisterTensor | None = None) -> TransposeInst:
        if len(x.shape) != 2:
            raise errors.LanguageError("TK213", f"transpose needs a tile of two dimensions, got {describe(x)}")
        return TransposeInst(result_tile(x.dtype, x.shape[::-1], output), x)

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        return _both_ways(self.x, self.register_output, known, _transposed, _transposed)

    def check(self, layouts: Layouts) -> str | None:
        return _must_be(layouts[self.register_output], lambda: _transposed(layouts[self.x]))

    def in_memory(self, memory: SharedTensor) -> PermuteSharedInst:
        """The view of a shared tensor that holds `x` which holds the output."""
        return PermuteSharedInst.create(memory, (1, 0))

    def execute(self, machine: Machine) -> Steps:
        value = machine.read(self.x)
        machine.write(self.register_output, value.data.T, value.defined.T)
        yield from ()


class SqueezeInst(Instruction, opcode="squeeze", effects=PURE, order=12):
    """The tile `x` without its dimensions `dims`, which have extent 1."""

    x: RegisterTensor = operand()
    dims: tuple[int, ...] = static()

    @staticmethod
    def create(x: RegisterTensor, dims: Sequence[int], output: RegisterTensor | None = None) -> SqueezeInst:
        _check_distinct("squeeze", dims, len(x.shape), f"dimensions of {describe(x)}")
        for dim in dims:
            if x.shape[dim] != 1:
                raise errors.LanguageError(
                    "TK213", f"squeeze: dimension {dim} of {describe(x)} has {x.shape[dim]} elements, not 1"
                )
        shape = tuple(extent for dim, extent in enumerate(x.shape) if dim not in dims)
        return SqueezeInst(result_tile(x.dtype, shape, output), x, tuple(dims))

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        return _both_ways(self.x, self.register_output, known, *_squeezing(self.dims))

    def check(self, layouts: Layouts) -> str | None:
        return _must_be(layouts[self.register_output], lambda: ops.squeeze(layouts[self.x], self.dims))

    def in_memory(self, memory: SharedTensor) -> ReshapeSharedInst:
        """The view of a shared tensor that holds `x` which holds the output."""
        return _reshape_in_memory(memory, self.register_output)

    def execute(self, machine: Machine) -> Steps:
        _reshape(machine, self.x, self.register_output)
        yield from ()


class UnsqueezeInst(Instruction, opcode="unsqueeze", effects=PURE, order=12):
    """The tile `x` with dimensions of extent 1 added, which are `dims` of the output."""

    x: RegisterTensor = operand()
    dims: tuple[int, ...] = static()

    @staticmethod
    def create(x: RegisterTensor, dims: Sequence[int], output: RegisterTensor | None = None) -> UnsqueezeInst:
        rank = len(x.shape) + len(dims)
        _check_distinct("unsqueeze", dims, rank, f"dimensions of the result, which has {rank}")
        extents = iter(x.shape)
        shape = tuple(1 if dim in dims else next(extents) for dim in range(rank))
        return UnsqueezeInst(result_tile(x.dtype, shape, output), x, tuple(dims))

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        return _both_ways(self.x, self.register_output, known, *reversed(_squeezing(self.dims)))

    def check(self, layouts: Layouts) -> str | None:
        return _must_be(layouts[self.register_output], lambda: ops.unsqueeze(layouts[self.x], self.dims))

    def in_memory(self, memory: SharedTensor) -> ReshapeSharedInst:
        """The view of a shared tensor that holds `x` which holds the output."""
        return _reshape_in_memory(memory, self.register_output)

    def execute(self, machine: Machine) -> Steps:
        _reshape(machine, self.x, self.register_output)
        yield from ()


class ReshapeRegisterInst(Instruction, opcode="reshape", effects=PURE, order=12):
    """The elements of the tile `x`, in row-major order, under the shape of the output."""

    x: RegisterTensor = operand()

    @staticmethod
    def create(x: RegisterTensor, output: RegisterTensor) -> ReshapeRegisterInst:
        if output.size != x.size:
            raise errors.LanguageError(
                "TK213", f"reshape: shape {list(output.shape)} has {output.size} elements, {describe(x)} has {x.size}"
            )
        return ReshapeRegisterInst(result_tile(x.dtype, output.shape, output), x)

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        x, out = self.x, self.register_output
        return _both_ways(x, out, known, _reshaping(out.shape), _reshaping(x.shape))

    def check(self, layouts: Layouts) -> str | None:
        out = self.register_output
        return _must_be(layouts[out], lambda: ops.reshape(layouts[self.x], out.shape))

    def in_memory(self, memory: SharedTensor) -> ReshapeSharedInst:
        """The view of a shared tensor that holds `x` which holds the output."""
        return _reshape_in_memory(memory, self.register_output)

    def execute(self, machine: Machine) -> Steps:
        _reshape(machine, self.x, self.register_output)
        yield from ()


# what shows the elements of a tile under another shape
Shown = TransposeInst | SqueezeInst | UnsqueezeInst | ReshapeRegisterInst


def _reshape_in_memory(memory: SharedTensor, tile: RegisterTensor) -> ReshapeSharedInst:
    return ReshapeSharedInst.create(memory, SharedTensor.create(tile.dtype, tile.shape))


class ViewInst(Instruction, opcode="view", effects=PURE, order=12):
    """The bits in each thread's registers of `x`, read as the dtype and the layout of the output."""

    x: RegisterTensor = operand()

    @staticmethod
    def create(x: RegisterTensor, output: RegisterTensor) -> ViewInst:
        ours, theirs = x.optional_layout, output.optional_layout
        if ours is not None and theirs is not None:
            if ours.spatial_size != theirs.spatial_size:
                raise errors.LanguageError(
                    "TK213",
                    f"view: the tile lies in {ours.spatial_size} threads, the layout is for {theirs.spatial_size}",
                )
            held, wanted = ours.local_size * x.dtype.nbits, theirs.local_size * output.dtype.nbits
            if held != wanted:
                raise errors.LanguageError(
                    "TK213", f"view: a thread holds {held} bits of the tile, and {wanted} of the result"
                )
        elif theirs is None and x.shape != output.shape:
            raise errors.LanguageError(
                "TK213", f"view: the shape {list(x.shape)} becomes {list(output.shape)} only with a layout"
            )
        return ViewInst(output, x)

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        x, out = self.x, self.register_output
        if x.shape != out.shape or x.dtype.nbits != out.dtype.nbits:
            return {}
        return _both_ways(x, out, known, lambda layout: layout, lambda layout: layout)

    def check(self, layouts: Layouts) -> str | None:
        x, out = layouts[self.x], layouts[self.register_output]
        if x.spatial_size != out.spatial_size:
            return f"the tile lies in {x.spatial_size} threads, its view in {out.spatial_size}"
        held, seen = x.local_size * self.x.dtype.nbits, out.local_size * self.register_output.dtype.nbits
        return None if held == seen else f"a thread holds {held} bits of the tile and {seen} of its view"

    def execute(self, machine: Machine) -> Steps:
        value, out = machine.read(self.x), self.register_output
        ours, theirs = self.x.optional_layout, out.optional_layout
        if out.dtype.nbits % 8 or self.x.dtype.nbits % 8:
            raise machine.refuse("TK203", "no_meaning", f"view: {self.x.dtype} to {out.dtype} cuts through a byte")
        if theirs is None or (ours is not None and ours == theirs and out.dtype.nbits == self.x.dtype.nbits):
            machine.write(out, _reread(value.data, self.x.dtype, out.dtype), value.defined)
        elif ours is None:
            message = f"view: where {machine.name_of(self.x)} lies decides what it means, and it has no layout"
            raise machine.refuse("TK302", "no_layout", message)
        else:
            machine.write(out, *_through_registers(value, self.x.dtype, ours, out.dtype, theirs))
        yield from ()


def _reread(data: Array, old: DataType, new: DataType) -> Array:
    """The elements along the last dimension with their bytes, side by side, read as another type."""
    cells = np.ascontiguousarray(data, dtypes.numpy_dtype(old)).reshape(*data.shape, 1).view(np.uint8)
    if old.nbytes != new.nbytes:
        cells = cells.reshape(*data.shape[:-1], -1, new.nbytes)
    if new.is_boolean():
        return cells[..., 0] != 0
    return np.ascontiguousarray(cells).view(dtypes.numpy_dtype(new))[..., 0]


def _through_registers(
    value: Value, old: DataType, ours: RegisterLayout, new: DataType, theirs: RegisterLayout
) -> tuple[Array, Mask]:
    """The registers of each thread, in their order, read as another type and put where another layout says."""
    data, defined = (part[_places(ours)] for part in value)
    read = _reread(data, old, new)
    known = np.repeat(defined, old.nbytes, axis=1).reshape(*read.shape, new.nbytes).all(axis=-1)
    result = np.zeros(theirs.shape, read.dtype), np.zeros(theirs.shape, np.bool_)
    for target, source in zip(result, (read, known), strict=True):
        target[_places(theirs)] = source
    return result


def _places(layout: RegisterLayout) -> tuple[NDArray[np.int64], ...]:
    """The index of the element in each register of each thread."""
    index = [
        [layout.get_global(local_index=register, spatial_index=thread) for register in range(layout.local_size)]
        for thread in range(layout.spatial_size)
    ]
    grid = np.asarray(index, np.int64).reshape(layout.spatial_size, layout.local_size, len(layout.shape))
    return tuple(np.moveaxis(grid, -1, 0))


class SliceRegisterInst(Instruction, opcode="slice_register", effects=PURE, order=2):
    """A copy of the elements of the tile `x` from `offsets` on; dimension i of the output runs along `dims[i]`."""

    x: RegisterTensor = operand()
    offsets: tuple[Expr, ...] = scalars()
    dims: tuple[int, ...] = static()

    @staticmethod
    def create(
        x: RegisterTensor, offsets: Sequence[Expr], dims: Sequence[int], output: RegisterTensor | None = None
    ) -> SliceRegisterInst:
        check_offsets("a slice", len(x.shape), offsets)
        check_slice(x.shape, offsets, dims, None if output is None else output.shape)
        shape = tuple(x.shape[d] for d in dims) if output is None else output.shape
        return SliceRegisterInst(result_tile(x.dtype, shape, output), x, tuple(offsets), tuple(dims))

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        """Whole rows lie as those of the tile do; where the tile has rows in other threads, each gets a copy."""
        return _rest(self.x, self.register_output, self.dims, known)

    def execute(self, machine: Machine) -> Steps:
        value, out = machine.read(self.x), self.register_output
        at = box(machine, self.x, self.offsets, self.dims, out.shape)
        machine.write(out, to_dims(value.data[at], self.dims), to_dims(value.defined[at], self.dims))
        yield from ()


class SliceAssignInst(Instruction, opcode="slice_assign", effects=PURE, order=2):
    """Write the tile `value` over the elements of the tile `x` from `offsets` on, along its dimensions `dims`."""

    x: RegisterTensor = inout()
    value: RegisterTensor = operand()
    offsets: tuple[Expr, ...] = scalars()
    dims: tuple[int, ...] = static()

    @staticmethod
    def create(
        x: RegisterTensor, value: RegisterTensor, offsets: Sequence[Expr], dims: Sequence[int]
    ) -> SliceAssignInst:
        if x.dtype is not value.dtype:
            raise errors.LanguageError(
                "TK212", f"cannot assign {describe(value)} to a part of {describe(x)}", help=f"cast it: .to({x.dtype})"
            )
        check_offsets("a slice", len(x.shape), offsets)
        check_slice(x.shape, offsets, dims, value.shape)
        return SliceAssignInst(None, x, value, tuple(offsets), tuple(dims))

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        """As of a slice that is taken."""
        return _rest(self.x, self.value, self.dims, known)

    def execute(self, machine: Machine) -> Steps:
        whole, part = machine.read(self.x), machine.read(self.value)
        at = box(machine, self.x, self.offsets, self.dims, self.value.shape)
        data, defined = whole.data.copy(), whole.defined.copy()
        to_dims(data[at], self.dims)[...] = part.data
        to_dims(defined[at], self.dims)[...] = part.defined
        machine.write(self.x, data, defined)
        yield from ()


class AnnotateLayoutInst(Instruction, opcode="annotate_layout", order=0):
    """The tensor `x` has this layout, whoever else would like another one."""

    x: LaidOut = operand()
    layout: Layout = static()

    @staticmethod
    def create(x: LaidOut, layout: Layout) -> AnnotateLayoutInst:
        wanted = RegisterLayout if isinstance(x, RegisterTensor) else SharedLayout
        if not isinstance(layout, wanted):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
            kind = "a register layout" if wanted is RegisterLayout else "a shared layout"
            raise errors.LanguageError("TK215", f"annotate_layout: {describe(x)} needs {kind}, got {layout}")
        if tuple(layout.shape) != x.shape:
            raise errors.LayoutError("TK301", f"a layout of shape {list(layout.shape)} cannot hold {describe(x)}")
        return AnnotateLayoutInst(None, x, layout)

    @property
    def reads(self) -> tuple[Tensor, ...]:
        return ()  # it speaks of where elements lie, not of what they are

    def check(self, layouts: Layouts) -> str | None:
        return None if layouts[self.x] == self.layout else f"the kernel asks for {self.layout}"

    def execute(self, machine: Machine) -> Steps:
        yield from ()  # where elements lie changes no value


def _reshape(machine: Machine, x: RegisterTensor, output: RegisterTensor) -> None:
    value = machine.read(x)
    machine.write(output, value.data.reshape(output.shape), value.defined.reshape(output.shape))


def _rest(x: RegisterTensor, part: RegisterTensor, dims: Sequence[int], known: Layouts) -> Layouts:
    """Where a part of `x` lies that has all of its elements along `dims`."""
    whole = list(dims) == sorted(dims) and all(x.shape[d] == n for d, n in zip(dims, part.shape, strict=True))
    if not whole or x not in known or part in known:
        return {}
    return {part: ops.reduce(known[x], [d for d in range(len(x.shape)) if d not in dims])}


def _both_ways(
    x: RegisterTensor,
    out: RegisterTensor,
    known: Layouts,
    forward: _Change,
    backward: _Change,
) -> Layouts:
    """Each of two tiles lies as the other one does, seen under its own shape, where that can be."""
    try:
        if x in known:
            return {} if out in known else {out: forward(known[x])}
        return {x: backward(known[out])} if out in known else {}
    except LayoutOperationError:
        return {}


def _must_be(layout: RegisterLayout, wanted: Callable[[], RegisterLayout]) -> str | None:
    try:
        same = layout == wanted()
    except LayoutOperationError as error:
        return str(error)
    return None if same else "no element moves, so the result must lie as the tile does"


def _squeezing(dims: Sequence[int]) -> tuple[_Change, _Change]:
    """Taking dimensions of extent 1 away, and adding them."""
    return (lambda layout: ops.squeeze(layout, dims)), (lambda layout: ops.unsqueeze(layout, dims))


def _reshaping(shape: Sequence[int]) -> _Change:
    return lambda layout: ops.reshape(layout, shape)


def _transposed(layout: RegisterLayout) -> RegisterLayout:
    return ops.permute(layout, [1, 0])


def _check_distinct(op: str, dims: Sequence[int], rank: int, what: str) -> None:
    if len(set(dims)) != len(dims) or not all(0 <= d < rank for d in dims):
        raise errors.LanguageError("TK213", f"{op}: dim={list(dims)} are not distinct {what}")


class TransformMethods(Surface):
    """The part of the kernel language that changes shapes, types and layouts of tiles."""

    def transpose(self, x: RegisterTensor) -> RegisterTensor:
        """Return the matrix `x` with rows for columns.

        No element moves to another thread, where those who use both can do with it; else the tile goes through shared
        memory.

        Parameters
        ----------
        x
            A tile of two dimensions. Of a shared tensor `s`, `s.transpose()` is a view.

        Raises
        ------
        LanguageError
            TK213 for a tile of more or fewer dimensions.
        """
        self._tile("transpose", x)
        return self._emit(TransposeInst.create(x))

    def squeeze(self, x: RegisterTensor, *, dim: int | Sequence[int]) -> RegisterTensor:
        """Return the tile without one or several dimensions of extent 1.

        Parameters
        ----------
        x
            The tile.
        dim
            The dimensions to drop, counted from the end if negative.

        Raises
        ------
        LanguageError
            TK213 where one of them has another extent than 1.
        """
        self._tile("squeeze", x)
        return self._emit(SqueezeInst.create(x, axes("dim", dim, len(x.shape))))

    def unsqueeze(self, x: RegisterTensor, *, dim: int | Sequence[int]) -> RegisterTensor:
        """Return the tile with one or several dimensions of extent 1 added.

        Parameters
        ----------
        x
            The tile.
        dim
            Where the new dimensions are in the result, counted from its end if negative.

        Raises
        ------
        LanguageError
            TK213 where the result has no such dimensions.
        """
        self._tile("unsqueeze", x)
        rank = len(x.shape) + (1 if isinstance(dim, int) else len(dim))
        return self._emit(UnsqueezeInst.create(x, axes("dim", dim, rank)))

    def reshape(self, x: RegisterTensor, shape: Sequence[int]) -> RegisterTensor:
        """Return the elements of a tile, in row-major order, under another shape.

        Every element stays in its thread and its register where a layout has both shapes, as most have; else the tile
        goes through shared memory.

        Parameters
        ----------
        x
            The tile.
        shape
            Compile-time integers with as many elements as `x` has.

        Raises
        ------
        LanguageError
            TK213 where the numbers of elements differ.
        """
        self._tile("reshape", x)
        return self._emit(ReshapeRegisterInst.create(x, RegisterTensor.create(x.dtype, tuple(shape))))

    def view(
        self, x: RegisterTensor, *, layout: RegisterLayout | None = None, dtype: DataType | None = None
    ) -> RegisterTensor:
        """Return the bits that each thread holds of a tile, read as another dtype, in another layout, or both.

        Parameters
        ----------
        x
            The tile.
        layout
            Where the elements of the result lie; a thread's registers are read in their order. Without it the result
            has the shape of `x`, and its dtype as many bits.
        dtype
            The dtype of the result; that of `x` by default.

        Raises
        ------
        LanguageError
            TK212 where the dtype has another size and there is no `layout`, TK213 where a thread would hold more or
            fewer bits than it does.
        """
        self._tile("view", x)
        target = x.dtype if dtype is None else dtype
        if layout is None and target.nbits != x.dtype.nbits:
            raise errors.LanguageError(
                "TK212",
                f"view: an element of {x.dtype} has {x.dtype.nbits} bits, one of {target} has {target.nbits}",
                help="say with layout= where the elements of the result lie",
            )
        shape = x.shape if layout is None else layout.shape
        return self._emit(ViewInst.create(x, RegisterTensor.create(target, shape, layout)))

    def annotate_layout(self, x: RegisterTensor | SharedTensor, layout: Layout) -> None:
        """Fix where the elements of a tensor lie, before layouts are chosen for the other tensors.

        Parameters
        ----------
        x
            A tile, or a shared tensor.
        layout
            A register layout for a tile, a shared layout for a shared tensor; of the tensor's shape.

        Raises
        ------
        LanguageError
            TK215 for a layout of the other kind.
        LayoutError
            TK301 where shapes differ, TK310 where an instruction cannot work with this layout.
        VerificationError
            TK303 where the layout is for another number of threads.
        """
        if not isinstance(x, (RegisterTensor, SharedTensor)):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
            raise errors.LanguageError("TK215", f"annotate_layout needs a tile or a shared tensor, got {describe(x)}")
        self._emit(AnnotateLayoutInst.create(x, layout))
