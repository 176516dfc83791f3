# SPDX-License-Identifier: Apache-2.0
"""Elementwise instructions: `combine`, register by register."""

from __future__ import annotations

from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.instructions.elementwise import Elementwise


@emitter(Elementwise)
def elementwise(inst: Elementwise, ctx: Context) -> None:
    out = inst.register_output
    registers = ctx.define(out)
    with ctx.each_register(out.layout.local_size) as r:
        elements = [ctx.read(tile, ctx.register_of(out.layout, tile.layout, r)) for tile in inst.register_inputs]
        ctx.builder.store(registers, r, inst.combine(*elements), wraps=True)
