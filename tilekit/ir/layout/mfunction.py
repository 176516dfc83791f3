# SPDX-License-Identifier: Apache-2.0
"""Multi-functions: an index goes to a set of threads, which decides whether an operand is where a result needs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilekit.ir.layout import digits, shapes
from tilekit.ir.layout.digits import Digit, Place, Replica
from tilekit.ir.layout.shapes import LayoutOperationError


@dataclass(frozen=True, eq=False)
class MultiFunction:
    """The function from an index of `shape` to the thread numbers whose digits are `modes`, most significant first.

    `mode_shape` factorizes `shape` row-major; a mode that `modes` does not name has no say, and a negative entry `-n`
    leaves that place of the thread number free: n threads for one index. Equal means: the same function.
    """

    shape: tuple[int, ...]
    mode_shape: tuple[int, ...]
    modes: tuple[int, ...]

    def __post_init__(self) -> None:
        for what in ("shape", "mode_shape"):
            object.__setattr__(self, what, shapes.extents(what, getattr(self, what)))
        object.__setattr__(self, "modes", shapes.integers("modes", self.modes))
        _ = self.places

    @cached_property
    def places(self) -> tuple[Place, ...]:
        mode_digits = digits.from_modes(self.shape, self.mode_shape)
        return digits.merged(digits.places_of("modes", self.modes, mode_digits))

    @property
    def codomain(self) -> int:
        """How many thread numbers there are to go to."""
        return digits.extent_of(self.places)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MultiFunction):
            return NotImplemented
        return (self.shape, self.places) == (other.shape, other.places)

    def __hash__(self) -> int:
        return hash((self.shape, self.places))

    def __call__(self, index: Sequence[int]) -> frozenset[int]:
        return frozenset(digits.numbers_at(self.places, index))

    def __mul__(self, then: MultiFunction) -> MultiFunction:
        """First this function, then `then`: the union of what it gives for each of the numbers."""
        if then.shape != (self.codomain,):
            raise LayoutOperationError(
                f"cannot compose: the first function gives {self.codomain} numbers, the next takes {list(then.shape)}"
            )
        places: list[Place] = []
        for place in then.places:
            if isinstance(place, Replica):
                places.append(place)
                continue
            readings = digits.read(self.places, place.stride, place.extent)
            if readings is None:
                raise LayoutOperationError("cannot compose: the next function cuts through the modes of the first")
            places.extend(through.part(stride, extent) for through, stride, extent in readings)
        return from_places(self.shape, places)

    def collapse(self, dims: Sequence[int]) -> MultiFunction:
        """The union over all indices of `dims`, which keep extent 1."""
        dims = shapes.dimensions(dims, len(self.shape))
        shape = [1 if dim in dims else extent for dim, extent in enumerate(self.shape)]
        freed = [Replica(p.extent) if isinstance(p, Digit) and p.dim in dims else p for p in self.places]
        return from_places(shape, freed)

    def collapse_by_shape(self, shape: Sequence[int]) -> MultiFunction:
        """The union over all indices that NumPy broadcasting sends to the same index of `shape`."""
        leading, stretched = shapes.broadcast(shape, self.shape)
        collapsed = self.collapse([*range(leading), *stretched])
        places = [place.moved(lambda dim, stride: (dim - leading, stride)) for place in collapsed.places]
        return from_places(shape, places)

    def cover(self, other: MultiFunction) -> bool:
        """Whether each index goes to all the thread numbers here that it goes to in `other`."""
        if self.shape != other.shape:
            raise LayoutOperationError(f"cannot compare functions of {list(self.shape)} and {list(other.shape)}")
        if other.codomain > self.codomain:
            return False
        return all(
            isinstance(place, Replica) or _always_shown(place, weight, other.places)
            for place, weight in digits.weighted(self.places)
        )


def multi_function(shape: Sequence[int], mode_shape: Sequence[int], modes: Sequence[int]) -> MultiFunction:
    """The multi-function with these modes, in canonical form."""
    return canonicalize(MultiFunction(tuple(shape), tuple(mode_shape), tuple(modes)))


def identity(n: int) -> MultiFunction:
    """Each number below `n` goes to itself."""
    return multi_function([n], [n], [0])


def canonicalize(function: MultiFunction) -> MultiFunction:
    """The same function with as few modes as it can be written with."""
    return from_places(function.shape, function.places)


def from_places(shape: Sequence[int], places: Sequence[Place]) -> MultiFunction:
    """The multi-function, in canonical form, into the numbers that are written with `places`."""
    named = digits.merged(places)
    mode_shape, (modes, _) = digits.to_modes(named, _unnamed(shape, named))
    return MultiFunction(tuple(shape), mode_shape, modes)


def _unnamed(shape: Sequence[int], named: Sequence[Place]) -> list[Digit]:
    """The digits that fill up the index of `shape` between and around those in `named`."""
    rest: list[Digit] = []
    for dim, extent in enumerate(shape):
        inside = [place for place in named if isinstance(place, Digit) and place.dim == dim]
        top = extent
        for digit in [*sorted(inside, key=lambda digit: -digit.stride), Digit(dim, 1, 1)]:
            if digit.end != top:
                rest.append(Digit(dim, digit.end, top // digit.end))
            top = digit.stride
    return rest


def _always_shown(digit: Digit, weight: int, places: Sequence[Place]) -> bool:
    """Whether every number written with `places` shows `digit` of its index at `weight`."""
    readings = digits.read(places, weight, digit.extent)
    return readings is not None and digits.merged(
        through.part(stride, extent) for through, stride, extent in readings
    ) == (digit,)
