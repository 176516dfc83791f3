# SPDX-License-Identifier: Apache-2.0
"""Shared memory: matrices where tile and memory are made of them, else vectors of up to 16 bytes."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence

from tilekit.backends import shared_access
from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.backends.shared_access import SharedView
from tilekit.diag import errors
from tilekit.ir.instructions.shared import (
    AllocateSharedInst,
    FreeSharedInst,
    LoadSharedInst,
    PermuteSharedInst,
    ReshapeSharedInst,
    SliceSharedInst,
    StoreSharedInst,
)
from tilekit.ir.layout import atoms
from tilekit.ir.layout.atoms import MatrixAccess
from tilekit.ir.layout.shared_layout import Swizzle
from tilekit.ir.tensor import RegisterTensor, SharedTensor
from tilekit.lowir import prims, scalar
from tilekit.lowir.scalar import Expr


@emitter(AllocateSharedInst)
def shared_tensor(inst: AllocateSharedInst, ctx: Context) -> None:
    """Its place is known before the kernel begins, where its pointer is made."""


@emitter(FreeSharedInst)
def free_shared(inst: FreeSharedInst, ctx: Context) -> None:
    """What may lie there next was decided when everything was placed."""


@emitter(SliceSharedInst)
def slice_shared(inst: SliceSharedInst, ctx: Context) -> None:
    x, out, builder = ctx.shared(inst.x), inst.shared_output, ctx.builder
    _check_carry(inst, ctx, x)
    moved, inside = _split_start(shared_access.parts_of(x.layout, inst.offsets), x.layout.optional_swizzle, ctx)
    pointer, start = x.pointer, x.start
    if scalar.constant_value(moved) != 0:
        pointer = builder.let(ctx.names.name(out), builder.address(pointer, moved))
    if scalar.constant_value(inside) != 0:
        start = scalar.add(start, inside)
        if not scalar.is_constant(start):
            known = ctx.values.facts.of(start)
            start = builder.let(f"{ctx.names.name(out)}_start", start)
            ctx.values.remember(start, known)
    divisor = math.gcd(x.divisor, ctx.facts.of(moved).divisor, ctx.facts.of(inside).divisor)
    ctx.bind_shared(out, SharedView(x.name, pointer, start, divisor, out.layout))


def _split_start(parts: Sequence[Expr], swizzle: Swizzle | None, ctx: Context) -> tuple[Expr, Expr]:
    """The sum of what a swizzle does not mix in, because it counts whole periods, and that of what it does."""
    period = 1 if swizzle is None else swizzle.period
    moved, inside = scalar.int32(0), scalar.int32(0)
    for part in parts:
        known = scalar.constant_value(part)
        if isinstance(known, int):
            moved = scalar.add(moved, scalar.int32(known // period * period))
            inside = scalar.add(inside, scalar.int32(known % period))
        elif ctx.facts.of(part).divisor % period == 0:
            moved = scalar.add(moved, part)
        else:
            inside = scalar.add(inside, part)
    return moved, inside


def _check_carry(inst: SliceSharedInst, ctx: Context, x: SharedView) -> None:
    """Refuse a slice that does not lie as its layout says, because it begins inside a digit of the tensor's."""
    for dim, extent in zip(inst.dims, inst.shared_output.shape, strict=True):
        strides = [mode.digit.stride for mode in x.layout.modes if mode.digit.dim == dim]
        start = inst.offsets[dim]
        if len(strides) < 2 or extent == inst.x.shape[dim]:
            continue
        if ctx.facts.of(start).divisor % extent != 0:
            raise errors.CodegenError(
                "TK408",
                f"a slice of {extent} elements along dimension {dim} of {ctx.names.name(inst.x)} must begin at a "
                f"multiple of {extent}, because the tensor lies as {x.layout}",
                help="annotate_layout it as row-major, or begin slices at multiples of their extent",
            )


@emitter(PermuteSharedInst)
def permute_shared(inst: PermuteSharedInst, ctx: Context) -> None:
    _view(inst.shared_output, inst.x, ctx)


@emitter(ReshapeSharedInst)
def reshape_shared(inst: ReshapeSharedInst, ctx: Context) -> None:
    _view(inst.shared_output, inst.x, ctx)


def _view(out: SharedTensor, of: SharedTensor, ctx: Context) -> None:
    x = ctx.shared(of)
    ctx.bind_shared(out, SharedView(x.name, x.pointer, x.start, x.divisor, out.layout))


@emitter(LoadSharedInst)
def load_shared(inst: LoadSharedInst, ctx: Context) -> None:
    tile, builder = inst.register_output, ctx.builder
    registers = ctx.define(tile)
    matrices = _matrices(tile, inst.x, ctx)
    if matrices is not None:
        for first, row in _rows(matrices, inst.x, ctx):
            into = builder.registers(registers, first)
            builder.evaluate(prims.ldmatrix(matrices.count, into, row, trans=matrices.atom.trans))
        return
    width, pointer = ctx.shared_width(tile.layout, inst.x), ctx.shared(inst.x).pointer
    at = ctx.shared_offsets(tile.layout, inst.x, every=width)
    with ctx.each_register(tile.layout.local_size // width) as step:
        first = scalar.mul(step, scalar.int32(width))
        into, source = builder.registers(registers, first), builder.address(pointer, at(step))
        builder.evaluate(prims.load_shared(width * tile.dtype.nbytes, into, source))


@emitter(StoreSharedInst)
def store_shared(inst: StoreSharedInst, ctx: Context) -> None:
    _store(inst, ctx)


@emitter(StoreSharedInst, target="sm_90")
def store_matrices(inst: StoreSharedInst, ctx: Context) -> None:
    matrices = _matrices(inst.x, inst.dst, ctx)
    if matrices is None or inst.x.layout.is_replicated:
        _store(inst, ctx)
        return
    registers = ctx.registers_of(inst.x)
    for first, row in _rows(matrices, inst.dst, ctx):
        source = ctx.builder.registers(registers, first)
        ctx.builder.evaluate(prims.stmatrix(matrices.count, row, source, trans=matrices.atom.trans))


def _store(inst: StoreSharedInst, ctx: Context) -> None:
    tile, builder = inst.x, ctx.builder
    width, pointer = ctx.shared_width(tile.layout, inst.dst), ctx.shared(inst.dst).pointer
    at = ctx.shared_offsets(tile.layout, inst.dst, every=width)
    registers = ctx.registers_of(tile)
    with ctx.only_if(ctx.is_first_replica(tile.layout)), ctx.each_register(tile.layout.local_size // width) as step:
        first = scalar.mul(step, scalar.int32(width))
        to, source = builder.address(pointer, at(step)), builder.registers(registers, first)
        builder.evaluate(prims.store_shared(width * tile.dtype.nbytes, to, source))


def _matrices(tile: RegisterTensor, memory: SharedTensor, ctx: Context) -> MatrixAccess | None:
    """How to move the tile in matrices, if it can be."""
    view = ctx.shared(memory)
    access = atoms.matrix_access(tile.layout, view.layout, tile.dtype.nbytes)
    return access if access is not None and view.divisor % access.row_size == 0 else None


def _rows(access: MatrixAccess, memory: SharedTensor, ctx: Context) -> Generator[tuple[Expr, Expr]]:
    """For each instruction: the first register that it moves, and the row whose address this thread gives."""
    at = ctx.shared_offsets(access.rows, memory, every=access.row_size)
    with ctx.each_register(access.instructions) as step:
        row = ctx.builder.address(ctx.shared(memory).pointer, at(step))
        yield scalar.mul(step, scalar.int32(access.registers)), row
