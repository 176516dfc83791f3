# SPDX-License-Identifier: Apache-2.0
"""Shared memory: tensors in it, other views of their elements, loads of them into tiles and stores of tiles."""

from __future__ import annotations

from collections.abc import Sequence

from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.inst import PURE, READS, Instruction, inout, operand, scalars, static
from tilekit.ir.layout import ops
from tilekit.ir.layout.shared_layout import SharedLayout
from tilekit.ir.layouts import LayoutContext, Layouts, part_of, vectors_of, whole_of
from tilekit.ir.machine import Array, Machine, Steps
from tilekit.ir.surface import Surface, axes, check_dims, check_offsets, describe, index, last_dims
from tilekit.ir.tensor import RegisterTensor, SharedTensor, check_bytes
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr


class AllocateSharedInst(Instruction, opcode="shared_tensor", effects=PURE, order=25):
    """A new tensor in shared memory, which holds nothing yet."""

    @staticmethod
    def create(output: SharedTensor) -> AllocateSharedInst:
        check_bytes("a shared tensor", output.dtype)
        return AllocateSharedInst(output)

    def execute(self, machine: Machine) -> Steps:
        machine.allocate_shared(self.shared_output)
        yield from ()


class FreeSharedInst(Instruction, opcode="free_shared"):
    """The memory of `tensor` may be given to others; neither it nor any view of it is used after this."""

    tensor: SharedTensor = inout()

    @staticmethod
    def create(tensor: SharedTensor) -> FreeSharedInst:
        return FreeSharedInst(None, tensor)

    def execute(self, machine: Machine) -> Steps:
        machine.free_shared(self.tensor)
        yield from ()


class SliceSharedInst(Instruction, opcode="slice_shared", effects=PURE, order=20):
    """The elements of `x` from `offsets` on; dimension i of the output runs along `dims[i]` of `x`."""

    x: SharedTensor = operand()
    offsets: tuple[Expr, ...] = scalars()
    dims: tuple[int, ...] = static()

    @staticmethod
    def create(
        x: SharedTensor, offsets: Sequence[Expr], dims: Sequence[int], output: SharedTensor | None = None
    ) -> SliceSharedInst:
        check_offsets("a slice", len(x.shape), offsets)
        check_slice(x.shape, offsets, dims, None if output is None else output.shape)
        shape = tuple(x.shape[d] for d in dims) if output is None else output.shape
        return SliceSharedInst(_view(x, shape, output), x, tuple(offsets), tuple(dims))

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        out, x = self.shared_output, self.x
        if x in known and out not in known:
            part = self.seen(known[x])
            return {} if part is None else {out: part}
        if out not in known or x in known or not self._at_whole_parts(ctx):
            return {}
        whole = whole_of(known[out], self.dims, x.shape)
        return {} if whole is None else {x: whole}

    def seen(self, layout: SharedLayout) -> SharedLayout | None:
        """The layout of the slice where that of the tensor is `layout`; None where the slice has none."""
        return part_of(layout, self.dims, self.shared_output.shape)

    def _at_whole_parts(self, ctx: LayoutContext) -> bool:
        """Whether the slice begins at a multiple of its extents."""
        out = self.shared_output
        starts = ((self.offsets[dim], extent) for dim, extent in zip(self.dims, out.shape, strict=True))
        return all(ctx.divisor(start) % extent == 0 for start, extent in starts)

    def check(self, layouts: Layouts) -> str | None:
        out = self.shared_output
        if layouts[out] == self.seen(layouts[self.x]):
            return None
        return "a slice must lie as its part of the tensor does"

    def execute(self, machine: Machine) -> Steps:
        at = box(machine, self.x, self.offsets, self.dims, self.shared_output.shape)
        machine.show_shared(self.shared_output, self.x, lambda elements: to_dims(elements[at], self.dims))
        yield from ()


