# SPDX-License-Identifier: Apache-2.0
"""The idea behind register layouts: numbers in mixed radix, whose digits are dealt out to threads and registers.

An index into a tensor dimension is a number of several digits; so is a thread's number, and so is the number of a
register. A layout says which digit of which dimension stands at which place of the thread number or of the register
number. Every operation on layouts is then a sentence about lists of digits, most significant first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

from tilekit.ir.layout.shapes import LayoutOperationError


@dataclass(frozen=True, slots=True)
class Digit:
    """The digit `index[dim] // stride % extent` of a tensor index."""

    dim: int
    stride: int
    extent: int

    @property
    def end(self) -> int:
        return self.stride * self.extent

    def part(self, stride: int, extent: int) -> Self:
        """The digit `self // stride % extent`, where both divide the extent."""
        return replace(self, stride=self.stride * stride, extent=extent)

    def moved(self, to: Callable[[int, int], tuple[int, int]]) -> Self:
        """The digit at the dimension and the stride that `to` says for the present ones."""
        dim, stride = to(self.dim, self.stride)
        return replace(self, dim=dim, stride=stride)


@dataclass(frozen=True, slots=True)
class Replica:
    """A place of the thread number that no index digit stands at: the `extent` threads hold the same elements."""

    extent: int

    def part(self, stride: int, extent: int) -> Self:
        """As of a digit."""
        return replace(self, extent=extent)

    def moved(self, to: Callable[[int, int], tuple[int, int]]) -> Self:
        """As of a digit: it has none."""
        return self


Place = Digit | Replica
AnyPlace = TypeVar("AnyPlace", bound=Place)


def extent_of(places: Iterable[Place]) -> int:
    """How many numbers the places can make."""
    return math.prod(place.extent for place in places)


def weighted(places: Sequence[AnyPlace]) -> Iterator[tuple[AnyPlace, int]]:
    """Each place with its weight in the number that they make: `number // weight % place.extent` reads it."""
    weight = extent_of(places)
    for place in places:
        weight //= place.extent
        yield place, weight


def merged(places: Iterable[AnyPlace]) -> tuple[AnyPlace, ...]:
    """The same number with as few places as it can be written with."""
    result: list[AnyPlace] = []
    for place in places:
        if place.extent == 1:
            continue
        if result and _contiguous(result[-1], place):
            result[-1] = place.part(1, result[-1].extent * place.extent)
        else:
            result.append(place)
    return tuple(result)


def _contiguous(high: Place, low: Place) -> bool:
    match high, low:
        case Digit(), Digit():
            return high.dim == low.dim and high.stride == low.end
        case Replica(), Replica():
            return True
        case _:
            return False


def split(digit: Digit, cuts: Iterable[int]) -> tuple[Digit, ...] | None:
    """`digit` cut at those strides in `cuts` that lie inside it, or None where they do not divide one another."""
    pieces: list[Digit] = []
    stride = digit.stride
    for end in [*sorted({cut for cut in cuts if digit.stride < cut < digit.end}), digit.end]:
        if end % stride != 0:
            return None
        pieces.append(Digit(digit.dim, stride, end // stride))
        stride = end
    return tuple(reversed(pieces))


def read(places: Sequence[AnyPlace], weight: int, extent: int) -> list[tuple[AnyPlace, int, int]] | None:
    """`number // weight % extent`, for a number written with `places`, as a list of (place, stride, extent).

    An entry stands for `value // stride % extent` of the value shown at the place; they are the digits of the result,
    most significant first. None where the result is not made of digits of the places.
    """
    if weight * extent > extent_of(places):
        return None
    pieces = split(Digit(0, weight, extent), (start for _, start in weighted(places)))
    if pieces is None:
        return None
    readings: list[tuple[AnyPlace, int, int]] = []
    for piece in pieces:
        if piece.extent == 1:
            continue
        place, start = next((p, w) for p, w in weighted(places) if w <= piece.stride < w * p.extent)
        if piece.stride % start != 0 or start * place.extent % piece.end != 0:
            return None
        readings.append((place, piece.stride // start, piece.extent))
    return readings


def from_modes(shape: Sequence[int], mode_shape: Sequence[int]) -> tuple[Digit, ...]:
    """The index digit that each mode is, where `mode_shape` factorizes `shape` row-major."""
    result: list[Digit] = []
    modes = iter(mode_shape)
    for dim, extent in enumerate(shape):
        rest = extent
        while rest > 1:
            mode = next(modes, None)
            if mode is None or rest % mode != 0:
                raise LayoutOperationError(
                    f"mode_shape {list(mode_shape)} does not factorize shape {list(shape)}: "
                    f"no run of modes has the product {extent} of dimension {dim}"
                )
            rest //= mode
            result.append(Digit(dim, rest, mode))
    for mode in modes:
        if mode != 1:
            raise LayoutOperationError(f"mode_shape {list(mode_shape)} has more elements than shape {list(shape)}")
        result.append(Digit(max(len(shape) - 1, 0), 1, 1))
    return tuple(result)


def places_of(what: str, modes: Sequence[int], mode_digits: Sequence[Digit]) -> tuple[Place, ...]:
    """What stands at each place of a number: the mode that `modes` names there, or n replicas for an entry -n."""
    for mode in modes:
        if mode >= len(mode_digits):
            raise LayoutOperationError(f"{what} {list(modes)} name mode {mode}, but there are {len(mode_digits)} modes")
    named = [mode for mode in modes if mode >= 0]
    if len(named) != len(set(named)):
        raise LayoutOperationError(f"{what} {list(modes)} name a mode twice")
    return tuple(mode_digits[mode] if mode >= 0 else Replica(-mode) for mode in modes)


def to_modes(*numbers: Sequence[Place]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The mode shape whose modes are all the digits in `numbers`, and each of the numbers as a list of modes."""
    ordered = sorted(
        (place for places in numbers for place in places if isinstance(place, Digit)),
        key=lambda digit: (digit.dim, -digit.stride),
    )
    mode_of = {digit: mode for mode, digit in enumerate(ordered)}
    as_modes = [tuple(mode_of[p] if isinstance(p, Digit) else -p.extent for p in places) for places in numbers]
    return tuple(digit.extent for digit in ordered), as_modes


def numbers_at(places: Sequence[Place], index: Sequence[int]) -> list[int]:
    """All numbers, ascending, whose digits are those of `index`."""
    values = [
        range(place.extent) if isinstance(place, Replica) else (index[place.dim] // place.stride % place.extent,)
        for place in places
    ]
    weights = [weight for _, weight in weighted(places)]
    return [sum(w * v for w, v in zip(weights, choice, strict=True)) for choice in itertools.product(*values)]
