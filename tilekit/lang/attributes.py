# SPDX-License-Identifier: Apache-2.0
"""`self.attrs`: the launch facts that a kernel sets on itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from tilekit import dtypes
from tilekit.diag import errors, suggest
from tilekit.diag.span import Span
from tilekit.lang import values
from tilekit.lang.builder import Builder
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr
from tilekit.target import MAX_GRID

NAMES = ("blocks", "warps", "cluster_blocks")
_CONSTANT = "pass it to __init__, or annotate the parameter as int"


@dataclass(frozen=True)
class Dim3:
    """Three int32 expressions: x, y, z."""

    x: Expr
    y: Expr
    z: Expr

    def __iter__(self) -> Iterator[Expr]:
        return iter((self.x, self.y, self.z))

    def __len__(self) -> int:
        return 3

    def __getitem__(self, axis: int) -> Expr:
        return (self.x, self.y, self.z)[axis]


class Attributes:
    """`blocks` (the grid, one to three extents), `warps` (1 to 32), `cluster_blocks`."""

    blocks: tuple[Expr, Expr, Expr] | None
    warps: int | None
    cluster_blocks: tuple[int, int, int]
    # where each was set last
    places: dict[str, Span | None]

    def __init__(self, builder: Builder) -> None:
        places: dict[str, Span | None] = {}
        self.__dict__.update(_builder=builder, places=places, blocks=None, warps=None, cluster_blocks=(1, 1, 1))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in NAMES:
            near = suggest(name, NAMES)
            raise errors.LanguageError(
                "TK108",
                f"self.attrs has no {name}",
                help=f"did you mean self.attrs.{near}?" if near else f"it has {', '.join(NAMES)}",
            )
        builder: Builder = self.__dict__["_builder"]
        self.__dict__[name] = getattr(self, f"_check_{name}")(value, builder)
        self.places[name] = builder.span

    def _check_blocks(self, value: Any, builder: Builder) -> tuple[Expr, ...]:
        extents = _sequence(value)
        if not 1 <= len(extents) <= 3:
            raise errors.LanguageError("TK108", f"self.attrs.blocks needs one to three extents, got {len(extents)}")
        grid: list[Expr] = []
        for axis, extent in enumerate(map(values.known, extents)):
            if not _is_integer(extent):
                raise errors.LanguageError(
                    "TK108",
                    f"self.attrs.blocks needs integers, got {values.describe(extent)}",
                    help="use cdiv(n, block) or n // block for a number of blocks",
                )
            if not isinstance(extent, Expr) and extent < 0:
                raise errors.LanguageError("TK108", f"self.attrs.blocks cannot be negative, got {extent}")
            if not isinstance(extent, Expr) and extent > MAX_GRID[axis]:
                raise errors.LanguageError(
                    "TK108",
                    f"self.attrs.blocks has {extent} blocks along {'xyz'[axis]}, more than {MAX_GRID[axis]}",
                    help=None if axis == 0 else "put the largest extent first: a grid is long along x alone",
                )
            grid.append(builder.expand(scalar.as_expr(extent)))
        one = scalar.constant(dtypes.int32, 1)
        return (*grid, *([one] * (3 - len(grid))))

    def _check_warps(self, value: Any, builder: Builder) -> int:
        warps = values.known(value)
        if isinstance(warps, Expr):
            raise errors.LanguageError("TK108", "self.attrs.warps must be known at compile time", help=_CONSTANT)
        if isinstance(warps, bool) or not isinstance(warps, int) or not 1 <= warps <= 32:
            raise errors.LanguageError(
                "TK108", f"self.attrs.warps must be an integer from 1 to 32, got {warps!r}", help="a warp is 32 threads"
            )
        return warps

    def _check_cluster_blocks(self, value: Any, builder: Builder) -> tuple[int, int, int]:
        extents = [values.known(extent) for extent in _sequence(value)]
        if not 1 <= len(extents) <= 3 or not all(isinstance(extent, int) and extent > 0 for extent in extents):
            shown = ", ".join(map(values.describe, extents))
            raise errors.LanguageError(
                "TK108", f"self.attrs.cluster_blocks needs one to three positive integers, got {shown}"
            )
        if any(extent != 1 for extent in extents):
            raise errors.LanguageError(
                "TK108", f"clusters of blocks are not available in this version, got cluster_blocks={extents}"
            )
        return (1, 1, 1)


def _is_integer(value: Any) -> bool:
    if isinstance(value, Expr):
        return scalar.is_integer(scalar.dtype_of(value))
    return isinstance(value, int) and not isinstance(value, bool)


def _sequence(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, (tuple, list)) else (value,)
