# SPDX-License-Identifier: Apache-2.0
"""Layouts as integer arithmetic: the sums that emitters print to get from threads and registers to elements."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from tilekit.ir.layout import digits, shapes
from tilekit.ir.layout.digits import Digit, Place, Replica
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shapes import LayoutOperationError
from tilekit.ir.layout.shared_layout import SharedLayout


class Source(Enum):
    """The number that a term reads: of the thread, or of its register."""

    THREAD = "thread"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Term:
    """The summand `source // divisor % modulus * multiplier`; no modulus where the quotient stays below it anyway."""

    source: Source
    divisor: int
    modulus: int | None
    multiplier: int

    def at(self, number: int) -> int:
        """Its value where the source is `number`; also of an integer array."""
        quotient = number // self.divisor
        return (quotient if self.modulus is None else quotient % self.modulus) * self.multiplier

    def __str__(self) -> str:
        division = f" // {self.divisor}" if self.divisor != 1 else ""
        remainder = f" % {self.modulus}" if self.modulus is not None else ""
        product = f" * {self.multiplier}" if self.multiplier != 1 else ""
        return f"{self.source.value}{division}{remainder}{product}"


Terms = tuple[Term, ...]
"""A sum, the most significant summand first; the empty one is 0."""


def evaluate(terms: Iterable[Term], *, thread: int = 0, local: int = 0) -> int:
    """The value of the sum; also of integer arrays."""
    numbers = {Source.THREAD: thread, Source.LOCAL: local}
    return sum(term.at(numbers[term.source]) for term in terms)


def index_terms(layout: RegisterLayout) -> tuple[Terms, ...]:
    """For each dimension, the index of the element in a register of a thread."""
    terms: list[list[Term]] = [[] for _ in layout.shape]
    for source, places in ((Source.THREAD, layout.spatial_digits), (Source.LOCAL, layout.local_digits)):
        size = digits.extent_of(places)
        for place, weight in digits.weighted(places):
            if isinstance(place, Digit):
                terms[place.dim] += _terms(source, [_Part(weight, place.extent, place.stride)], size)
    return tuple(tuple(sorted(summands, key=lambda term: -term.multiplier)) for summands in terms)


def replica_terms(layout: RegisterLayout) -> Terms:
    """The number of a thread among those that hold the same elements: 0 for exactly one of them."""
    replicas = [(w, p.extent) for p, w in digits.weighted(layout.spatial_digits) if isinstance(p, Replica)]
    return numbering(Source.THREAD, replicas, layout.spatial_size)


@functools.lru_cache(maxsize=1024)
def local_map(result: RegisterLayout, operand: RegisterLayout) -> Terms | None:
    """The register of `operand` that a thread needs for a register of `result`, to which it is broadcast (NumPy rules).

    None if it is no such sum of the register number alone: the thread does not hold the element, or which of its
    registers does depends on the thread, or the two layouts cut a dimension at strides that do not divide one another.
    """
    if not covers(operand, result):
        return None
    leading, _ = shapes.broadcast(operand.shape, result.shape)
    weight_of: dict[Digit, int] = dict(digits.weighted(result.local_digits))
    parts: list[_Part] = []
    for digit, weight in digits.weighted(operand.local_digits):
        readings = digits.read(_index_digits(result, digit.dim + leading), digit.stride, digit.extent)
        if readings is None or any(through not in weight_of for through, _, _ in readings):
            return None
        for through, stride, extent in readings:
            step = through.stride * stride // digit.stride
            parts.append(_Part(weight_of[through] * stride, extent, weight * step))
    return _terms(Source.LOCAL, parts, result.local_size)


def covers(operand: RegisterLayout, result: RegisterLayout) -> bool:
    """Whether each thread holds the elements of `operand` that its elements of `result` need (NumPy broadcasting)."""
    needed = result.spatial_mfunction().collapse_by_shape(operand.shape)
    return operand.spatial_mfunction().cover(needed)


@functools.lru_cache(maxsize=1024)
def shared_terms(reg: RegisterLayout, shared: SharedLayout) -> Terms | None:
    """The offset in `shared`, before its swizzle, of the element in a register of a thread; None if it is no such sum.

    That is so where the two layouts cut a dimension at strides that do not divide one another.
    """
    if reg.shape != shared.shape:
        raise LayoutOperationError(f"a tile of shape {list(reg.shape)} is none of shape {list(shared.shape)}")
    terms: list[Term] = []
    for source, places in ((Source.THREAD, reg.spatial_digits), (Source.LOCAL, reg.local_digits)):
        parts = _shared_parts(places, shared)
        if parts is None:
            return None
        terms += _terms(source, parts, digits.extent_of(places))
    return tuple(sorted(terms, key=lambda term: -term.multiplier))


@functools.lru_cache(maxsize=1024)
def shared_vector_extent(reg: RegisterLayout, shared: SharedLayout) -> int:
    """How many registers, from a multiple of their number on, lie side by side in `shared`, from a multiple on too.

    The second multiple is one of the offset in a tile that starts at one. A swizzle moves no more than `2**base` of
    them as one.
    """
    terms = shared_terms(reg, shared)
    if terms is None:
        return 1
    extent = 1
    beside = {(term.divisor, term.multiplier): term for term in terms if term.source is Source.LOCAL}
    while (term := beside.pop((extent, extent), None)) is not None:
        extent *= reg.local_size // extent if term.modulus is None else term.modulus
    steps = [term.multiplier for term in terms if term.source is Source.THREAD or term in beside.values()]
    swizzle = shared.optional_swizzle
    return math.gcd(extent, *steps, *([] if swizzle is None else [1 << swizzle.base]))


def _shared_parts(places: Sequence[Place], shared: SharedLayout) -> list[_Part] | None:
    """The part of the offset, before the swizzle, that the places of a number make; None if a digit is cut."""
    parts: list[_Part] = []
    for place, weight in digits.weighted(places):
        if not isinstance(place, Digit):
            continue
        modes = [mode for mode in shared.modes if mode.digit.dim == place.dim]
        step_of = {mode.digit: mode.step for mode in modes}
        readings = digits.read([mode.digit for mode in modes], place.stride, place.extent)
        if readings is None:
            return None
        below = place.extent
        for through, stride, extent in readings:
            below //= extent
            parts.append(_Part(weight * below, extent, step_of[through] * stride))
    return parts


def numbering(source: Source, chosen: Sequence[tuple[int, int]], size: int) -> Terms:
    """The number, below their product, that some digits of a source make: (weight, extent), most significant first.

    The source itself stays below `size`.
    """
    parts: list[_Part] = []
    multiplier = math.prod(extent for _, extent in chosen)
    for weight, extent in chosen:
        multiplier //= extent
        parts.append(_Part(weight, extent, multiplier))
    return _terms(source, parts, size)


@dataclass(frozen=True, slots=True)
class _Part:
    """The summand `source // divisor % extent * multiplier`."""

    divisor: int
    extent: int
    multiplier: int

    def continues(self, high: _Part) -> bool:
        return high.divisor == self.divisor * self.extent and high.multiplier == self.multiplier * self.extent


def _terms(source: Source, parts: Iterable[_Part], size: int) -> Terms:
    """The sum in as few terms as it can be written with, of a source below `size`."""
    fewest: list[_Part] = []
    for part in parts:
        if part.extent == 1:
            continue
        if fewest and part.continues(fewest[-1]):
            fewest[-1] = _Part(part.divisor, part.extent * fewest[-1].extent, part.multiplier)
        else:
            fewest.append(part)
    return tuple(
        Term(source, part.divisor, part.extent if part.divisor * part.extent < size else None, part.multiplier)
        for part in fewest
    )


def _index_digits(layout: RegisterLayout, dim: int) -> list[Digit]:
    """The digits of the index into `dim`, most significant first."""
    every = (*layout.spatial_digits, *layout.local_digits)
    found = [place for place in every if isinstance(place, Digit) and place.dim == dim]
    return sorted(found, key=lambda digit: -digit.stride)
