# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.layout.strategies import layouts, places
from tilekit.ir.layout import ops, reduction
from tilekit.ir.layout.mapping import evaluate
from tilekit.ir.layout.ops import local, replicated, spatial
from tilekit.ir.layout.reduction import reduction_plan


def run(layout, plan, tile, combine):
    """The plan, carried out by a NumPy array of threads and their registers."""
    registers = np.zeros((layout.spatial_size, layout.local_size), tile.dtype)
    for place, index in places(layout).items():
        registers[place] = tile[index]

    folded = np.zeros((layout.spatial_size, plan.result.local_size), tile.dtype)
    for register in range(layout.local_size):
        target = evaluate(plan.fold, local=register)
        first = evaluate(plan.fold_rank, local=register) == 0
        value = registers[:, register]
        folded[:, target] = value if first else combine(folded[:, target], value)

    threads = np.arange(layout.spatial_size)
    for mask in plan.lane_masks:
        other = threads ^ mask
        assert np.array_equal(other // reduction.WARP_SIZE, threads // reduction.WARP_SIZE)
        folded = combine(folded, folded[other])

    if plan.exchange is None:
        return folded
    exchange = plan.exchange
    row, slot, leader = (
        np.broadcast_to(evaluate(terms, thread=threads), threads.shape)
        for terms in (exchange.row, exchange.slot, exchange.leader)
    )
    writers = threads[leader == 0]
    cells = list(zip(row[writers], slot[writers], strict=True))
    assert sorted(cells) == [(r, s) for r in range(exchange.rows) for s in range(exchange.count)]
    shared = np.zeros((exchange.rows, exchange.count, folded.shape[1]), tile.dtype)
    shared[row[writers], slot[writers]] = folded[writers]
    total = shared[row, 0]
    for i in range(1, exchange.count):
        total = combine(total, shared[row, i])
    return total


def check(layout, dims, keepdims, tile, combine, expected):
    plan = reduction_plan(layout, dims, keepdims=keepdims)
    assert plan.result == ops.reduce(layout, dims, keepdims=keepdims)
    found = run(layout, plan, tile, combine)
    for place, index in places(plan.result).items():
        assert found[place] == expected[index]
    return plan


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_plan_reduces_any_layout_over_any_dimensions(data):
    layout = data.draw(layouts())
    dims = sorted(data.draw(st.sets(st.sampled_from(range(len(layout.shape)))))) if layout.shape else []
    keepdims = data.draw(st.booleans())
    tile = np.random.default_rng(data.draw(st.integers(0, 2**32))).integers(-100, 100, layout.shape)
    check(layout, dims, keepdims, tile, np.add, tile.sum(axis=tuple(dims), keepdims=keepdims))
    check(layout, dims, keepdims, tile, np.maximum, tile.max(axis=tuple(dims), keepdims=keepdims))


@pytest.mark.parametrize(
    ("layout", "dims", "fold_count", "lane_masks", "rows", "count"),
    [
        (local(4, 2).spatial(1, 32), [1], 2, (1, 2, 4, 8, 16), None, None),
        (spatial(4, 32), [0], 1, (), 32, 4),
        (spatial(1, 128).local(1, 4), [1], 4, (1, 2, 4, 8, 16), 1, 4),
        (local(2, 1).spatial(8, 4).local(1, 2), [1], 2, (1, 2), None, None),
        (local(2, 1).spatial(8, 4).local(1, 2), [0], 2, (4, 8, 16), None, None),
        (spatial(2, 64), [0, 1], 1, (1, 2, 4, 8, 16), 1, 4),
        (spatial(8, 12), [1], 1, (1, 2), 8, 3),
        (spatial(3, 32), [0, 1], 1, (1, 2, 4, 8, 16), 1, 3),
        (spatial(5, 6), [0], 1, (), 6, 5),
        (spatial(4, 3), [0], 1, (), 3, 4),
        (replicated(8, num_workers=32), [0], 8, (), None, None),
        (replicated(num_workers=4).spatial(64), [0], 1, (1, 2, 4, 8, 16), 1, 2),
        (spatial(64).replicated(num_workers=2), [0], 1, (2, 4, 8, 16), 1, 4),
        (spatial(4, 8), [], 1, (), None, None),
    ],
)
def test_step_of_each_kind_is_taken_where_it_is_cheapest(layout, dims, fold_count, lane_masks, rows, count):
    tile = np.random.default_rng().integers(-100, 100, layout.shape)
    plan = check(layout, dims, True, tile, np.add, tile.sum(axis=tuple(dims), keepdims=True))
    assert plan.fold_count == fold_count
    assert plan.lane_masks == lane_masks
    assert (plan.exchange and (plan.exchange.rows, plan.exchange.count)) == (rows and (rows, count))


def test_all_replicas_of_a_float_sum_are_equal_bit_for_bit():
    layout = local(1, 2).spatial(2, 96).local(1, 2)
    tile = np.random.default_rng().standard_normal(layout.shape).astype(np.float32)
    plan = reduction_plan(layout, [1])
    found = run(layout, plan, tile, np.add)
    for index in range(2):
        holders = plan.result.get_spatial((index,))
        assert len(holders) == 96
        assert len(set(found[holders, 0])) == 1
