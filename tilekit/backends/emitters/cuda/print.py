# SPDX-License-Identifier: Apache-2.0
"""Printing by C's printf: scalars from every thread, tensors from the first one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilekit import dtypes
from tilekit.backends import shared_access
from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.dtypes import DataType
from tilekit.ir.instructions.print import FormatPrintInst, Place, PrintTensorInst
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor, SharedTensor
from tilekit.lowir import prims, scalar
from tilekit.lowir.scalar import Expr

# the element at an index
Element = Callable[[Sequence[Expr]], Expr]


@emitter(FormatPrintInst)
def printf(inst: FormatPrintInst, ctx: Context) -> None:
    _printf(inst.format, inst.args, ctx)


def _printf(parts: Sequence[str | Place], args: Sequence[Expr], ctx: Context) -> None:
    values = iter(args)
    text: list[str] = []
    given: list[Expr] = []
    for part in parts:
        if isinstance(part, str):
            text.append(part.replace("%", "%%"))
        else:
            value = next(values)
            text.append(part.in_c(scalar.dtype_of(value)))
            given.append(_promoted(value))
    ctx.builder.printf("".join(text), given)


def _promoted(value: Expr) -> Expr:
    """A number as C passes it to a function of any arguments."""
    dtype = scalar.dtype_of(value)
    if not isinstance(dtype, DataType):
        return value
    if dtype.is_float():
        return scalar.cast(value, dtypes.float64)
    return scalar.cast(value, dtypes.int32) if dtype.nbits < 32 or dtype.is_boolean() else value


def _bytes(inst: PrintTensorInst) -> int:
    tile = inst.x
    return tile.size * tile.dtype.nbytes if isinstance(tile, RegisterTensor) else 0


@emitter(PrintTensorInst, workspace=_bytes, barrier=True)
def print_tensor(inst: PrintTensorInst, ctx: Context) -> None:
    x, builder = inst.x, ctx.builder
    match x:
        case RegisterTensor():
            shape, element = _ints(x.shape), _gathered(x, ctx)
        case SharedTensor():
            view = ctx.shared(x)
            shape = _ints(x.shape)
            element = _in_memory(view.pointer, lambda index: shared_access.element(ctx, view, index), ctx)
        case GlobalTensor():
            shape, element = x.shape, _in_memory(ctx.global_pointer(x), x.layout.offset, ctx)
    builder.evaluate(prims.syncthreads())
    with builder.if_then(scalar.eq(ctx.thread, scalar.int32(0))):
        builder.printf(f"{inst.msg}\n".replace("%", "%%"))
        _nested(inst, shape, element, [], ctx)
        builder.printf("\n")
    builder.evaluate(prims.syncthreads())


def _gathered(tile: RegisterTensor, ctx: Context) -> Element:
    """The elements of a tile, brought to shared memory by those who hold them."""
    rows = GlobalLayout.row_major(_ints(tile.shape))
    memory = ctx.builder.let("workspace", prims.shared_ptr(tile.dtype, ctx.workspace))
    with ctx.only_if(ctx.is_first_replica(tile.layout)), ctx.each_register(tile.layout.local_size) as r:
        ctx.builder.buffer_store(memory, rows.offset(ctx.position(tile.layout, r)), ctx.read(tile, r))
    return _in_memory(memory, rows.offset, ctx)


def _in_memory(pointer: Expr, offset: Callable[[Sequence[Expr]], Expr], ctx: Context) -> Element:
    return lambda index: ctx.builder.buffer_load(pointer, offset(index))


def _nested(inst: PrintTensorInst, shape: Sequence[Expr], element: Element, index: list[Expr], ctx: Context) -> None:
    """Print the elements from an index on, in brackets, one line for each row."""
    builder, depth = ctx.builder, len(index)
    if depth == len(shape):
        _printf(inst.format, [element(index)], ctx)
        return
    between = ", " if depth == len(shape) - 1 else ",\n" + " " * (depth + 1)
    builder.printf("[")
    with builder.for_range("ijkl"[depth % 4], shape[depth], unroll=None) as at:
        with builder.if_then(scalar.lt(scalar.constant(_integer(at), 0), at)):
            builder.printf(between)
        _nested(inst, shape, element, [*index, at], ctx)
    builder.printf("]")


def _integer(e: Expr) -> DataType:
    dtype = scalar.dtype_of(e)
    assert isinstance(dtype, DataType)
    return dtype


def _ints(values: Sequence[int]) -> list[Expr]:
    return [scalar.int32(value) for value in values]
