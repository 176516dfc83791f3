# SPDX-License-Identifier: Apache-2.0
"""Global memory: as wide as address, mask and layout allow, at most 16 bytes an access."""

from __future__ import annotations

from collections.abc import Callable

from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.instructions.memory import GlobalViewInst, LoadGlobalGenericInst, StoreGlobalGenericInst
from tilekit.ir.machine import Access
from tilekit.ir.tensor import RegisterTensor
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
    zero = scalar.cast(scalar.int32(0), tile.dtype)

    def load(first: Expr, width: int, pointer: Expr, offset: Expr, mask: Expr | None) -> None:
        if width > 1:
            address, nbytes = ctx.builder.address(pointer, offset), width * tile.dtype.nbytes
            ctx.builder.evaluate(prims.load_global(nbytes, ctx.builder.registers(registers, first), address, mask))
        else:
            element = ctx.builder.buffer_load(pointer, offset)
            ctx.builder.store(registers, first, element if mask is None else scalar.where(mask, element, zero))

    _each_access(tile, inst.access, ctx, load)


@emitter(StoreGlobalGenericInst)
def store_global(inst: StoreGlobalGenericInst, ctx: Context) -> None:
    tile = inst.x

    def store(first: Expr, width: int, pointer: Expr, offset: Expr, mask: Expr | None) -> None:
        with ctx.only_if(mask):
            if width > 1:
                address, source = ctx.builder.address(pointer, offset), ctx.builder.registers(ctx.define(tile), first)
                ctx.builder.evaluate(prims.store_global(width * tile.dtype.nbytes, address, source))
            else:
                ctx.builder.buffer_store(pointer, offset, ctx.read(tile, first))

    with ctx.only_if(ctx.is_first_replica(tile.layout)):
        _each_access(tile, inst.access, ctx, store)


# one access: its first register, how many it has, its pointer, the offset from there, and its mask
AccessWriter = Callable[[Expr, int, Expr, Expr, Expr | None], None]


def _each_access(tile: RegisterTensor, access: Access, ctx: Context, write: AccessWriter) -> None:
    """Write all accesses of a thread, as wide as they may be.

    Where a mask may end inside of one, it is taken whole if its first and its last element pass, else one by one.
    """
    _, width = ctx.access_width(tile, access)
    _, ragged = ctx.access_width(tile, access, ragged=True)
    if ragged == width:
        at = ctx.global_places(access, tile.layout, every=width)
        with ctx.each_register(tile.layout.local_size // width) as step:
            write(scalar.mul(step, scalar.int32(width)), width, *at(step))
        return
    at = ctx.global_places(access, tile.layout)
    with ctx.each_register(tile.layout.local_size // ragged) as step:
        first = scalar.mul(step, scalar.int32(ragged))
        pointer, offset, begins = at(first)
        _, _, ends = at(scalar.add(first, scalar.int32(ragged - 1)))
        assert begins is not None and ends is not None, "a mask ends inside"
        with ctx.builder.if_then(scalar.logical_and(begins, ends)):
            write(first, ragged, pointer, offset, None)
        with ctx.builder.otherwise(), ctx.each_register(ragged, "e") as e:
            write(scalar.add(first, e), 1, *at(scalar.add(first, e)))