class PermuteSharedInst(Instruction, opcode="permute_shared", effects=PURE, order=20):
    """The elements of `x` with its dimensions in another order: dimension i of the output is `dims[i]` of `x`."""

    x: SharedTensor = operand()
    dims: tuple[int, ...] = static()

    @staticmethod
    def create(x: SharedTensor, dims: Sequence[int], output: SharedTensor | None = None) -> PermuteSharedInst:
        if sorted(dims) != list(range(len(x.shape))):
            raise errors.LanguageError(
                "TK213",
                f"permute: dims={list(dims)} do not name each dimension of {describe(x)} once",
                help=f"give the numbers 0 to {len(x.shape) - 1} in their new order",
            )
        return PermuteSharedInst(_view(x, tuple(x.shape[d] for d in dims), output), x, tuple(dims))

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        out, x = self.shared_output, self.x
        if x in known:
            return {} if out in known else {out: self.seen(known[x])}
        back = [self.dims.index(d) for d in range(len(self.dims))]
        return {x: ops.shared_permute(known[out], back)} if out in known else {}

    def seen(self, layout: SharedLayout) -> SharedLayout:
        """The layout of the view where that of the tensor is `layout`."""
        return ops.shared_permute(layout, self.dims)

    def check(self, layouts: Layouts) -> str | None:
        if layouts[self.shared_output] == self.seen(layouts[self.x]):
            return None
        return "a view must lie as the tensor does whose dimensions it shows in another order"

    def execute(self, machine: Machine) -> Steps:
        machine.show_shared(self.shared_output, self.x, lambda elements: elements.transpose(self.dims))
        yield from ()


class ReshapeSharedInst(Instruction, opcode="reshape_shared", effects=PURE, order=20):
    """The elements of `x`, in row-major order, under the shape of the output."""

    x: SharedTensor = operand()

    @staticmethod
    def create(x: SharedTensor, output: SharedTensor) -> ReshapeSharedInst:
        if output.size != x.size:
            raise errors.LanguageError(
                "TK213",
                f"reshape_shared: shape {list(output.shape)} has {output.size} elements, {describe(x)} has {x.size}",
            )
        return ReshapeSharedInst(_view(x, output.shape, output), x)

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        out, x = self.shared_output, self.x
        if x in known and out not in known:
            view = self.seen(known[x])
            return {} if view is None else {out: view}
        if out not in known or x in known:
            return {}
        try:
            return {x: ops.shared_reshape(known[out], x.shape)}
        except ops.LayoutOperationError:
            return {}

    def seen(self, layout: SharedLayout) -> SharedLayout | None:
        """The layout of the view where that of the tensor is `layout`; None where the view has none."""
        try:
            return ops.shared_reshape(layout, self.shared_output.shape)
        except ops.LayoutOperationError:
            return None

    def check(self, layouts: Layouts) -> str | None:
        if layouts[self.shared_output] == self.seen(layouts[self.x]):
            return None
        return "a view must lie as the tensor does that it shows under another shape"

    def execute(self, machine: Machine) -> Steps:
        shape = self.shared_output.shape
        machine.show_shared(self.shared_output, self.x, lambda elements: elements.reshape(shape))
        yield from ()


class LoadSharedInst(Instruction, opcode="load_shared", effects=READS, order=19):
    """All elements of the shared tensor `x` as a tile."""

    x: SharedTensor = operand()

    @staticmethod
    def create(x: SharedTensor, output: RegisterTensor | None = None) -> LoadSharedInst:
        tile = RegisterTensor.create(x.dtype, x.shape) if output is None else output
        _check_pair("load_shared", x, tile)
        return LoadSharedInst(tile, x)

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        out, x = self.register_output, self.x
        if x in known and out not in known:
            ctx.because("for the widest loads")
            return {out: vectors_of(known[x], x.dtype, ctx.num_threads)}
        return {}

    def execute(self, machine: Machine) -> Steps:
        machine.write(self.register_output, *machine.load_shared(self.x))
        yield from ()


class StoreSharedInst(Instruction, opcode="store_shared", order=19):
    """Write the tile `x` to all elements of the shared tensor `dst`."""

    dst: SharedTensor = inout()
    x: RegisterTensor = operand()

    @staticmethod
    def create(dst: SharedTensor, x: RegisterTensor) -> StoreSharedInst:
        _check_pair("store_shared", dst, x)
        return StoreSharedInst(None, dst, x)

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        dst, x = self.dst, self.x
        if dst in known and x not in known:
            ctx.because("for the widest stores")
            return {x: vectors_of(known[dst], x.dtype, ctx.num_threads)}
        return {}

    def execute(self, machine: Machine) -> Steps:
        machine.store_shared(self.dst, machine.read(self.x))
        yield from ()


