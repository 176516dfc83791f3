# SPDX-License-Identifier: Apache-2.0
"""`self.attrs`: the launch facts that a kernel sets on itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from tilekit import dtypes
from tilekit.diag import errors, suggest
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr

NAMES = ("blocks", "warps", "cluster_blocks")


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

    def __init__(self, expand: Callable[[Expr], Expr]) -> None:
        object.__setattr__(self, "_expand", expand)
        object.__setattr__(self, "blocks", None)
        object.__setattr__(self, "warps", None)
        object.__setattr__(self, "cluster_blocks", (1, 1, 1))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in NAMES:
            near = suggest(name, NAMES)
            raise errors.LanguageError(
                "TK108",
                f"self.attrs has no {name}",
                help=f"did you mean {near}?" if near else f"it has {', '.join(NAMES)}",
            )
        object.__setattr__(self, name, getattr(self, f"_check_{name}")(value))

    def _check_blocks(self, value: Any) -> tuple[Expr, ...]:
        extents: Sequence[Any] = cast("Sequence[Any]", value) if isinstance(value, (tuple, list)) else (value,)
        if not 1 <= len(extents) <= 3:
            raise errors.LanguageError("TK108", f"self.attrs.blocks needs one to three extents, got {len(extents)}")
        grid: list[Expr] = []
        for extent in extents:
            if isinstance(extent, bool) or not isinstance(extent, (int, Expr)):
                raise errors.LanguageError(
                    "TK108",
                    f"self.attrs.blocks needs integers, got {extent!r}",
                    help="use cdiv(n, block) or n // block for a number of blocks",
                )
            grid.append(self._expand(scalar.as_expr(extent)))
        one = scalar.constant(dtypes.int32, 1)
        return (*grid, *([one] * (3 - len(grid))))

    def _check_warps(self, value: Any) -> int:
        if isinstance(value, Expr):
            raise errors.LanguageError("TK108", "self.attrs.warps must be known at compile time", help=_CONSTANT)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 32:
            raise errors.LanguageError(
                "TK108", f"self.attrs.warps must be an integer from 1 to 32, got {value!r}", help="a warp is 32 threads"
            )
        return value

    def _check_cluster_blocks(self, value: Any) -> tuple[int, int, int]:
        extents = tuple(cast("Sequence[Any]", value)) if isinstance(value, (tuple, list)) else (value,)
        if not 1 <= len(extents) <= 3 or not all(isinstance(extent, int) and extent > 0 for extent in extents):
            raise errors.LanguageError("TK108", f"self.attrs.cluster_blocks needs one to three integers, got {value!r}")
        if any(extent != 1 for extent in extents):
            raise errors.LanguageError(
                "TK108", f"clusters of blocks are not available in this version, got cluster_blocks={list(extents)}"
            )
        return (1, 1, 1)


_CONSTANT = "pass it to __init__, or annotate the parameter as int"
