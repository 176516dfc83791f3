# SPDX-License-Identifier: Apache-2.0
import math

from hypothesis import given
from hypothesis import strategies as st

from tilekit import dtypes
from tilekit.ir import layouts
from tilekit.ir.layout import mapping, ops

shapes = st.lists(st.sampled_from([1, 2, 3, 4, 5, 8, 12, 16, 32, 96]), max_size=3)
threads = st.sampled_from([32, 64, 96, 128, 160, 1024])


@given(shapes, threads)
def test_every_shape_can_be_spread_over_any_number_of_threads(shape, num_threads):
    layout = layouts.spread(shape, num_threads)
    assert layout.shape == tuple(shape)
    assert layout.spatial_size == num_threads
    assert layout.local_size * num_threads == math.prod(shape) * layout.num_replicas


@given(shapes.filter(len), threads, st.data())
def test_a_vector_lies_in_neighboring_registers_of_one_thread(shape, num_threads, data):
    dim = data.draw(st.integers(0, len(shape) - 1))
    width = data.draw(st.sampled_from([w for w in (1, 2, 4, 8) if shape[dim] % w == 0]))
    layout = layouts.vectorized(shape, dim, width, num_threads)
    assert (layout.shape, layout.spatial_size) == (tuple(shape), num_threads)
    assert ops.vector_extent(layout, dim) % width == 0


def test_neighboring_vectors_go_to_neighboring_threads():
    layout = layouts.vectorized([64, 8], 0, 4, 32)
    assert [layout.get_spatial([row, 0]) for row in (0, 4, 8)] == [[0], [1], [2]]


@st.composite
def operands(draw):
    """The layout of an operand, a shape that it is broadcast to, and a dtype."""
    shape = draw(shapes)
    operand = [extent if draw(st.booleans()) else 1 for extent in shape]
    layout = layouts.spread(operand[draw(st.integers(0, len(shape))) :], draw(threads))
    return layout, shape, draw(st.sampled_from([dtypes.int8, dtypes.float16, dtypes.float32, dtypes.float64]))


@given(operands())
def test_a_result_laid_out_for_an_operand_finds_it(case):
    layout, shape, dtype = case
    result = layouts.broadcast_from(layout, shape, dtype)
    assert (result.shape, result.spatial_size) == (tuple(shape), layout.spatial_size)
    assert mapping.local_map(result, layout) is not None
    assert layouts.broadcast_to(result, layout.shape) == layout


def test_a_row_laid_out_for_its_sum_is_read_sixteen_bytes_at_a_time():
    sums = layouts.broadcast_to(layouts.vectorized([8, 256], 1, 8, 128), [8, 1])
    layout = layouts.broadcast_from(sums, [8, 512], dtypes.float16)
    assert ops.vector_extent(layout, 1) == 8
    assert [layout.get_spatial([0, column]) for column in (0, 8, 16)] == [[0], [1], [2]]