def check_slice(
    shape: Sequence[int], offsets: Sequence[Expr], dims: Sequence[int], extents: Sequence[int] | None
) -> None:
    """Refuse a slice of a tensor of `shape` that has no such dimensions, or ends outside of it for certain."""
    check_dims("a slice", len(shape), dims, len(dims if extents is None else extents))
    wanted = [1] * len(shape)
    for number, dim in enumerate(dims):
        wanted[dim] = shape[dim] if extents is None else extents[number]
    for dim, (start, extent) in enumerate(zip(offsets, wanted, strict=True)):
        first = scalar.constant_value(start)
        if extent > shape[dim]:
            raise errors.LanguageError(
                "TK213", f"a slice of {extent} elements does not fit in dimension {dim}, which has {shape[dim]}"
            )
        if first is not None and not 0 <= first <= shape[dim] - extent:
            which = f"element {first}" if extent == 1 else f"elements {first} to {first + extent - 1}"
            raise errors.LanguageError(
                "TK213", f"a slice takes {which} of dimension {dim}, which has only {shape[dim]}"
            )


def box(
    machine: Machine,
    x: RegisterTensor | SharedTensor,
    offsets: Sequence[Expr],
    dims: Sequence[int],
    extents: Sequence[int],
) -> tuple[slice, ...]:
    """Where in the array of `x` a slice lies that has `extents` along `dims` and one element along all others."""
    wanted = [1] * len(x.shape)
    for dim, extent in zip(dims, extents, strict=True):
        wanted[dim] = extent
    name = machine.name_of(x)
    firsts = (
        machine.offset_of(f"a slice of {name} along dimension {dim}", start, extent, size)
        for dim, (start, extent, size) in enumerate(zip(offsets, wanted, x.shape, strict=True))
    )
    return tuple(slice(first, first + extent) for first, extent in zip(firsts, wanted, strict=True))


def to_dims(part: Array, dims: Sequence[int]) -> Array:
    """A box of an array with its dimensions `dims` in this order, and without the others, which have extent 1."""
    others = [d for d in range(part.ndim) if d not in dims]
    return part.transpose(*dims, *others).reshape([part.shape[d] for d in dims])


def _view(x: SharedTensor, shape: tuple[int, ...], output: SharedTensor | None) -> SharedTensor:
    """The given tensor, if it can show elements of `x` under `shape`, or a new one."""
    if output is None:
        return SharedTensor.create(x.dtype, shape)
    if output.dtype is not x.dtype or output.shape != shape:
        raise errors.LanguageError(
            "TK213", f"the view is {x.dtype}{list(shape)}, but its tensor is {output.dtype}{list(output.shape)}"
        )
    return output


def _check_pair(op: str, memory: SharedTensor, tile: RegisterTensor) -> None:
    if memory.dtype is not tile.dtype:
        raise errors.LanguageError(
            "TK212",
            f"{op}: the tile is {tile.dtype}, the shared tensor {memory.dtype}",
            help=f"cast the tile: .to({memory.dtype})",
        )
    if memory.shape != tile.shape:
        raise errors.LanguageError(
            "TK213",
            f"{op}: the tile has shape {list(tile.shape)}, the shared tensor {list(memory.shape)}",
            help="give a slice of the shared tensor that has the shape of the tile",
        )


