# SPDX-License-Identifier: Apache-2.0
"""The layout of a register tensor, its constructors, and the multiplication and division of layouts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from tilekit.ir.layout import digits, mfunction, shapes, text
from tilekit.ir.layout.digits import AnyPlace, Digit, Place, Replica
from tilekit.ir.layout.mfunction import MultiFunction
from tilekit.ir.layout.shapes import LayoutOperationError


@dataclass(frozen=True, eq=False, repr=False)
class RegisterLayout:
    """Which thread of a group holds which element of a tile, and in which of its registers.

    `mode_shape` factorizes `shape`, row-major within each dimension. Each mode is named once, in `spatial_modes`, the
    digits of the thread number, or in `local_modes`, the digits of the register number, most significant first. An
    entry `-n` of `spatial_modes` is a digit that no index has: n threads hold the same elements.

    Two layouts are equal, and print alike, when they place every element alike.
    """

    shape: tuple[int, ...]
    mode_shape: tuple[int, ...]
    spatial_modes: tuple[int, ...]
    local_modes: tuple[int, ...]

    def __post_init__(self) -> None:
        for what in ("shape", "mode_shape"):
            object.__setattr__(self, what, shapes.extents(what, getattr(self, what)))
        for what in ("spatial_modes", "local_modes"):
            object.__setattr__(self, what, shapes.integers(what, getattr(self, what)))
        if any(mode < 0 for mode in self.local_modes):
            raise LayoutOperationError(
                f"local_modes {list(self.local_modes)} cannot replicate: no entry may be negative"
            )
        _ = self.spatial_digits, self.local_digits
        listed = sorted(mode for mode in self.spatial_modes + self.local_modes if mode >= 0)
        if listed != list(range(len(self.mode_shape))):
            raise LayoutOperationError(
                f"each of the {len(self.mode_shape)} modes must be in one of "
                f"spatial_modes {list(self.spatial_modes)} and local_modes {list(self.local_modes)}"
            )

    @cached_property
    def mode_digits(self) -> tuple[Digit, ...]:
        """The digit of the tensor index that each mode is."""
        return digits.from_modes(self.shape, self.mode_shape)

    @cached_property
    def spatial_digits(self) -> tuple[Place, ...]:
        """The places of the thread number, most significant first, as few as possible."""
        return digits.merged(digits.places_of("spatial_modes", self.spatial_modes, self.mode_digits))

    @cached_property
    def local_digits(self) -> tuple[Digit, ...]:
        """The digits of the register number, most significant first, as few as possible."""
        return digits.merged(
            d for d in digits.places_of("local_modes", self.local_modes, self.mode_digits) if isinstance(d, Digit)
        )

    @property
    def size(self) -> int:
        """The number of elements of the tile."""
        return math.prod(self.shape)

    @property
    def spatial_size(self) -> int:
        """The number of threads."""
        return digits.extent_of(self.spatial_digits)

    @property
    def local_size(self) -> int:
        """The number of registers of each thread."""
        return digits.extent_of(self.local_digits)

    @property
    def num_replicas(self) -> int:
        """The number of threads that hold an element."""
        return digits.extent_of(place for place in self.spatial_digits if isinstance(place, Replica))

    @property
    def is_replicated(self) -> bool:
        return self.num_replicas > 1

    @property
    def grouped_modes(self) -> tuple[tuple[int, ...], ...]:
        """The modes of each dimension."""
        return tuple(
            tuple(mode for mode, digit in enumerate(self.mode_digits) if digit.dim == dim)
            for dim in range(len(self.shape))
        )

    def get_global(self, *, local_index: int, spatial_index: int) -> tuple[int, ...]:
        """The index of the element in register `local_index` of thread `spatial_index`."""
        if not (0 <= local_index < self.local_size and 0 <= spatial_index < self.spatial_size):
            raise IndexError(
                f"no register {local_index} of thread {spatial_index}: "
                f"{self.local_size} registers in each of {self.spatial_size} threads"
            )
        index = [0] * len(self.shape)
        for number, places in ((spatial_index, self.spatial_digits), (local_index, self.local_digits)):
            for place, weight in digits.weighted(places):
                if isinstance(place, Digit):
                    index[place.dim] += number // weight % place.extent * place.stride
        return tuple(index)

    def get_local(self, global_index: Sequence[int]) -> int:
        """The register, the same in each thread that holds it, of the element at `global_index`."""
        (register,) = digits.numbers_at(self.local_digits, self._checked(global_index))
        return register

    def get_spatial(self, global_index: Sequence[int]) -> list[int]:
        """All threads, ascending, that hold the element at `global_index`."""
        return digits.numbers_at(self.spatial_digits, self._checked(global_index))

    def _checked(self, index: Sequence[int]) -> Sequence[int]:
        inside = len(index) == len(self.shape) and all(0 <= i < n for i, n in zip(index, self.shape, strict=True))
        if not inside:
            raise IndexError(f"index {list(index)} is not inside shape {list(self.shape)}")
        return index

    def spatial_mfunction(self) -> MultiFunction:
        """The function from an index to the threads that hold its element."""
        return mfunction.from_places(self.shape, self.spatial_digits)

    def spatial(self, *shape: int) -> RegisterLayout:
        return compose(self, spatial(*shape))

    def local(self, *shape: int) -> RegisterLayout:
        return compose(self, local(*shape))

    def column_spatial(self, *shape: int) -> RegisterLayout:
        return compose(self, column_spatial(*shape))

    def column_local(self, *shape: int) -> RegisterLayout:
        return compose(self, column_local(*shape))

    def replicated(self, *shape: int, num_workers: int) -> RegisterLayout:
        return compose(self, replicated(*shape, num_workers=num_workers))

    def __mul__(self, inner: RegisterLayout) -> RegisterLayout:
        return compose(self, inner)

    def __truediv__(self, inner: RegisterLayout) -> RegisterLayout:
        return divide(self, inner)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RegisterLayout):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[tuple[int, ...], tuple[Place, ...], tuple[Digit, ...]]:
        return self.shape, self.spatial_digits, self.local_digits

    def __repr__(self) -> str:
        """An expression of the constructors, which `parser.parse_layout` reads back."""
        chain = text.factored(self.shape, self.spatial_digits, self.local_digits)
        if chain is not None:
            return chain
        plain = canonicalize(self)
        return (
            f"register_layout(shape={list(plain.shape)}, mode_shape={list(plain.mode_shape)}, "
            f"spatial_modes={list(plain.spatial_modes)}, local_modes={list(plain.local_modes)})"
        )

    def visualize(self) -> str:
        """A grid of `thread:register` for each element, with all threads where replicas hold it."""
        return text.grid(
            self.shape, lambda index: f"{text.thread_list(self.get_spatial(index))}:{self.get_local(index)}"
        )


def register_layout(
    shape: Sequence[int], mode_shape: Sequence[int], spatial_modes: Sequence[int], local_modes: Sequence[int]
) -> RegisterLayout:
    """The layout with these modes, in canonical form."""
    return canonicalize(RegisterLayout(tuple(shape), tuple(mode_shape), tuple(spatial_modes), tuple(local_modes)))


def canonicalize(layout: RegisterLayout) -> RegisterLayout:
    """The same layout with as few modes as it can be written with; `layout` itself where that is so already."""
    plain = from_digits(layout.shape, layout.spatial_digits, layout.local_digits)
    same = (layout.mode_shape, layout.spatial_modes) == (plain.mode_shape, plain.spatial_modes)
    return layout if same and layout.local_modes == plain.local_modes else plain


def from_digits(shape: Sequence[int], spatial: Sequence[Place], local: Sequence[Digit]) -> RegisterLayout:
    """The layout, in canonical form, with these digits in the thread number and in the register number."""
    mode_shape, (spatial_modes, local_modes) = digits.to_modes(digits.merged(spatial), digits.merged(local))
    return RegisterLayout(tuple(shape), mode_shape, spatial_modes, local_modes)


def spatial(*shape: int, ranks: Sequence[int] | None = None) -> RegisterLayout:
    """One element in each thread, row-major.

    Parameters
    ----------
    ranks
        The significance of each dimension in the thread number, 0 the most; row-major is 0, 1, 2, ...
    """
    return register_layout(shape, shape, _by_rank(shape, ranks), [])


def local(*shape: int, ranks: Sequence[int] | None = None) -> RegisterLayout:
    """All elements in one thread, row-major.

    Parameters
    ----------
    ranks
        The significance of each dimension in the register number, 0 the most; row-major is 0, 1, 2, ...
    """
    return register_layout(shape, shape, [], _by_rank(shape, ranks))


def column_spatial(*shape: int) -> RegisterLayout:
    """One element in each thread, column-major."""
    return spatial(*shape, ranks=range(len(shape))[::-1])


def column_local(*shape: int) -> RegisterLayout:
    """All elements in one thread, column-major."""
    return local(*shape, ranks=range(len(shape))[::-1])


def replicated(*shape: int, num_workers: int) -> RegisterLayout:
    """All elements in each of `num_workers` threads, row-major."""
    (workers,) = shapes.extents("num_workers", [num_workers])
    return register_layout(shape, shape, [-workers], range(len(shape)))


def _by_rank(shape: Sequence[int], ranks: Sequence[int] | None) -> list[int]:
    dims = range(len(shape))
    if ranks is None:
        return list(dims)
    if sorted(ranks) != list(dims):
        raise LayoutOperationError(f"ranks {list(ranks)} must be a permutation of the dimensions {list(dims)}")
    return sorted(dims, key=lambda dim: ranks[dim])


def compose(outer: RegisterLayout, inner: RegisterLayout) -> RegisterLayout:
    """Each element of `outer` becomes a tile laid out as `inner`; a lower rank gets leading dimensions of extent 1.

    The outer indices are the high part of each dimension, of the thread number and of the register number.
    """
    rank = max(len(outer.shape), len(inner.shape))
    outer, inner = _with_rank(outer, rank), _with_rank(inner, rank)
    return from_digits(
        [high * low for high, low in zip(outer.shape, inner.shape, strict=True)],
        [*_scaled(outer.spatial_digits, inner.shape), *inner.spatial_digits],
        [*_scaled(outer.local_digits, inner.shape), *inner.local_digits],
    )


def divide(layout: RegisterLayout, inner: RegisterLayout) -> RegisterLayout:
    """The `outer` with `outer * inner == layout`."""
    inner = _with_rank(inner, len(layout.shape))
    shape = _quotient_shape(layout, inner)
    spatial, local = _without(layout, inner, [1] * len(shape), at_end=True)
    return from_digits(shape, _lowered(spatial, inner.shape), _lowered(local, inner.shape))


def left_divide(layout: RegisterLayout, outer: RegisterLayout) -> RegisterLayout:
    """The `inner` with `outer * inner == layout`."""
    outer = _with_rank(outer, len(layout.shape))
    shape = _quotient_shape(layout, outer)
    spatial, local = _without(layout, outer, shape, at_end=False)
    return from_digits(shape, spatial, local)


def _with_rank(layout: RegisterLayout, rank: int) -> RegisterLayout:
    extra = rank - len(layout.shape)
    if extra < 0:
        raise LayoutOperationError(f"{layout} has rank {len(layout.shape)}, more than the other layout's {rank}")
    shape = (1,) * extra + layout.shape
    return RegisterLayout(shape, layout.mode_shape, layout.spatial_modes, layout.local_modes) if extra else layout


def _scaled(places: Iterable[AnyPlace], factors: Sequence[int]) -> list[AnyPlace]:
    """The digits of `index // factors` as digits of `index`."""
    return [place.moved(lambda dim, stride: (dim, stride * factors[dim])) for place in places]


def _lowered(places: Iterable[AnyPlace], factors: Sequence[int]) -> list[AnyPlace]:
    """The digits of `index`, all above `factors`, as digits of `index // factors`."""
    return [place.moved(lambda dim, stride: (dim, stride // factors[dim])) for place in places]


def _quotient_shape(layout: RegisterLayout, divisor: RegisterLayout) -> list[int]:
    if any(extent % by != 0 for extent, by in zip(layout.shape, divisor.shape, strict=True)):
        raise LayoutOperationError(
            f"cannot divide {layout} by {divisor}: "
            f"shape {list(layout.shape)} is not a multiple of shape {list(divisor.shape)}"
        )
    return [extent // by for extent, by in zip(layout.shape, divisor.shape, strict=True)]


def _without(
    layout: RegisterLayout, divisor: RegisterLayout, scale: Sequence[int], *, at_end: bool
) -> tuple[list[Place], list[Digit]]:
    """What the divisor, its strides times `scale`, leaves of the thread number and of the register number."""
    spatial, local = _scaled(divisor.spatial_digits, scale), _scaled(divisor.local_digits, scale)
    every = [*layout.spatial_digits, *layout.local_digits, *spatial, *local]
    cuts = {(p.dim, bound) for p in every if isinstance(p, Digit) for bound in (p.stride, p.end)}
    rest_spatial = _remove(layout.spatial_digits, spatial, cuts, at_end=at_end)
    rest_local = _remove(layout.local_digits, local, cuts, at_end=at_end)
    if rest_spatial is None or rest_local is None:
        number = "thread" if rest_spatial is None else "register"
        raise LayoutOperationError(
            f"cannot divide {layout} by {divisor}: "
            f"the digits of its {number} number do not {'end' if at_end else 'begin'} with those of the divisor"
        )
    return rest_spatial, rest_local


def _remove(
    places: Iterable[AnyPlace], taken: Iterable[AnyPlace], cuts: Set[tuple[int, int]], *, at_end: bool
) -> list[AnyPlace] | None:
    """`places` without `taken` at the end or at the beginning, or None where it does not stand there."""
    rest, wanted = _refined(places, cuts), _refined(taken, cuts)
    if rest is None or wanted is None:
        return None
    step = 1 if at_end else -1
    rest = rest[::step]
    for place in wanted[::-step]:
        have = rest.pop() if rest else None
        if have == place:
            continue
        if not isinstance(have, Replica) or not isinstance(place, Replica) or have.extent % place.extent != 0:
            return None
        rest.append(have.part(place.extent, have.extent // place.extent))
    return rest[::step]


def _refined(places: Iterable[AnyPlace], cuts: Set[tuple[int, int]]) -> list[AnyPlace] | None:
    """The same number with its digits cut at all of `cuts`, pairs of dimension and stride; None if it cannot be."""
    result: list[AnyPlace] = []
    for place in places:
        if not isinstance(place, Digit):
            result.append(place)
            continue
        pieces = digits.split(place, [stride for dim, stride in cuts if dim == place.dim])
        if pieces is None:
            return None
        result += [place.part(piece.stride // place.stride, piece.extent) for piece in pieces]
    return result
