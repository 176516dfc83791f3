# SPDX-License-Identifier: Apache-2.0
"""Where a tile should lie in shared memory: so that warps move it in and out in the fewest rounds.

Every layout that is tried has no gaps. A row along the inner dimension is cut in pieces of at most 128 bytes, and bits
of the row number are XORed into what comes before a 16th, an 8th ... of all banks: so the elements of a column, too,
come to lie in different banks.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilekit.ir.layout import atoms, banks, mapping, ops, shapes
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shapes import LayoutOperationError
from tilekit.ir.layout.shared_layout import LINE_NBYTES, VECTOR_NBYTES, SharedLayout, Swizzle, shared_pieces

# from the layout of a tile to that of a part of it, or of it with its dimensions in another order; None if it has none
View = Callable[[SharedLayout], SharedLayout | None]


@dataclass(frozen=True)
class Use:
    """A tile, or a view of it, that is moved between shared memory and registers in `reg`."""

    reg: RegisterLayout
    matrices: bool
    """Whether the target has an instruction that moves matrices this way."""
    view: View | None = None


@dataclass(frozen=True)
class Cost:
    """What a warp needs to move its part of a tile, judged by the first warp."""

    instructions: int
    rounds: int
    conflicts: int
    """The rounds beyond those that it takes to move as many bytes."""

    @property
    def total(self) -> int:
        return self.instructions + self.rounds


@functools.lru_cache(maxsize=4096)
def cost(shared: SharedLayout, reg: RegisterLayout, nbytes: int, *, matrices: bool) -> Cost:
    """What it takes to move a tile of elements of `nbytes`, in `matrices` if the layouts are made of them."""
    access = atoms.matrix_access(reg, shared, nbytes) if matrices else None
    if access is not None:
        found = banks.rounds(shared, access.rows, nbytes, access.row_size, warps=1)
        # ldmatrix reads a row once, however many lanes could say where it is
        together = access.count / 4
        return Cost(access.instructions, int(found.sum() * together), int((found - 1).sum() * together))
    vector = math.gcd(mapping.shared_vector_extent(reg, shared), VECTOR_NBYTES // nbytes)
    found = banks.rounds(shared, reg, nbytes, vector, warps=1)
    return Cost(found.shape[1], int(found.sum()), int((found - 1).sum()))


def place(
    shape: Sequence[int], nbytes: int, uses: Sequence[Use], *, inner: int | None = None, views: Sequence[View] = ()
) -> SharedLayout:
    """The layout of a tile of elements of `nbytes` that costs its `uses` least; of several the simplest.

    Parameters
    ----------
    inner
        The dimension along which elements lie side by side; given none, the one that costs least.
    views
        What must have a layout, too.

    Returns
    -------
    SharedLayout
        Row-major where no other has all views.
    """
    shape = shapes.extents("shape", shape)
    best: tuple[int, SharedLayout] | None = None
    for dim in range(len(shape))[::-1] if inner is None else [inner]:
        best = _cheapest(_candidates(shape, nbytes, dim), nbytes, uses, views, best)
    return ops.shared_row_major(*shape) if best is None else best[1]


def _cheapest(
    candidates: Iterator[SharedLayout],
    nbytes: int,
    uses: Sequence[Use],
    views: Sequence[View],
    best: tuple[int, SharedLayout] | None,
) -> tuple[int, SharedLayout] | None:
    """The cheapest of `best` and the candidates, with what it costs.

    The first candidate has no swizzle, so it moves the largest vectors; without its conflicts nothing is cheaper.
    """
    for number, layout in enumerate(candidates):
        seen = [(layout if use.view is None else use.view(layout), use) for use in uses]
        if any(view(layout) is None for view in views) or any(view is None for view, _ in seen):
            continue
        costs = [cost(view, use.reg, nbytes, matrices=use.matrices) for view, use in seen if view is not None]
        total, needless = sum(found.total for found in costs), sum(found.conflicts for found in costs)
        if best is None or total < best[0]:
            best = total, layout
        if needless == 0 or (number == 0 and total - needless >= best[0]):
            break
    return best


def _candidates(shape: Sequence[int], nbytes: int, inner: int) -> Iterator[SharedLayout]:
    """Layouts with `inner` contiguous, the simplest first."""
    order = [*(dim for dim in range(len(shape)) if dim != inner), inner]
    back = [order.index(dim) for dim in range(len(shape))]
    rows = [shape[dim] for dim in order]
    yield ops.shared_row_major(*rows).permute(back)
    if len(rows) == 1:
        return
    with contextlib.suppress(LayoutOperationError):
        yield ops.shared_row_major_swizzle(rows, nbytes).permute(back)
    pieces = shared_pieces(rows, nbytes)
    for swizzle in _swizzles(pieces, nbytes):
        yield pieces.apply_swizzle(swizzle).permute(back)


def _swizzles(pieces: SharedLayout, nbytes: int) -> Iterator[Swizzle]:
    """All that XOR some of the low bits of the row number into bits that say which bank, large units first."""
    piece = math.gcd(pieces.shape[-1] * nbytes, LINE_NBYTES) // nbytes
    if piece & (piece - 1) != 0:
        return
    in_piece, in_line, in_all = (number.bit_length() - 1 for number in (piece, LINE_NBYTES // nbytes, pieces.size))
    for base, bits in itertools.product(range(in_line)[::-1], range(1, 6)):
        if base + bits > in_line:
            continue
        for low in range(in_piece, min(in_piece + bits, in_all - bits + 1)):
            if low - base >= bits:
                yield Swizzle(base, bits, low - base)
