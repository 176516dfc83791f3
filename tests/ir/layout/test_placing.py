# SPDX-License-Identifier: Apache-2.0
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ir.layout.strategies import BINARY_EXTENTS, extents, layouts
from tilekit.dtypes import float16, float32, int8, int32, tfloat32
from tilekit.ir.layout import atoms, mapping, ops
from tilekit.ir.layout.ops import conflicts, local, shared_row_major, shared_row_major_swizzle, spatial
from tilekit.ir.layout.placing import Use, cost, place

some = settings(max_examples=30, deadline=None)


def vectors(shape, width, threads=128):
    return ops.auto_local_spatial(threads, [*shape[:-1], shape[-1] // width]) * local(*[1] * (len(shape) - 1), width)


def dot(operand, acc, m=64, n=64, k=64):
    return atoms.resolve_dot_config(operand, acc, m=m, n=n, k=k, num_warps=4)


def total(layout, uses, nbytes):
    return sum(cost_of(layout, use, nbytes).total for use in uses)


def cost_of(layout, use, nbytes):
    return cost(layout, use.reg, nbytes, matrices=use.matrices)


@some
@given(st.data())
def test_chosen_layout_is_packed_and_no_dearer_than_row_major(data):
    shape = data.draw(extents(max_rank=3, max_size=512, of=BINARY_EXTENTS))
    nbytes = data.draw(st.sampled_from([1, 2, 4, 8]))
    uses = tuple(Use(data.draw(layouts(shape)), data.draw(st.booleans())) for _ in range(data.draw(st.integers(0, 2))))
    layout = place(shape, nbytes, uses)
    assert layout.shape == shape
    assert sorted(layout.as_numpy_grid().ravel().tolist()) == list(range(math.prod(shape)))
    assert total(layout, uses, nbytes) <= total(shared_row_major(*shape), uses, nbytes)


@some
@given(st.data())
def test_given_dimension_is_the_one_that_lies_side_by_side(data):
    shape = data.draw(st.lists(st.sampled_from([8, 16, 32]), min_size=1, max_size=3).map(tuple))
    inner = data.draw(st.integers(0, len(shape) - 1))
    nbytes = data.draw(st.sampled_from([2, 4]))
    reg = ops.auto_local_spatial(32, shape)
    layout = place(shape, nbytes, (Use(reg, matrices=False),), inner=inner)
    (first,) = [mode for mode in layout.modes if mode.step == 1]
    assert first.digit.dim == inner
    assert first.digit.stride == 1


def test_tile_nobody_uses_is_row_major():
    assert place((3, 5), 4, ()) == shared_row_major(3, 5)
    assert place((), 4, ()) == shared_row_major()


@pytest.mark.parametrize("columns", [16, 32, 64, 128])
def test_operands_that_matrices_load_are_swizzled_row_by_row(columns):
    config = dot(float16, float32, n=columns, k=64)
    uses = (Use(config.lb, matrices=True), Use(vectors((64, columns), 8), matrices=False))
    assert place((64, columns), 2, uses, inner=1) == shared_row_major_swizzle([64, columns], 2)


def test_where_rows_may_lie_either_way_they_lie_as_matrices_load_them():
    config = dot(int8, int32)
    assert place((64, 64), 1, (Use(config.lb, matrices=True),)) == shared_row_major_swizzle([64, 64], 1).transpose()


@pytest.mark.parametrize(("operand", "acc", "width"), [(tfloat32, float32, 4), (int8, int32, 16)])
def test_operands_that_no_matrices_load_meet_in_no_bank_either(operand, acc, width):
    config = dot(operand, acc)
    nbytes = operand.nbytes
    uses = (Use(config.lb, matrices=True), Use(vectors((64, 64), width), matrices=False))
    plain = shared_row_major(64, 64)
    assert conflicts(plain, config.lb, nbytes, 1) > 0
    layout = place((64, 64), nbytes, uses, inner=1)
    assert conflicts(layout, config.lb, nbytes, 1) == 0
    assert conflicts(layout, vectors((64, 64), width), nbytes, width) == 0


@pytest.mark.parametrize("nbytes", [2, 4])
def test_transposed_scalars_meet_in_no_bank(nbytes):
    rows = ops.auto_local_spatial(128, (64, 64))
    columns = ops.permute(rows, [1, 0])
    layout = place((64, 64), nbytes, (Use(rows, matrices=False), Use(columns, matrices=False)))
    assert conflicts(layout, rows, nbytes, 1) == 0
    assert conflicts(layout, columns, nbytes, 1) == 0


def test_accumulators_are_stored_and_read_in_rows_without_conflicts():
    config = dot(float16, float32)
    uses = (Use(config.lc, matrices=False), Use(vectors((64, 64), 4), matrices=False))
    layout = place((64, 64), 4, uses)
    assert [cost_of(layout, use, 4).conflicts for use in uses] == [0, 0]


def test_costs_that_a_person_can_check():
    column = Use(local(1, 32).spatial(32, 1), matrices=False)
    found = cost_of(shared_row_major(32, 32), column, 4)
    # 8 vectors of 16 bytes for each thread, 8 threads at once, all of them in the same banks
    assert (found.instructions, found.rounds, found.conflicts, found.total) == (8, 8 * 4 * 8, 8 * 4 * 7, 264)
    wide = Use(spatial(4, 8).local(1, 4), matrices=False)
    found = cost_of(shared_row_major(4, 32), wide, 4)
    assert (found.instructions, found.rounds, found.conflicts) == (1, 4, 0)
    for columns, count in ((8, 1), (16, 2), (32, 4)):
        matrices = Use(local(1, columns // 8).spatial(8, 4).local(1, 2), matrices=True)
        found = cost_of(shared_row_major_swizzle([8, columns], 2), matrices, 2)
        assert (found.instructions, found.rounds, found.conflicts) == (1, count, 0)
        found = cost_of(shared_row_major(8, columns), matrices, 2)
        # a row of 16 bytes lies right behind the one before it; longer rows meet every 128 bytes
        assert found.conflicts == count * (columns // 8 - 1)


def test_wider_vectors_cost_fewer_instructions():
    shape = (64, 64)
    narrow, wide = Use(vectors(shape, 1), matrices=False), Use(vectors(shape, 8), matrices=False)
    assert mapping.shared_vector_extent(wide.reg, shared_row_major(*shape)) == 8
    assert cost_of(shared_row_major(*shape), wide, 2).total < cost_of(shared_row_major(*shape), narrow, 2).total


def test_uses_of_views_are_judged_where_the_views_lie():
    rows = ops.auto_local_spatial(128, (64, 64))
    turned = Use(rows, matrices=False, view=ops.SharedLayout.transpose)
    layout = place((64, 64), 4, (Use(rows, matrices=False), turned), inner=1)
    assert conflicts(layout, rows, 4, 1) == conflicts(layout.transpose(), rows, 4, 1) == 0
    assert layout != shared_row_major(64, 64)


def test_layouts_that_a_view_has_none_in_are_not_chosen():
    rows = ops.auto_local_spatial(128, (64, 64))
    uses = (Use(rows, matrices=False), Use(ops.permute(rows, [1, 0]), matrices=False))

    def in_one_piece(layout):
        return layout if len(layout.modes) == 2 else None

    assert len(place((64, 64), 4, uses, inner=1).modes) == 3
    assert place((64, 64), 4, uses, inner=1, views=[in_one_piece]) == shared_row_major(64, 64)
    seen = [Use(use.reg, matrices=False, view=in_one_piece) for use in uses]
    assert place((64, 64), 4, seen, inner=1) == shared_row_major(64, 64)
