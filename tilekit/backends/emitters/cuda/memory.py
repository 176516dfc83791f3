# SPDX-License-Identifier: Apache-2.0
"""Global memory: as wide as address, mask and layout allow, at most 16 bytes an access."""

from __future__ import annotations

from tilekit import dtypes
from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.instructions.memory import GlobalViewInst, LoadGlobalGenericInst, StoreGlobalGenericInst
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.machine import Access
from tilekit.lowir import prims, scalar
from tilekit.lowir.scalar import Expr


@emitter(GlobalViewInst)
def global_view(inst: GlobalViewInst, ctx: Context) -> None:
    """A view is a way of writing addresses: loads and stores use its pointer."""
    ctx.bind_global(inst.view, inst.ptr)


@emitter(LoadGlobalGenericInst)
def load_global(inst: LoadGlobalGenericInst, ctx: Context) -> None:
    tile = inst.register_output
    registers = ctx.define(tile)
    _, width = ctx.access_width(tile, inst.access)
    zero = scalar.cast(scalar.constant(dtypes.int32, 0), tile.dtype)
    with ctx.each_register(tile.layout.local_size // width) as step:
        first = scalar.mul(step, scalar.constant(dtypes.int32, width))
        offset, mask = _at(inst.access, ctx, tile.layout, step, width)
        if width > 1:
            address = ctx.builder.address(inst.ptr, offset)
            nbytes = width * tile.dtype.nbytes
            ctx.builder.evaluate(prims.load_global(nbytes, ctx.builder.registers(registers, first), address, mask))
        else:
            element = ctx.builder.buffer_load(inst.ptr, offset)
            ctx.builder.store(registers, first, element if mask is None else scalar.where(mask, element, zero))


@emitter(StoreGlobalGenericInst)
def store_global(inst: StoreGlobalGenericInst, ctx: Context) -> None:
    tile = inst.x
    _, width = ctx.access_width(tile, inst.access)
    writer = ctx.is_first_replica(tile.layout)
    with ctx.each_register(tile.layout.local_size // width) as step:
        first = scalar.mul(step, scalar.constant(dtypes.int32, width))
        offset, mask = _at(inst.access, ctx, tile.layout, step, width)
        condition = _both(writer, mask)
        if condition is None:
            _store(inst, ctx, offset, first, width)
        else:
            with ctx.builder.if_then(condition):
                _store(inst, ctx, offset, first, width)


def _store(inst: StoreGlobalGenericInst, ctx: Context, offset: Expr, first: Expr, width: int) -> None:
    if width == 1:
        ctx.builder.buffer_store(inst.ptr, offset, ctx.read(inst.x, first))
        return
    address = ctx.builder.address(inst.ptr, offset)
    nbytes = width * inst.x.dtype.nbytes
    ctx.builder.evaluate(prims.store_global(nbytes, address, ctx.builder.registers(ctx.define(inst.x), first)))


def _at(access: Access, ctx: Context, layout: RegisterLayout, step: Expr, width: int) -> tuple[Expr, Expr | None]:
    """The offset and the mask of the access that starts at register `step * width`."""
    where = ctx.bind_axes(access.axes, layout, step, every=width)
    mask = None if access.mask is None else scalar.rewrite(access.mask, where)
    return scalar.rewrite(access.offset, where), mask


def _both(a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return b if a is None else a
    return scalar.logical_and(a, b)
