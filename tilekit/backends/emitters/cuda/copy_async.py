# SPDX-License-Identifier: Apache-2.0
"""Copies from global to shared memory past the registers: 16, 8 or 4 bytes each, as both memories allow."""

from __future__ import annotations

from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.analysis import grid_analysis
from tilekit.ir.instructions.copy_async import (
    CopyAsyncCommitGroupInst,
    CopyAsyncGenericInst,
    CopyAsyncWaitAllInst,
    CopyAsyncWaitGroupInst,
)
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layouts import vectorized
from tilekit.lowir import prims, scalar


@emitter(CopyAsyncGenericInst)
def copy_async(inst: CopyAsyncGenericInst, ctx: Context) -> None:
    dst, access, builder = inst.dst, inst.access, ctx.builder
    layout, width = _dealt_out(inst, ctx)
    nbytes = width * dst.dtype.nbytes
    pointer, at = ctx.shared(dst).pointer, ctx.shared_offsets(layout, dst, every=width)
    if nbytes not in prims.COPY_BYTES:
        builder.comment(f"no asynchronous copy has {nbytes} bytes, and no wider one is aligned: through a register")
    come_from = ctx.global_places(access, layout, every=width)
    with ctx.only_if(ctx.is_first_replica(layout)), ctx.each_register(layout.local_size // width) as step:
        start, offset, mask = come_from(step)
        to = at(step)
        if nbytes in prims.COPY_BYTES:
            into, source = builder.address(pointer, to), builder.address(start, offset)
            evict_first = inst.evict == "evict_first"
            builder.evaluate(prims.cp_async(nbytes, into, source, mask, evict_first=evict_first))
        else:
            element = builder.buffer_load(start, offset)
            zero = scalar.cast(scalar.int32(0), dst.dtype)
            builder.buffer_store(pointer, to, element if mask is None else scalar.where(mask, element, zero))


def _dealt_out(inst: CopyAsyncGenericInst, ctx: Context) -> tuple[RegisterLayout, int]:
    """Which thread copies what, and how many elements at once: neighbors to neighboring threads."""
    dst = inst.dst
    widths = grid_analysis.vector_widths(dst.dtype, dst.shape, inst.access, ctx.facts)
    best = (
        (vectorized(dst.shape, 0, 1, ctx.num_threads), 1) if dst.shape else (vectorized((), 0, 1, ctx.num_threads), 1)
    )
    for dim, width in enumerate(widths):
        while width > 1:
            layout = vectorized(dst.shape, dim, width, ctx.num_threads)
            if width * dst.dtype.nbytes in prims.COPY_BYTES and ctx.shared_width(layout, dst) % width == 0:
                break
            width = _smaller(width)
        if width >= best[1] and width * dst.dtype.nbytes in prims.COPY_BYTES:
            best = (vectorized(dst.shape, dim, width, ctx.num_threads), width)
    return best


def _smaller(width: int) -> int:
    """The largest power of two below."""
    return 1 << ((width - 1).bit_length() - 1)


@emitter(CopyAsyncCommitGroupInst)
def commit_group(inst: CopyAsyncCommitGroupInst, ctx: Context) -> None:
    ctx.builder.evaluate(prims.cp_async_commit_group())


@emitter(CopyAsyncWaitGroupInst)
def wait_group(inst: CopyAsyncWaitGroupInst, ctx: Context) -> None:
    ctx.builder.evaluate(prims.cp_async_wait_group(inst.n))


@emitter(CopyAsyncWaitAllInst)
def wait_all(inst: CopyAsyncWaitAllInst, ctx: Context) -> None:
    ctx.builder.evaluate(prims.cp_async_wait_all())
