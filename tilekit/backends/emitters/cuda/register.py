# SPDX-License-Identifier: Apache-2.0
"""Making and copying register tiles."""

from __future__ import annotations

from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.instructions.register import AllocateRegisterInst, AssignInst
from tilekit.lowir import scalar


@emitter(AllocateRegisterInst)
def register_tensor(inst: AllocateRegisterInst, ctx: Context) -> None:
    tile = inst.register_output
    if inst.init is not None and not tile.shape and ctx.define_constant(tile, inst.init):
        return
    registers = ctx.define(tile)
    if inst.init is None:
        return
    with ctx.each_register(tile.layout.local_size) as r:
        where = ctx.bind_axes(inst.axes, tile.layout, r) if inst.axes else {}
        ctx.builder.store(registers, r, scalar.rewrite(inst.init, where), wraps=True)


@emitter(AssignInst)
def assign(inst: AssignInst, ctx: Context) -> None:
    tile = inst.register_output
    registers = ctx.define(tile)
    with ctx.each_register(tile.layout.local_size) as r:
        ctx.builder.store(registers, r, ctx.read(inst.x, ctx.register_of(tile.layout, inst.x.layout, r)))
