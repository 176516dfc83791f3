# SPDX-License-Identifier: Apache-2.0
"""Other shapes and types of tiles cost nothing; parts of tiles move between registers, or through shared memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from tilekit import dtypes
from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.instructions.transform import (
    AnnotateLayoutInst,
    ReshapeRegisterInst,
    SliceAssignInst,
    SliceRegisterInst,
    SqueezeInst,
    TransposeInst,
    UnsqueezeInst,
    ViewInst,
)
from tilekit.ir.layout import mapping, ops
from tilekit.ir.layout.digits import Digit
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.tensor import GlobalLayout, RegisterTensor
from tilekit.lowir import prims, scalar
from tilekit.lowir.scalar import Expr


@emitter(AnnotateLayoutInst)
def annotate_layout(inst: AnnotateLayoutInst, ctx: Context) -> None:
    """Layout inference has heard it."""


@emitter(TransposeInst)
def transpose(inst: TransposeInst, ctx: Context) -> None:
    ctx.show(inst.register_output, inst.x)


@emitter(SqueezeInst)
def squeeze(inst: SqueezeInst, ctx: Context) -> None:
    ctx.show(inst.register_output, inst.x)


@emitter(UnsqueezeInst)
def unsqueeze(inst: UnsqueezeInst, ctx: Context) -> None:
    ctx.show(inst.register_output, inst.x)


@emitter(ReshapeRegisterInst)
def reshape(inst: ReshapeRegisterInst, ctx: Context) -> None:
    ctx.show(inst.register_output, inst.x)


@emitter(ViewInst)
def view(inst: ViewInst, ctx: Context) -> None:
    out = inst.register_output
    into, source = ctx.define(out), ctx.registers_of(inst.x)
    nbytes = out.layout.local_size * out.dtype.nbits // 8
    ctx.builder.evaluate(prims.view(nbytes, ctx.builder.registers(into), ctx.builder.registers(source)))


# --------------------------------------------------------------------------------------------------------------- slices


def _taken(inst: SliceRegisterInst | SliceAssignInst) -> tuple[RegisterTensor, RegisterTensor]:
    """The whole tile and the tile of the part."""
    return (inst.x, inst.register_output) if isinstance(inst, SliceRegisterInst) else (inst.x, inst.value)


def _dropped(inst: SliceRegisterInst | SliceAssignInst) -> list[int]:
    return [dim for dim in range(len(inst.x.shape)) if dim not in inst.dims]


def _at_home(inst: SliceRegisterInst | SliceAssignInst) -> bool:
    """Whether each thread holds both what it takes and where it goes: the dimensions that are cut lie in registers."""
    whole, part = _taken(inst)
    dropped = _dropped(inst)
    if list(inst.dims) != sorted(inst.dims) or any(
        whole.shape[d] != e for d, e in zip(inst.dims, part.shape, strict=True)
    ):
        return False
    cut = [place for place in whole.layout.spatial_digits if isinstance(place, Digit) and place.dim in dropped]
    rest = ops.reduce(whole.layout, dropped)
    ours, theirs = (part.layout, rest) if isinstance(inst, SliceRegisterInst) else (rest, part.layout)
    return not cut and mapping.local_map(ours, theirs) is not None


def _bytes(inst: SliceRegisterInst | SliceAssignInst) -> int:
    _, part = _taken(inst)
    return 0 if _at_home(inst) else part.size * part.dtype.nbytes


@emitter(SliceRegisterInst, workspace=_bytes)
def slice_register(inst: SliceRegisterInst, ctx: Context) -> None:
    x, out, builder = inst.x, inst.register_output, ctx.builder
    registers = ctx.define(out)
    if not _at_home(inst):
        _through_memory(inst, ctx)
        return
    with _moves(inst, out.layout, ctx) as (register, of_whole):
        builder.store(registers, register, ctx.read(x, of_whole))


@emitter(SliceAssignInst, workspace=_bytes)
def slice_assign(inst: SliceAssignInst, ctx: Context) -> None:
    x, value, builder = inst.x, inst.value, ctx.builder
    registers = ctx.define(x)
    if not _at_home(inst):
        _through_memory(inst, ctx)
        return
    rest = ops.reduce(x.layout, _dropped(inst))
    with _moves(inst, rest, ctx) as (register, of_whole):
        builder.store(registers, of_whole, ctx.read(value, ctx.register_of(rest, value.layout, register)))


@contextmanager
def _moves(
    inst: SliceRegisterInst | SliceAssignInst, part: RegisterLayout, ctx: Context
) -> Generator[tuple[Expr, Expr]]:
    """A loop over the registers of the part, each with the one of the whole tile that goes with it.

    Registers have no address, so a slice that may begin anywhere is looked for among all places where it can.
    """
    starts: dict[int, Expr] = {}
    with ExitStack() as blocks:
        for dim in _dropped(inst):
            begin = inst.offsets[dim]
            if scalar.is_constant(begin):
                starts[dim] = scalar.int32(scalar.constant_value(begin))
            else:
                starts[dim] = blocks.enter_context(ctx.each_register(inst.x.shape[dim], "at"))
                blocks.enter_context(ctx.only_if(scalar.eq(*scalar.promote(begin, starts[dim]))))
        register = blocks.enter_context(ctx.each_register(part.local_size))
        inside = ctx.register_of(part, ops.reduce(inst.x.layout, _dropped(inst)), register)
        yield register, _register_of_whole(inst.x.layout, inside, starts)


def _register_of_whole(whole: RegisterLayout, inside: Expr, starts: Mapping[int, Expr]) -> Expr:
    """The register in which a tile has what its part at `starts` has in the register `inside`."""
    total: Expr = scalar.int32(0)
    weight, done = 1, 1
    kept = math.prod(digit.extent for digit in whole.local_digits if digit.dim not in starts)
    for is_cut, run in itertools.groupby(reversed(whole.local_digits), lambda digit: digit.dim in starts):
        together = list(run)
        for digit in together if is_cut else ():
            place = scalar.floordiv(starts[digit.dim], scalar.int32(digit.stride))
            if digit.end < whole.shape[digit.dim]:
                place = scalar.mod(place, scalar.int32(digit.extent))
            total = scalar.add(scalar.mul(place, scalar.int32(weight)), total)
            weight *= digit.extent
        if not is_cut:
            extent = math.prod(digit.extent for digit in together)
            value = scalar.floordiv(inside, scalar.int32(done))
            value = value if done * extent == kept else scalar.mod(value, scalar.int32(extent))
            total = scalar.add(scalar.mul(value, scalar.int32(weight)), total)
            weight, done = weight * extent, done * extent
    return total


def _through_memory(inst: SliceRegisterInst | SliceAssignInst, ctx: Context) -> None:
    """Whoever holds an element of the part brings it to shared memory, and whoever needs it takes it from there."""
    builder = ctx.builder
    whole, part = _taken(inst)
    rows = GlobalLayout.row_major([scalar.int32(extent) for extent in part.shape])
    memory = builder.let("workspace", prims.shared_ptr(part.dtype, ctx.workspace))

    def offset(index: Sequence[Expr]) -> Expr:
        return scalar.cast(rows.offset(index), dtypes.int32)

    if isinstance(inst, SliceRegisterInst):
        registers = ctx.define(part)
        with ctx.only_if(ctx.is_first_replica(whole.layout)), ctx.each_register(whole.layout.local_size) as r:
            inside, index = _in_part(inst, part, ctx.position(whole.layout, r))
            with ctx.only_if(inside):
                builder.buffer_store(memory, offset(index), ctx.read(whole, r))
        builder.evaluate(prims.syncthreads())
        with ctx.each_register(part.layout.local_size) as r:
            builder.store(registers, r, builder.buffer_load(memory, offset(ctx.position(part.layout, r))))
        return
    registers = ctx.define(whole)
    with ctx.only_if(ctx.is_first_replica(part.layout)), ctx.each_register(part.layout.local_size) as r:
        builder.buffer_store(memory, offset(ctx.position(part.layout, r)), ctx.read(part, r))
    builder.evaluate(prims.syncthreads())
    with ctx.each_register(whole.layout.local_size) as r:
        inside, index = _in_part(inst, part, ctx.position(whole.layout, r))
        with ctx.only_if(inside):
            builder.store(registers, r, builder.buffer_load(memory, offset(index)))


def _in_part(
    inst: SliceRegisterInst | SliceAssignInst, part: RegisterTensor, position: Sequence[Expr]
) -> tuple[Expr | None, list[Expr]]:
    """Whether an element of the whole tile is in the part, None where all are, and where in the part."""
    extents = [1] * len(position)
    for dim, extent in zip(inst.dims, part.shape, strict=True):
        extents[dim] = extent
    inside: Expr | None = None
    index: list[Expr] = []
    for dim, (at, start) in enumerate(zip(position, inst.offsets, strict=True)):
        here = scalar.sub(at, scalar.cast(start, dtypes.int32))
        index.append(here)
        if extents[dim] == inst.x.shape[dim]:
            continue
        fits = scalar.logical_and(scalar.le(scalar.int32(0), here), scalar.lt(here, scalar.int32(extents[dim])))
        inside = fits if inside is None else scalar.logical_and(inside, fits)
    return inside, [index[dim] for dim in inst.dims]
