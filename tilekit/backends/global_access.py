# SPDX-License-Identifier: Apache-2.0
"""Where an element of a tensor in global memory lies, as arithmetic over the thread and its register.

What a thread adds to an address is the same for all of its registers wherever an offset grows evenly along the axes of
the tile. It is added to the pointer once, and what remains of an offset are numbers that instructions hold themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tilekit import dtypes
from tilekit.ir.layout import mapping
from tilekit.ir.layout.mapping import Source
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.machine import Access
from tilekit.lowir import scalar
from tilekit.lowir.nodes import Add, Cast, Multiply, Sub
from tilekit.lowir.scalar import Expr, Var

if TYPE_CHECKING:
    from tilekit.backends.context import Context

# from the number of an access to its pointer, the offset from there, and its mask
Places = Callable[[Expr], tuple[Expr, Expr, Expr | None]]


def places(ctx: Context, access: Access, layout: RegisterLayout, every: int) -> Places:
    """Where the accesses of a thread go, each of which has the registers from a multiple of `every` on."""
    slopes = _slopes(access, layout) if layout.local_size > every else None

    def masked(where: dict[Var, Expr]) -> Expr | None:
        return None if access.mask is None else scalar.rewrite(access.mask, where)

    if slopes is None:

        def found(number: Expr) -> tuple[Expr, Expr, Expr | None]:
            where = ctx.bind_axes(access.axes, layout, number, every=every)
            return access.pointer, scalar.rewrite(access.offset, where), masked(where)

        return found
    first = scalar.rewrite(access.offset, ctx.bind_axes(access.axes, layout, 0))
    start = ctx.builder.let("start", ctx.builder.address(access.pointer, first))
    local = [[term for term in terms if term.source is Source.LOCAL] for terms in mapping.index_terms(layout)]
    asked = () if access.mask is None else scalar.free_vars(access.mask)

    def moved(number: Expr) -> tuple[Expr, Expr, Expr | None]:
        offset = scalar.constant(dtypes.int64, 0)
        for terms, slope in zip(local, slopes, strict=True):
            step = scalar.cast(ctx.sum(terms, local=number, every=every), dtypes.int64)
            offset = scalar.add(offset, scalar.mul(step, slope))
        where = ctx.bind_axes(access.axes, layout, number, every=every, only=asked) if asked else {}
        return start, offset, masked(where)

    return moved


def _slopes(access: Access, layout: RegisterLayout) -> Sequence[Expr] | None:
    """What an offset grows by along each axis; None where it does not grow evenly."""
    found = [_slope(access.offset, axis) for axis in access.axes]
    if any(slope is None or any(axis in scalar.free_vars(slope) for axis in access.axes) for slope in found):
        return None
    return found  # type: ignore[return-value]  # none of them is None


def _slope(e: Expr, axis: Var) -> Expr | None:
    """What an integer expression grows by where `axis` grows by one; it does not wrap."""
    if e is axis:
        return scalar.cast(scalar.int32(1), scalar.dtype_of(e))
    if axis not in scalar.free_vars(e):
        return scalar.cast(scalar.int32(0), scalar.dtype_of(e))
    parts = [_slope(part, axis) for part in scalar.children(e)]
    match e, parts:
        case Cast(), [Expr() as inner] if _is_signed(e.expr):
            return scalar.cast(inner, scalar.dtype_of(e))
        case Add(), [Expr() as a, Expr() as b]:
            return scalar.add(a, b)
        case Sub(), [Expr() as a, Expr() as b]:
            return scalar.sub(a, b)
        case Multiply(), [Expr() as a, Expr()] if axis not in scalar.free_vars(e.b):
            return scalar.mul(a, e.b)
        case Multiply(), [Expr(), Expr() as b] if axis not in scalar.free_vars(e.a):
            return scalar.mul(e.a, b)
        case _:
            return None


def _is_signed(e: Expr) -> bool:
    """Whether a sum of this type is what it says: an unsigned one may have wrapped."""
    dtype = scalar.dtype_of(e)
    return scalar.is_integer(dtype) and int(dtype.min_value) < 0
