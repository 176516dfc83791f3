# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ir.analysis import expressions
from tilekit import dtypes
from tilekit.ir.analysis import axis_pattern, vector_width, vector_widths
from tilekit.ir.analysis.scalar_analysis import Fact, Facts, limits
from tilekit.ir.instructions.memory import box_access
from tilekit.ir.machine import Access
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor
from tilekit.lowir import scalar, scalar_eval
from tilekit.lowir.scalar import Expr, Var

i32, i64, f16, f32 = dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32


def grid(axes: list[Var], shape: list[int], values: dict[Var, int]) -> dict[Var, np.ndarray]:
    """Every point of the box, one array dimension per axis."""
    ranges = np.meshgrid(*(np.arange(extent) for extent in shape), indexing="ij")
    env = {a: r.astype(dtypes.numpy_dtype(expressions.dtype_of(a))) for a, r in zip(axes, ranges, strict=True)}
    return env | {v: np.array(x, dtypes.numpy_dtype(expressions.dtype_of(v))) for v, x in values.items()}


@st.composite
def box(draw: st.DrawFn):
    """Two axes, their extents, and two parameters with facts and values; small dtypes wrap often."""
    dtype = draw(st.sampled_from([dtypes.int8, dtypes.uint8, i32]))
    axes = [scalar.var("i", dtype), scalar.var("j", dtype)]
    shape = [draw(st.sampled_from([1, 2, 4, 6, 8, 16, 32])) for _ in axes]
    facts, values = {}, {}
    for name in ("m", "n"):
        v = scalar.var(name, dtype)
        divisor = draw(st.sampled_from([1, 2, 4, 8, 16, 32]))
        facts[v] = Fact.of(divisor, *limits(dtype))
        values[v] = divisor * draw(st.integers(facts[v].low // divisor, facts[v].high // divisor))
    return axes, shape, Facts(facts), values


def is_multiple(value: int, divisor: int) -> bool:
    return value == 0 if divisor == 0 else value % divisor == 0


@given(box(), st.data())
def test_patterns_agree_with_every_point_of_the_box(case, data):
    axes, shape, facts, values = case
    variables = [*axes, *values]
    expr = data.draw(
        st.one_of(expressions.integer(variables, expressions.dtype_of(axes[0]), 4), expressions.truth(variables, 3))
    )
    points = np.broadcast_to(scalar_eval.evaluate(expr, grid(axes, shape, values)), shape).astype(object)
    for dim, axis in enumerate(axes):
        pattern = axis_pattern(expr, axis, facts.over(axes, shape))
        along = np.moveaxis(points, dim, -1)
        run = pattern.run or along.shape[-1]
        for start in range(0, along.shape[-1], run):
            group = along[..., start : start + run]
            assert all(is_multiple(int(first), pattern.divisor) for first in group[..., 0].flat)
            for position in range(group.shape[-1]):
                assert (group[..., position].astype(int) == group[..., 0].astype(int) + pattern.step * position).all()


@pytest.mark.parametrize(("dtype", "run"), [(dtypes.int8, 4), (dtypes.uint8, 0), (dtypes.int16, 0)])
def test_a_run_ends_where_the_range_of_its_dtype_does(dtype, run):
    i = scalar.var("i", dtype)
    pattern = axis_pattern(scalar.mul(i, scalar.constant(dtype, 32)), i, Facts({}).over([i], [8]))
    assert (pattern.step, pattern.run) == (32, run)


@pytest.mark.parametrize("ragged", [False, True])
@given(box(), st.data())
def test_a_vector_is_contiguous_aligned_and_has_no_gap(ragged, case, data):
    axes, shape, facts, values = case
    variables = [*axes, *values]
    offset = scalar.cast(data.draw(expressions.integer(variables, expressions.dtype_of(axes[0]), 3)), i64)
    mask = data.draw(st.one_of(st.none(), expressions.truth(variables, 3)))
    pointer = scalar.var("p", ~f16)
    facts = Facts({**facts.variables, pointer: Fact(16, 0, 2**64 - 1)})
    widths = vector_widths(f16, shape, Access(pointer, tuple(axes), offset, mask), facts, ragged=ragged)
    env = grid(axes, shape, values)
    offsets = np.broadcast_to(scalar_eval.evaluate(offset, env), shape)
    masks = np.broadcast_to(True if mask is None else scalar_eval.evaluate(mask, env), shape)
    for dim, width in enumerate(widths):
        assert shape[dim] % width == 0 and 8 % width == 0
        vectors = np.moveaxis(offsets, dim, -1).reshape(-1, width)
        assert (vectors == vectors[:, :1] + np.arange(width)).all()
        assert (vectors[:, 0] % width == 0).all()
        inside = np.moveaxis(masks, dim, -1).reshape(-1, width)
        ends = inside[:, :1] & inside[:, -1:]
        assert (inside | ~ends if ragged else inside == inside[:, :1]).all()


def view(dtype: dtypes.DataType, *shape: Expr) -> GlobalTensor:
    return GlobalTensor.create(dtype, GlobalLayout.row_major(shape))


def row_access(n: Expr, columns: int = 256, rows: int = 8) -> Access:
    """Rows of a matrix with n columns, from the block's first row on."""
    pointer = scalar.var("p", ~f16)
    start = scalar.mul(scalar.block_idx(0), scalar.constant(i32, rows))
    return box_access(
        view(f16, scalar.var("m", i32), n), pointer, [start, scalar.constant(i32, 0)], [0, 1], [rows, columns]
    )


def pointer_of(access: Access) -> Var:
    assert isinstance(access.pointer, Var)
    return access.pointer


def width_of(access: Access, divisor: int, alignment: int, shape: tuple[int, ...] = (8, 256), threads: int = 128):
    n = access.mask
    assert n is not None
    (bound,) = [v for v in scalar.free_vars(n) if scalar.name_hint(v) == "n"]
    facts = Facts({bound: Fact.of(divisor, *limits(i32)), pointer_of(access): Fact(alignment, 0, 2**64 - 1)})
    return vector_width(RegisterTensor.create(f16, shape), access, facts, threads)


def test_rows_of_known_divisibility_are_read_sixteen_bytes_at_a_time():
    assert width_of(row_access(scalar.var("n", i32)), divisor=16, alignment=16) == (1, 8)


@pytest.mark.parametrize(
    ("divisor", "alignment", "width"), [(1, 16, 1), (2, 16, 2), (16, 2, 1), (16, 8, 4), (12, 16, 4)]
)
def test_width_follows_the_weaker_of_row_length_and_address(divisor, alignment, width):
    assert width_of(row_access(scalar.var("n", i32)), divisor, alignment) == (1, width)


def test_no_thread_takes_more_than_its_share():
    assert width_of(row_access(scalar.var("n", i32)), 16, 16, threads=1024) == (1, 2)


def test_columns_are_read_along_the_first_dimension():
    m, n = scalar.var("m", i32), scalar.var("n", i32)
    layout = GlobalLayout((m, n), (scalar.constant(i64, 1), scalar.cast(m, i64)))
    access = box_access(
        GlobalTensor.create(f32, layout), scalar.var("p", ~f32), [scalar.constant(i32, 0)] * 2, [0, 1], [64, 32]
    )
    facts = Facts({m: Fact.of(16, *limits(i32)), pointer_of(access): Fact(16, 0, 2**64 - 1)})
    assert vector_width(RegisterTensor.create(f32, (64, 32)), access, facts, 128) == (0, 4)


def test_a_tile_without_dimensions_has_no_vector():
    access = box_access(view(f32, scalar.var("n", i32)), scalar.var("p", ~f32), [scalar.constant(i32, 0)], [], [])
    assert vector_width(RegisterTensor.create(f32, ()), access, Facts(), 128) == (0, 1)


def test_a_row_length_beyond_two_to_the_31_elements_stays_contiguous():
    access = row_access(scalar.var("n", i32))
    axis = access.axes[1]
    pattern = axis_pattern(access.offset, axis, Facts().over(access.axes, (8, 256)))
    assert math.gcd(pattern.continuity, 256) == 256
