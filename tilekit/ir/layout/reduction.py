# SPDX-License-Identifier: Apache-2.0
"""How threads that hold a tile together reduce some of its dimensions: fold registers, shuffle lanes, meet in memory.

The digits of the reduced dimensions say who does what. A digit of the register number is folded by each thread alone.
A digit of the thread number whose weight and extent are powers of two inside a warp is an exchange of lanes whose
numbers differ in one bit. Whatever is left, warps and digits that are no powers of two, goes through shared memory.
After each step all threads of the result's replicas hold the same value, bit for bit where the operation commutes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilekit.ir.layout import digits, mapping, ops, shapes
from tilekit.ir.layout.banks import WARP_SIZE
from tilekit.ir.layout.digits import Digit
from tilekit.ir.layout.mapping import Source, Terms
from tilekit.ir.layout.register_layout import RegisterLayout


@dataclass(frozen=True)
class Exchange:
    """The step through shared memory, once for each register of the result.

    A thread with `evaluate(leader) == 0` writes its value to the cell (`row`, `slot`), one thread for each cell; then,
    after a barrier, every thread reads the `count` cells of its `row` in order and combines them.
    """

    rows: int
    count: int
    row: Terms
    slot: Terms
    leader: Terms


@dataclass(frozen=True)
class ReductionPlan:
    """The steps of a reduction, in the order of the fields; all thread numbers count from the start of the group.

    The group must start at a multiple of the warp size, or be part of one warp and start at a multiple of its own size.
    """

    result: RegisterLayout
    fold: Terms
    """The register of the result that a register of the input is folded into."""
    fold_rank: Terms
    """The number of a register of the input among those folded into the same one: 0 is the first."""
    fold_count: int
    lane_masks: tuple[int, ...]
    """Each lane combines its value with that of the lane whose number differs in these bits, mask by mask."""
    exchange: Exchange | None


def reduction_plan(layout: RegisterLayout, dims: Sequence[int], *, keepdims: bool = False) -> ReductionPlan:
    """How to reduce `dims` of a tile in `layout`, so that the result is in `ops.reduce(layout, dims)`."""
    dims = shapes.dimensions(dims, len(layout.shape))
    kept: list[tuple[int, int]] = []
    folded: list[tuple[int, int]] = []
    for digit, weight in digits.weighted(layout.local_digits):
        (folded if digit.dim in dims else kept).append((weight, digit.extent))
    masks, exchange = _across_threads(layout, dims)
    return ReductionPlan(
        result=ops.reduce(layout, dims, keepdims=keepdims),
        fold=mapping.numbering(Source.LOCAL, kept, layout.local_size),
        fold_rank=mapping.numbering(Source.LOCAL, folded, layout.local_size),
        fold_count=math.prod(extent for _, extent in folded),
        lane_masks=masks,
        exchange=exchange,
    )


def _across_threads(layout: RegisterLayout, dims: Sequence[int]) -> tuple[tuple[int, ...], Exchange | None]:
    masks: list[int] = []
    rows: list[tuple[int, int]] = []
    slots: list[tuple[int, int]] = []
    same: list[tuple[int, int]] = []  # threads that hold the same value when the exchange begins
    for place, weight in digits.weighted(layout.spatial_digits):
        if not isinstance(place, Digit):
            same.append((weight, place.extent))
        elif place.dim not in dims:
            rows.append((weight, place.extent))
        else:
            lanes = _lanes(weight, place.extent)
            masks += [weight << bit for bit in range(lanes.bit_length() - 1)]
            slots.append((weight * lanes, place.extent // lanes))
            same.append((weight, lanes))
    count = math.prod(extent for _, extent in slots)
    if count == 1:
        return tuple(sorted(masks)), None
    size = layout.spatial_size
    exchange = Exchange(
        rows=math.prod(extent for _, extent in rows),
        count=count,
        row=mapping.numbering(Source.THREAD, rows, size),
        slot=mapping.numbering(Source.THREAD, slots, size),
        leader=mapping.numbering(Source.THREAD, same, size),
    )
    return tuple(sorted(masks)), exchange


def _lanes(weight: int, extent: int) -> int:
    """The low part of a digit of the thread number that is made of bits of the lane number."""
    if weight >= WARP_SIZE or weight & (weight - 1) != 0:
        return 1
    power_of_two = extent & -extent
    return min(power_of_two, WARP_SIZE // weight)
