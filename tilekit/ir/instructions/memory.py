# SPDX-License-Identifier: Apache-2.0
"""Global memory: views of it, loads of a box into a tile, stores of a tile into a box.

`load_global` and `store_global` are what people write. Before code generation they become their generic forms, a
pointer with an offset and a mask per position, which the emitter vectorizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.inst import PURE, READS, Instruction, binder, inout, operand, scalars, static
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layouts import LayoutContext, vectorized
from tilekit.ir.machine import Access, Machine, Steps
from tilekit.ir.surface import Surface, check_dims, check_offsets, describe, index, last_dims, size
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var


def box_access(
    tensor: GlobalTensor, pointer: Expr, offsets: Sequence[Expr], dims: Sequence[int], shape: Sequence[int]
) -> Access:
    """The accesses of the box of `shape` at `offsets` in `tensor`; tile dimension i runs along `dims[i]`.

    The mask keeps every index inside the tensor, below and above.
    """
    axes = tuple(scalar.var("ijkl"[n] if n < 4 else f"i{n}", dtypes.int32) for n in range(len(shape)))
    along = dict(zip(dims, axes, strict=True))
    place = [scalar.add(*scalar.promote(o, along[d])) if d in along else o for d, o in enumerate(offsets)]
    zero = scalar.constant(dtypes.int32, 0)
    mask: Expr | None = None
    for component, extent in zip(place, tensor.shape, strict=True):
        low, high = scalar.le(*scalar.promote(zero, component)), scalar.lt(*scalar.promote(component, extent))
        inside = scalar.logical_and(low, high)
        mask = inside if mask is None else scalar.logical_and(mask, inside)
    return Access(pointer, axes, tensor.layout.offset(place), mask)


class GlobalViewInst(Instruction, opcode="global_view", effects=PURE):
    """Global memory at `ptr`, seen as the output tensor."""

    ptr: Expr = scalars()

    @staticmethod
    def create(output: GlobalTensor, ptr: Expr) -> GlobalViewInst:
        kind = scalar.dtype_of(ptr)
        if not isinstance(kind, PointerType):
            raise errors.LanguageError("TK215", f"global_view needs a pointer, got a {kind} scalar")
        if kind.is_raw():
            ptr = scalar.cast(ptr, PointerType(output.dtype))
        elif kind.base is not output.dtype:
            raise errors.LanguageError(
                "TK212", f"the pointer is ~{kind.base}, but the view asks for dtype {output.dtype}"
            )
        return GlobalViewInst(output, ptr)

    @property
    def view(self) -> GlobalTensor:
        assert isinstance(self.output, GlobalTensor)
        return self.output

    def execute(self, machine: Machine) -> Steps:
        machine.bind_view(self.view, self.ptr)
        yield from ()


class LoadGlobalInst(Instruction, opcode="load_global", effects=READS, order=9):
    """The box of `src` at `offsets`, zero where it is out of bounds."""

    src: GlobalTensor = operand()
    offsets: tuple[Expr, ...] = scalars()
    dims: tuple[int, ...] = static()

    @staticmethod
    def create(
        src: GlobalTensor, offsets: Sequence[Expr], dims: Sequence[int], output: RegisterTensor
    ) -> LoadGlobalInst:
        _check_box("load_global", src, offsets, dims, output)
        return LoadGlobalInst(output, src, tuple(offsets), tuple(dims))

    def access(self, pointer: Expr) -> Access:
        return box_access(self.src, pointer, self.offsets, self.dims, self.register_output.shape)

    def propose(
        self, known: Mapping[RegisterTensor, RegisterLayout], ctx: LayoutContext
    ) -> Mapping[RegisterTensor, RegisterLayout]:
        return _vectorize(self.register_output, self.access(ctx.address_of(self.src)), known, ctx)

    def execute(self, machine: Machine) -> Steps:
        tile = self.register_output
        machine.load(tile, self.access(machine.address_of(self.src)))
        yield from ()


class StoreGlobalInst(Instruction, opcode="store_global", order=15):
    """Write the tile `x` into the box of `dst` at `offsets`; positions out of bounds are skipped."""

    dst: GlobalTensor = inout()
    x: RegisterTensor = operand()
    offsets: tuple[Expr, ...] = scalars()
    dims: tuple[int, ...] = static()

    @staticmethod
    def create(dst: GlobalTensor, x: RegisterTensor, offsets: Sequence[Expr], dims: Sequence[int]) -> StoreGlobalInst:
        _check_box("store_global", dst, offsets, dims, x)
        return StoreGlobalInst(None, dst, x, tuple(offsets), tuple(dims))

    def access(self, pointer: Expr) -> Access:
        return box_access(self.dst, pointer, self.offsets, self.dims, self.x.shape)

    def propose(
        self, known: Mapping[RegisterTensor, RegisterLayout], ctx: LayoutContext
    ) -> Mapping[RegisterTensor, RegisterLayout]:
        return _vectorize(self.x, self.access(ctx.address_of(self.dst)), known, ctx)

    def execute(self, machine: Machine) -> Steps:
        machine.store(self.x, self.access(machine.address_of(self.dst)))
        yield from ()


class LoadGlobalGenericInst(Instruction, opcode="load_global_generic", effects=READS, order=9):
    """Position by position, the element at `ptr + offset` where `mask` holds, else zero."""

    ptr: Expr = scalars()
    axes: tuple[Var, ...] = binder()
    offset: Expr = scalars()
    mask: Expr | None = scalars(default=None)

    @staticmethod
    def create(
        ptr: Expr,
        f_offset: Callable[[tuple[Var, ...]], Expr | int],
        f_mask: Callable[[tuple[Var, ...]], Expr | bool] | None = None,
        *,
        output: RegisterTensor,
    ) -> LoadGlobalGenericInst:
        access = generic_access(ptr, output.shape, f_offset, f_mask)
        return LoadGlobalGenericInst(output, access.pointer, access.axes, access.offset, access.mask)

    @property
    def access(self) -> Access:
        return Access(self.ptr, self.axes, self.offset, self.mask)

    def propose(
        self, known: Mapping[RegisterTensor, RegisterLayout], ctx: LayoutContext
    ) -> Mapping[RegisterTensor, RegisterLayout]:
        return _vectorize(self.register_output, self.access, known, ctx)

    def execute(self, machine: Machine) -> Steps:
        machine.load(self.register_output, self.access)
        yield from ()


class StoreGlobalGenericInst(Instruction, opcode="store_global_generic", order=15):
    """Position by position, write the element of `x` to `ptr + offset` where `mask` holds."""

    x: RegisterTensor = operand()
    ptr: Expr = scalars()
    axes: tuple[Var, ...] = binder()
    offset: Expr = scalars()
    mask: Expr | None = scalars(default=None)

    @staticmethod
    def create(
        x: RegisterTensor,
        ptr: Expr,
        f_offset: Callable[[tuple[Var, ...]], Expr | int],
        f_mask: Callable[[tuple[Var, ...]], Expr | bool] | None = None,
    ) -> StoreGlobalGenericInst:
        access = generic_access(ptr, x.shape, f_offset, f_mask)
        return StoreGlobalGenericInst(None, x, access.pointer, access.axes, access.offset, access.mask)

    @property
    def access(self) -> Access:
        return Access(self.ptr, self.axes, self.offset, self.mask)

    def propose(
        self, known: Mapping[RegisterTensor, RegisterLayout], ctx: LayoutContext
    ) -> Mapping[RegisterTensor, RegisterLayout]:
        return _vectorize(self.x, self.access, known, ctx)

    def execute(self, machine: Machine) -> Steps:
        machine.store(self.x, self.access)
        yield from ()


def generic_access(
    ptr: Expr,
    shape: Sequence[int],
    f_offset: Callable[[tuple[Var, ...]], Expr | int],
    f_mask: Callable[[tuple[Var, ...]], Expr | bool] | None,
) -> Access:
    """The access of each position of a tile: offset and mask are functions of the position."""
    axes = tuple(scalar.var("ijkl"[n] if n < 4 else f"i{n}", dtypes.int32) for n in range(len(shape)))
    offset = scalar.as_expr(f_offset(axes), dtypes.int64)
    if not scalar.is_integer(dtype := scalar.dtype_of(offset)):
        raise errors.LanguageError("TK215", f"an offset must be an integer, got {dtype}")
    offset = scalar.cast(offset, dtypes.int64)
    mask = None if f_mask is None else scalar.as_expr(f_mask(axes), dtypes.boolean)
    if mask is not None and (dtype := scalar.dtype_of(mask)) is not dtypes.boolean:
        raise errors.LanguageError("TK215", f"a mask must be bool, got {dtype}")
    return Access(ptr, axes, offset, mask)


def _vectorize(
    tile: RegisterTensor, access: Access, known: Mapping[RegisterTensor, RegisterLayout], ctx: LayoutContext
) -> Mapping[RegisterTensor, RegisterLayout]:
    if tile in known:
        return {}
    dim, width = ctx.vector_width(tile, access)
    return {tile: vectorized(tile.shape, dim, width, ctx.num_threads)}


def _check_box(
    op: str, tensor: GlobalTensor, offsets: Sequence[Expr], dims: Sequence[int], tile: RegisterTensor
) -> None:
    rank = len(tensor.shape)
    if tensor.dtype is not tile.dtype:
        raise errors.LanguageError(
            "TK212",
            f"{op}: the tile is {tile.dtype}, the tensor in global memory {tensor.dtype}",
            help=f"cast the tile: .to({tensor.dtype})",
        )
    check_offsets(op, rank, offsets)
    check_dims(op, rank, dims, len(tile.shape))


class MemoryMethods(Surface):
    """The global-memory part of the kernel language."""

    def global_view(
        self,
        ptr: Expr,
        *,
        dtype: DataType,
        shape: Sequence[Expr | int],
        strides: Sequence[Expr | int] | None = None,
    ) -> GlobalTensor:
        """Return global memory at `ptr`, seen as a tensor.

        Parameters
        ----------
        ptr
            A pointer parameter of the kernel.
        dtype
            The element type, the one the pointer was declared with; of a `void_p` any.
        shape
            The extents, integers or integer expressions.
        strides
            The distance in elements between neighbors along each dimension; row-major by default.
        """
        _pointer(ptr)
        extents = [size("shape", extent) for extent in shape]
        layout = GlobalLayout.row_major(extents)
        if strides is not None:
            if len(strides) != len(extents):
                raise errors.LanguageError(
                    "TK213",
                    f"global_view needs one stride per dimension: {len(extents)} extents, {len(strides)} strides",
                )
            layout = GlobalLayout(
                tuple(extents), tuple(scalar.cast(index("strides", s), dtypes.int64) for s in strides)
            )
        return self._emit(GlobalViewInst.create(GlobalTensor.create(dtype, layout), ptr))

    def load_global(
        self,
        src: GlobalTensor,
        /,
        *,
        offsets: Sequence[Expr | int],
        shape: Sequence[int] | None = None,
        dims: Sequence[int] | None = None,
        out: RegisterTensor | None = None,
    ) -> RegisterTensor:
        """Load a box of a global tensor into registers; positions out of bounds read 0.

        Parameters
        ----------
        src
            The tensor, from `global_view`.
        offsets
            The index of the box's first element, one per dimension of `src`.
        shape
            The extents of the tile, compile-time integers; may be left out with `out`.
        dims
            The dimension of `src` that each tile dimension runs along; by default the last ones, in order.
        out
            A tile to load into instead of making a new one.
        """
        self._global("load_global", src)
        if shape is None and out is None:
            raise errors.LanguageError("TK214", "load_global needs the shape of the tile: give shape= or out=")
        tile = out if out is not None else RegisterTensor.create(src.dtype, tuple(shape or ()))
        if shape is not None and tuple(shape) != tile.shape:
            raise errors.LanguageError("TK213", f"load_global: shape={list(shape)}, but out has {list(tile.shape)}")
        along = last_dims(len(src.shape), len(tile.shape), dims)
        return self._emit(LoadGlobalInst.create(src, [index("offsets", o) for o in offsets], along, tile))

    def store_global(
        self,
        dst: GlobalTensor,
        src: RegisterTensor,
        *,
        offsets: Sequence[Expr | int],
        dims: Sequence[int] | None = None,
    ) -> None:
        """Store a tile into a box of a global tensor; positions out of bounds are not written.

        Parameters
        ----------
        dst
            The tensor, from `global_view`.
        src
            The tile, of the dtype of `dst`.
        offsets
            The index of the box's first element, one per dimension of `dst`.
        dims
            The dimension of `dst` that each tile dimension runs along; by default the last ones, in order.
        """
        self._global("store_global", dst)
        self._tile("store_global", src)
        along = last_dims(len(dst.shape), len(src.shape), dims)
        self._emit(StoreGlobalInst.create(dst, src, [index("offsets", o) for o in offsets], along))


def _pointer(ptr: object) -> None:
    if not isinstance(ptr, Expr):
        raise errors.LanguageError("TK215", f"global_view needs a pointer parameter, got {describe(ptr)}")
