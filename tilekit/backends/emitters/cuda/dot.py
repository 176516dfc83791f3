# SPDX-License-Identifier: Apache-2.0
"""Matrix products: one call for the whole tile of a warp, where the registers lie evenly enough."""

from __future__ import annotations

from tilekit import dtypes
from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.instructions.dot import DotInst
from tilekit.ir.layout import atoms
from tilekit.ir.layouts import dot_operand
from tilekit.ir.tensor import RegisterTensor
from tilekit.lowir import prims, scalar
from tilekit.lowir.build import RegisterArray
from tilekit.lowir.prims import MmaTile


@emitter(DotInst)
def dot(inst: DotInst, ctx: Context) -> None:
    a, b, c, out, builder = inst.a, inst.b, inst.c, inst.register_output, ctx.builder
    plan = atoms.plan_dot(dot_operand(a.dtype), out.dtype, a.layout, b.layout, out.layout)
    registers = ctx.define(out)
    if c is not out:
        zero = scalar.cast(scalar.constant(dtypes.int32, 0), out.dtype)
        with ctx.each_register(out.layout.local_size) as r:
            builder.store(registers, r, zero if c is None else ctx.read(c, r))
    left, right = _operand(a, ctx), _operand(b, ctx)
    for call in plan.calls:
        step = plan.register_stride
        tile = MmaTile(*call.repeat, *call.strides, ar=step, br=step)
        sides = (builder.registers(left, call.a), builder.registers(right, call.b))
        builder.evaluate(prims.mma_tile(plan.atom.name, tile, builder.registers(registers, call.d), *sides))


def _operand(tile: RegisterTensor, ctx: Context) -> RegisterArray:
    """The registers of an operand as a matrix instruction takes them: of floats, rounded ones."""
    registers, dtype = ctx.registers_of(tile), dot_operand(tile.dtype)
    if dtype is tile.dtype:
        return registers
    rounded = ctx.builder.register_array(f"{ctx.names.name(tile)}_{dtype.short_name}", dtype, registers.length)
    with ctx.each_register(registers.length) as r:
        ctx.builder.store(rounded, r, scalar.cast(ctx.builder.load(registers, r), dtype))
    return rounded
