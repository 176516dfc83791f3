# SPDX-License-Identifier: Apache-2.0
"""What tiles are under other shapes, as parts, and with their bits read in another way."""

import ml_dtypes
import numpy as np
import pytest

from tests.ir.evaluator.programs import failure, result
from tilekit.ir.layout import ops

COUNT = "x: i32[4, 8] = register_tensor(axes=[i, j], init=i * i32(8) + j)"
COUNTED = np.arange(32, dtype=np.int32).reshape(4, 8)


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("y: i32[8, 4] = transpose(x)", COUNTED.T),
        ("y: i32[2, 4, 4] = reshape(x)", COUNTED.reshape(2, 4, 4)),
        ("y: i32[1, 4, 8, 1] = unsqueeze(x, dims=[0, 3])", COUNTED.reshape(1, 4, 8, 1)),
        ("y: i32[8] = slice_register(x, offsets=[i32(2), i32(0)], dims=[1])", COUNTED[2]),
        ("y: i32[2, 4] = slice_register(x, offsets=[i32(1), i32(4)], dims=[0, 1])", COUNTED[1:3, 4:]),
        ("y: i32[4, 2] = slice_register(x, offsets=[i32(1), i32(4)], dims=[1, 0])", COUNTED[1:3, 4:].T),
        ("y: i32[()] = slice_register(x, offsets=[i32(3), i32(7)], dims=[])", COUNTED[3, 7]),
    ],
)
def test_shapes_and_parts_are_numpys(line, wanted):
    assert np.array_equal(result("i32", list(wanted.shape), COUNT, line), wanted)


def test_dropped_dimensions_come_back():
    lines = [COUNT, "u: i32[4, 1, 8, 1] = unsqueeze(x, dims=[1, 3])", "y: i32[4, 8, 1] = squeeze(u, dims=[1])"]
    assert np.array_equal(result("i32", [4, 8, 1], *lines), COUNTED[..., np.newaxis])


def test_part_of_a_tile_is_a_copy():
    lines = [
        COUNT,
        "row: i32[8] = slice_register(x, offsets=[i32(2), i32(0)], dims=[1])",
        "x = add(x, x)",
        "slice_assign(x, row, offsets=[i32(0), i32(0)], dims=[1])",
        "y: i32[4, 8] = assign(x)",
    ]
    wanted = COUNTED * 2
    wanted[0] = COUNTED[2]
    assert np.array_equal(result("i32", [4, 8], *lines), wanted)


@pytest.mark.parametrize(
    ("dims", "shape", "at"),
    [
        ([1], [3], np.s_[1, 4:7]),
        ([0, 1], [3, 2], np.s_[1:4, 4:6]),
        ([1, 0], [2, 3], np.s_[1:4, 4:6]),
        ([], [], np.s_[1, 4]),
    ],
)
def test_part_is_written_along_its_dimensions(dims, shape, at):
    kind = f"i32[{', '.join(map(str, shape)) or '()'}]"
    strides = [int(np.prod(shape[dim + 1 :])) for dim in range(len(shape))]
    axes = ["a", "b"][: len(shape)]
    value = " + ".join(["i32(100)", *(f"{axis} * i32({stride})" for axis, stride in zip(axes, strides, strict=True))])
    over = f"axes=[{', '.join(axes)}], " if axes else ""
    made = f"v: {kind} = register_tensor({over}init={value})"
    lines = [COUNT, made, f"slice_assign(x, v, offsets=[i32(1), n], dims={dims})", "y: i32[4, 8] = assign(x)"]
    wanted = COUNTED.copy()
    part = 100 + np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    wanted[at] = part.T if dims == [1, 0] else part
    assert np.array_equal(result("i32", [4, 8], *lines, inputs=[4], params="n: i32"), wanted)


def test_part_outside_of_a_tile_is_named():
    line = "slice_assign(x, row, offsets=[n, i32(0)], dims=[1])"
    error = failure([-1], COUNT, "row: i32[8] = register_tensor(init=n)", line, params="n: i32")
    assert error.kind == "out_of_bounds"
    assert error.message == "a slice of x along dimension 0 takes element -1, but there are 4 (block [0, 0, 0])"


def test_writing_a_part_fills_its_hole_alone():
    lines = [
        "x: i32[4] = register_tensor()",
        "two: i32[2] = register_tensor(init=i32(5))",
        "slice_assign(x, two, offsets=[n], dims=[0])",
        "store_global_generic(x, ptr=out, axes=[i], offset=i64(i), mask=i < i32(2))",
    ]
    error = failure([1, np.zeros(4, np.int32)], *lines, params="n: i32, out: ~i32")
    assert (error.kind, error.data["index"]) == ("uninitialized", (0,))


def test_view_of_one_size_reads_the_bits_of_each_element():
    lines = ["x: f32[4] = register_tensor(axes=[i], init=f32(i) - f32(1.5))", "y: i32[4] = view(x)"]
    wanted = (np.arange(4, dtype=np.float32) - 1.5).view(np.int32)
    assert np.array_equal(result("i32", [4], *lines), wanted)
    lines = ["x: bf16[4] = register_tensor(axes=[i], init=bf16(i))", "y: u16[4] = view(x)"]
    assert np.array_equal(result("u16", [4], *lines), np.arange(4).astype(ml_dtypes.bfloat16).view(np.uint16))


def test_view_reads_the_registers_of_each_thread_in_their_order():
    """Thread t holds row t: four words become eight halves there, and a column-major tile a row-major one."""
    lines = [
        "x: i32[32, 4] @ spatial(32, 1).local(1, 4) = register_tensor(axes=[i, j], init=i * i32(65536) + j)",
        "y: i16[32, 8] @ spatial(32, 1).local(1, 8) = view(x)",
    ]
    words = np.arange(32, dtype=np.int32)[:, np.newaxis] * 65536 + np.arange(4, dtype=np.int32)
    assert np.array_equal(result("i16", [32, 8], *lines), words.view(np.int16))
    lines[1] = "y: i32[4, 32] @ column_spatial(4, 8).local(1, 4) = view(x)"
    got = result("i32", [4, 32], *lines)
    place = ops.compose(ops.column_spatial(4, 8), ops.local(1, 4))
    for thread in range(32):
        for register in range(4):
            assert got[place.get_global(local_index=register, spatial_index=thread)] == words[thread, register]


def test_view_in_another_layout_of_a_tile_that_has_none_is_refused():
    lines = ["x: f32[32] = register_tensor(init=f32(0.0))", "y: f32[8, 4] @ spatial(8, 4) = view(x)"]
    error = failure([], *lines)
    assert (error.code, error.message) == (
        "TK302",
        "view: where x lies decides what it means, and it has no layout (block [0, 0, 0])",
    )
