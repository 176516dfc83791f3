# SPDX-License-Identifier: Apache-2.0
"""Reductions: fold registers, exchange lanes, meet in shared memory; `reduction_plan` says how much of each."""

from __future__ import annotations

from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.instructions.reduce import ReduceInst, accumulator
from tilekit.ir.layout.reduction import Exchange, reduction_plan
from tilekit.lowir import prims, scalar
from tilekit.lowir.build import RegisterArray
from tilekit.lowir.scalar import Expr


def _cells(inst: ReduceInst) -> int:
    """The bytes that partial results of several warps take."""
    plan = reduction_plan(inst.x.layout, inst.dims, keepdims=inst.keepdim)
    step = plan.exchange
    return 0 if step is None else step.rows * step.count * plan.result.local_size * accumulator(inst.x.dtype).nbytes


@emitter(ReduceInst, workspace=_cells)
def reduce(inst: ReduceInst, ctx: Context) -> None:
    out, builder = inst.register_output, ctx.builder
    plan = reduction_plan(inst.x.layout, inst.dims, keepdims=inst.keepdim)
    wide = accumulator(out.dtype)
    identity = scalar.as_expr(wide.constant(inst.reduction.identity(wide)))
    registers = ctx.define(out)
    partial = (
        registers
        if wide is out.dtype and out is not inst.x
        else builder.register_array("partial", wide, plan.result.local_size)
    )
    with ctx.each_register(plan.result.local_size) as r:
        builder.store(partial, r, identity)
    with ctx.each_register(inst.x.layout.local_size) as r:
        into = ctx.sum(plan.fold, local=r)
        _combine(inst, ctx, partial, into, scalar.cast(ctx.read(inst.x, r), wide))
    for mask in plan.lane_masks:
        with ctx.each_register(plan.result.local_size) as r:
            mine = builder.load(partial, r)
            # the exchange stands first: `||` would leave out the lanes that know the answer, and others wait for them
            builder.store(partial, r, inst.reduction.combine(prims.shfl_xor(mine, mask), mine), wraps=True)
    if plan.exchange is not None:
        _exchange(inst, ctx, partial, plan.exchange)
    if partial is not registers:
        with ctx.each_register(plan.result.local_size) as r:
            builder.store(registers, r, scalar.cast(builder.load(partial, r), out.dtype))


def _combine(inst: ReduceInst, ctx: Context, partial: RegisterArray, index: Expr, value: Expr) -> None:
    ctx.builder.store(partial, index, inst.reduction.combine(ctx.builder.load(partial, index), value), wraps=True)


def _exchange(inst: ReduceInst, ctx: Context, partial: RegisterArray, step: Exchange) -> None:
    """One cell for each holder of a partial result; everybody reads the cells of its row in the same order."""
    builder = ctx.builder
    cells = step.rows * step.count
    workspace = builder.let("workspace", prims.shared_ptr(partial.dtype, ctx.workspace))
    row = scalar.mul(ctx.sum(step.row), scalar.int32(step.count))
    mine = builder.let("cell", scalar.add(row, ctx.sum(step.slot)))
    leads = scalar.eq(ctx.sum(step.leader), scalar.int32(0))
    with builder.if_then(leads), ctx.each_register(partial.length) as r:
        builder.buffer_store(workspace, scalar.add(scalar.mul(r, scalar.int32(cells)), mine), builder.load(partial, r))
    builder.evaluate(prims.syncthreads())
    with ctx.each_register(partial.length) as r:
        first = scalar.add(scalar.mul(r, scalar.int32(cells)), row)
        builder.store(partial, r, builder.buffer_load(workspace, first))
        for slot in range(1, step.count):
            _combine(inst, ctx, partial, r, builder.buffer_load(workspace, scalar.add(first, scalar.int32(slot))))
