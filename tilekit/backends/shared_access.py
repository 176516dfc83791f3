# SPDX-License-Identifier: Apache-2.0
"""Where an element of a shared tensor lies, as arithmetic over the thread and its register.

What depends on the thread is computed once, at the top of the kernel. A swizzle is linear over XOR, so where the bits
of the thread's part and of the register's part of an offset are apart, the swizzle is applied to each of them alone:
the thread's once, and that of a register is a constant when its loop is unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from tilekit import dtypes
from tilekit.ir.layout import mapping
from tilekit.ir.layout.mapping import Source, Term
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shared_layout import SharedLayout, Swizzle
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var

if TYPE_CHECKING:
    from tilekit.backends.context import Context


@dataclass(frozen=True, eq=False)
class SharedView:
    """A shared tensor: element `i` lies at `pointer[swizzle(start + i)]`, and `start` is a multiple of `divisor`.

    A divisor of 0 says that the start is 0. A start that the swizzle does not mix in is part of the pointer. `name` is
    that of the memory.
    """

    name: str
    pointer: Var
    start: Expr
    divisor: int
    layout: SharedLayout


# from the number of an access to the offset of its first element
Offsets = Callable[[Expr], Expr]


def offsets(ctx: Context, layout: RegisterLayout, view: SharedView, every: int) -> Offsets:
    """The element of `view.pointer` that goes with each register of a tile in `layout` that `every` divides."""
    terms = mapping.shared_terms(layout, view.layout)
    swizzle = view.layout.optional_swizzle
    if terms is None:

        def found(number: Expr) -> Expr:
            offset = linear_of(view.layout, ctx.position(layout, number, every=every))
            return _swizzled(ctx, scalar.add(view.start, offset), swizzle)

        return found
    thread = [term for term in terms if term.source is Source.THREAD]
    local = [term for term in terms if term.source is Source.LOCAL]
    first = ctx.hoist(f"{view.name}_at", ctx.sum(thread))
    ours, theirs = _bits(thread, layout.spatial_size), _bits(local, layout.local_size)
    begin = _bits_of_start(ctx, view.start)
    if swizzle is None or ours is None or theirs is None or begin is None or ours & theirs or begin & (ours | theirs):

        def summed(number: Expr) -> Expr:
            offset = scalar.add(first, ctx.sum(local, local=number, every=every))
            return _swizzled(ctx, scalar.add(view.start, offset), swizzle)

        return summed
    if ours & _sources(swizzle):
        first = ctx.hoist(f"{view.name}_swizzled", swizzled(first, swizzle))
    if begin:
        first = _begun(ctx, view, first, swizzle)
        ours |= begin
    low, high = _split(local, layout.local_size, swizzle.period)
    low_bits = theirs & (swizzle.period - 1)
    apart = not _spread(ours, swizzle) & _spread(low_bits, swizzle)

    def mixed(number: Expr) -> Expr:
        inside = ctx.sum(low, local=number, every=every)
        if low_bits & _sources(swizzle):
            inside = swizzled(inside, swizzle)
        both = scalar.add(first, inside) if apart else _xor(first, inside)
        return scalar.add(both, ctx.sum(high, local=number, every=every))

    return mixed


def element(ctx: Context, view: SharedView, index: Sequence[Expr]) -> Expr:
    """The element of `view.pointer` at an index of the tensor."""
    offset = scalar.add(view.start, linear_of(view.layout, index))
    return _swizzled(ctx, offset, view.layout.optional_swizzle)


def linear_of(layout: SharedLayout, index: Sequence[Expr]) -> Expr:
    """The offset of an index before the swizzle."""
    total: Expr = scalar.int32(0)
    for part in parts_of(layout, index):
        total = scalar.add(total, part)
    return total


def parts_of(layout: SharedLayout, index: Sequence[Expr]) -> list[Expr]:
    """What each mode of the layout adds to that offset."""
    parts: list[Expr] = []
    for mode in layout.modes:
        value = scalar.floordiv(_int32(index[mode.digit.dim]), scalar.int32(mode.digit.stride))
        if mode.digit.end != layout.shape[mode.digit.dim]:
            value = scalar.mod(value, scalar.int32(mode.digit.extent))
        parts.append(scalar.mul(value, scalar.int32(mode.step)))
    return parts


def swizzled(offset: Expr, swizzle: Swizzle) -> Expr:
    """The offset with some of its bits XORed into others."""
    mask = scalar.int32(((1 << swizzle.bits) - 1) << swizzle.base)
    return scalar.bitwise_xor(offset, scalar.bitwise_and(scalar.shr(offset, scalar.int32(swizzle.shift)), mask))


def _swizzled(ctx: Context, offset: Expr, swizzle: Swizzle | None) -> Expr:
    if swizzle is None or scalar.is_constant(offset):
        return offset if swizzle is None else scalar.int32(swizzle(scalar.constant_value(offset)))  # type: ignore[arg-type]
    return swizzled(ctx.builder.let("at", offset), swizzle)


def _bits(terms: Sequence[Term], size: int) -> int | None:
    """The bits that the sum can have, where no two terms share one; None where they carry."""
    found = 0
    for term in terms:
        count = -(-size // term.divisor) if term.modulus is None else term.modulus
        if term.multiplier & (term.multiplier - 1) or count & (count - 1):
            return None
        bits = (count - 1) * term.multiplier
        if found & bits:
            return None
        found |= bits
    return found


def _bits_of_start(ctx: Context, start: Expr) -> int | None:
    """The bits that the start of a view can have; None where it may be negative."""
    fact = ctx.values.facts.of(start)
    return None if fact.low < 0 else ((1 << fact.high.bit_length()) - 1) & -(fact.divisor & -fact.divisor)


def _begun(ctx: Context, view: SharedView, first: Expr, swizzle: Swizzle) -> Expr:
    """What the thread adds to the offsets of a view that does not start at 0."""
    if scalar.is_constant(view.start):
        begin = scalar.int32(swizzle(cast("int", scalar.constant_value(view.start))))
        return ctx.hoist(f"{view.name}_begin", scalar.bitwise_xor(first, begin))
    return ctx.builder.let("begin", scalar.bitwise_xor(first, swizzled(view.start, swizzle)))


def _split(terms: Sequence[Term], size: int, period: int) -> tuple[list[Term], list[Term]]:
    """The terms below a period of the swizzle, and those that are multiples of it."""
    low: list[Term] = []
    high: list[Term] = []
    for term in terms:
        count = -(-size // term.divisor) if term.modulus is None else term.modulus
        below = max(period // term.multiplier, 1)
        if below == 1:
            high.append(term)
        elif count <= below:
            low.append(term)
        else:
            low.append(Term(term.source, term.divisor, below, term.multiplier))
            modulus = None if term.modulus is None else term.modulus // below
            high.append(Term(term.source, term.divisor * below, modulus, term.multiplier * below))
    return low, high


def _sources(swizzle: Swizzle) -> int:
    """The bits that the swizzle reads."""
    return ((1 << swizzle.bits) - 1) << (swizzle.base + swizzle.shift)


def _spread(bits: int, swizzle: Swizzle) -> int:
    """The bits that a value with some of `bits` can have after the swizzle."""
    return bits | (bits & _sources(swizzle)) >> swizzle.shift


def _xor(a: Expr, b: Expr) -> Expr:
    if scalar.constant_value(b) == 0:
        return a
    return b if scalar.constant_value(a) == 0 else scalar.bitwise_xor(a, b)


def _int32(e: Expr) -> Expr:
    return scalar.cast(e, dtypes.int32)