class SharedMethods(Surface):
    """The shared-memory part of the kernel language."""

    def shared_tensor(self, *, dtype: DataType, shape: Sequence[int]) -> SharedTensor:
        """Return a new tensor in shared memory, which every thread of the block can read and write.

        It holds nothing yet. Its layout is chosen by those who use it, so that accesses meet in no bank; give one with
        `annotate_layout` to choose it yourself.

        Parameters
        ----------
        dtype
            The element type.
        shape
            Compile-time integers.

        Returns
        -------
        SharedTensor
            Its elements begin at a multiple of 128 bytes at least; `s[i]` is a view of a part.

        Raises
        ------
        LanguageError
            TK217 where an extent is not known at compile time.
        CodegenError
            TK402 where all tensors that are alive at once need more than a block may have: 163 KiB on sm_80, 227 KiB
            on sm_90.
        """
        return self._emit(AllocateSharedInst.create(SharedTensor.create(dtype, tuple(shape))))

    def free_shared(self, tensor: SharedTensor) -> None:
        """Give the memory of a shared tensor back, so that tensors made later may lie there.

        The tensor and all views of it are not used afterwards, which is checked. Where new memory lies in the old one,
        the compiler lets the threads wait for one another before it is written.

        Parameters
        ----------
        tensor
            A tensor from `shared_tensor`, not a view of one.

        Raises
        ------
        VerificationError
            TK705 where the tensor, or a view of it, may be used after this; TK191 for a view.
        """
        self._shared("free_shared", tensor)
        self._emit(FreeSharedInst.create(tensor))

    def load_shared(self, src: SharedTensor, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Load a whole shared tensor, or a slice of one, into registers.

        What other threads stored is there after the next `sync()`, what `copy_async` brings after the wait for it and a
        `sync()`.

        Parameters
        ----------
        src
            The tensor, or a slice of one such as `s[stage]`.
        out
            A tile of its shape and dtype to load into instead of making a new one.

        Returns
        -------
        RegisterTensor
            A tile of the shape and dtype of `src`, or `out`.

        Raises
        ------
        LanguageError
            TK212, TK213 where `out` has another dtype or shape.
        VerificationError
            TK193 where nothing was stored in it or copied to it on any path, TK721 where a copy to it was started and
            not waited for on every one.

        Notes
        -----
        PTX ldmatrix (sm_75) where the tile lies as matrix instructions want it, else ld.shared of up to 16 bytes.
        """
        self._shared("load_shared", src)
        return self._emit(LoadSharedInst.create(src, out))

    def store_shared(
        self,
        dst: SharedTensor,
        src: RegisterTensor,
        *,
        offsets: Sequence[Expr | int] | None = None,
        dims: Sequence[int] | None = None,
    ) -> None:
        """Store a tile into a shared tensor, or into a part of one.

        Other threads see it after the next `sync()`.

        Parameters
        ----------
        dst
            The tensor, or a slice of one.
        src
            The tile, of the dtype of `dst`.
        offsets
            The index of the first element of the part to write, one per dimension of `dst`; all of it by default.
        dims
            With `offsets`, the dimension of `dst` that each tile dimension runs along; by default the last ones.

        Raises
        ------
        LanguageError
            TK212, TK213 where dtypes or shapes differ, or where the part ends outside of `dst` for certain.

        Notes
        -----
        PTX stmatrix (sm_90) where the tile lies as matrix instructions give it, else st.shared of up to 16 bytes.
        """
        self._shared("store_shared", dst)
        self._tile("store_shared", src)
        if offsets is None and dims is not None:
            raise errors.LanguageError(
                "TK104", "store_shared: dims= says nothing without offsets=", help="give offsets= too, or neither"
            )
        if offsets is not None:
            along = last_dims(len(dst.shape), len(src.shape), dims)
            part = SharedTensor.create(dst.dtype, src.shape)
            dst = self._emit(SliceSharedInst.create(dst, [index("offsets", o) for o in offsets], along, part))
        self._emit(StoreSharedInst.create(dst, src))

    def permute_shared(self, x: SharedTensor, dims: Sequence[int]) -> SharedTensor:
        """Return a view of a shared tensor with its dimensions in another order; no element moves.

        Parameters
        ----------
        x
            The tensor.
        dims
            Which dimension of `x` each dimension of the view is, counted from the end if negative.

        Returns
        -------
        SharedTensor
            A view: what is stored in one of them is seen in the other.

        Raises
        ------
        LanguageError
            TK213 where `dims` does not name each dimension once.
        """
        self._shared("permute", x)
        return self._emit(PermuteSharedInst.create(x, axes("dims", dims, len(x.shape))))

    def reshape_shared(self, x: SharedTensor, shape: Sequence[int]) -> SharedTensor:
        """Return a view of a shared tensor under another shape, its elements in row-major order; no element moves.

        Parameters
        ----------
        x
            The tensor.
        shape
            Compile-time integers with as many elements as `x` has.

        Returns
        -------
        SharedTensor
            A view: what is stored in one of them is seen in the other.

        Raises
        ------
        LanguageError
            TK213 where the numbers of elements differ.
        LayoutError
            TK310 where the layout of `x` has no such shape.
        """
        self._shared("reshape_shared", x)
        return self._emit(ReshapeSharedInst.create(x, SharedTensor.create(x.dtype, tuple(shape))))
