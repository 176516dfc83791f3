# SPDX-License-Identifier: Apache-2.0
"""Global memory: as wide as address, mask and layout allow, at most 16 bytes an access."""

from __future__ import annotations

from tilekit import dtypes
from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.instructions.memory import GlobalViewInst, LoadGlobalGenericInst, StoreGlobalGenericInst
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
    at = ctx.global_places(inst.access, tile.layout, every=width)
    with ctx.each_register(tile.layout.local_size // width) as step:
        first = scalar.mul(step, scalar.constant(dtypes.int32, width))
        pointer, offset, mask = at(step)
        if width > 1:
            address = ctx.builder.address(pointer, offset)
            nbytes = width * tile.dtype.nbytes
            ctx.builder.evaluate(prims.load_global(nbytes, ctx.builder.registers(registers, first), address, mask))
        else:
            element = ctx.builder.buffer_load(pointer, offset)
            ctx.builder.store(registers, first, element if mask is None else scalar.where(mask, element, zero))


@emitter(StoreGlobalGenericInst)
def store_global(inst: StoreGlobalGenericInst, ctx: Context) -> None:
    tile = inst.x
    _, width = ctx.access_width(tile, inst.access)
    writer = ctx.is_first_replica(tile.layout)
    at = ctx.global_places(inst.access, tile.layout, every=width)
    with ctx.each_register(tile.layout.local_size // width) as step:
        first = scalar.mul(step, scalar.constant(dtypes.int32, width))
        pointer, offset, mask = at(step)
        with ctx.only_if(_both(writer, mask)):
            if width == 1:
                ctx.builder.buffer_store(pointer, offset, ctx.read(tile, first))
            else:
                address, registers = (
                    ctx.builder.address(pointer, offset),
                    ctx.builder.registers(ctx.define(tile), first),
                )
                ctx.builder.evaluate(prims.store_global(width * tile.dtype.nbytes, address, registers))


def _both(a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return b if a is None else a
    return scalar.logical_and(a, b)
