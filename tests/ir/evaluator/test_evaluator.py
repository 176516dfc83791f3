# SPDX-License-Identifier: Apache-2.0
"""Programs mean what NumPy says: values, control flow, memory, blocks."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.drivers.test_meanings import same
from tests.ir.strategies import arguments, programs
from tilekit import dtypes
from tilekit.diag import ArgumentError
from tilekit.ir import evaluator
from tilekit.ir.evaluator import Memory
from tilekit.ir.prog import Program
from tilekit.ir.text import parser
from tilekit.ir.tools import verify

RNG = np.random.default_rng()


def program(params: str, *lines: str, grid="i32(1)", warps=1) -> Program:
    header = f"@kernel(\n    grid=[{grid}, i32(1), i32(1)],\n    warps={warps},\n)\ndef f({params}):\n"
    prog = parser.parse_program(header + "".join(f"    {line}\n" for line in lines))
    verify(prog)
    return prog


def result(dtype, shape, *lines: str, inputs=(), params="") -> np.ndarray:
    """What tile `r` holds at the end."""
    short = dtype.short_name
    rank = len(shape)
    store = f"store_global(g, r, offsets=[{', '.join(['i32(0)'] * rank)}], dims={list(range(rank))})"
    extents = ", ".join(f"i32({n})" for n in shape)
    view = f"g: Global[{short}[{extents or '()'}]] = global_view(ptr=out)"
    out = np.zeros(shape, dtypes.numpy_dtype(dtype))
    evaluator.run(program(f"out: ~{short}, {params}".rstrip(", "), *lines, view, store), [out, *inputs])
    return out


SOFTMAX = """\
@kernel(
    grid=[(m + i32(3)) // i32(4), i32(1), i32(1)],
    warps=4,
)
def softmax(m: i32, n: i32, x: ~{t}, y: ~{t}):
    gx: Global[{t}[m, n]] = global_view(ptr=x)
    gy: Global[{t}[m, n]] = global_view(ptr=y)
    a: {t}[4, 1024] = load_global(gx, offsets=[block_idx_x * i32(4), i32(0)], dims=[0, 1])
    b: f32[4, 1024] = cast(a)
    inside: bool[4, 1024] = register_tensor(axes=[i, j], init=j < n)
    lowest: f32[1, 1] = register_tensor(init=f32("-inf"))
    c: f32[4, 1024] = where(inside, b, lowest)
    top: f32[4, 1] = reduce(c, dims=[1], op='max', keepdim=True)
    d: f32[4, 1024] = sub(c, top)
    e: f32[4, 1024] = unary(d, op='exp')
    total: f32[4, 1] = reduce(e, dims=[1], op='sum', keepdim=True)
    p: f32[4, 1024] = div(e, total)
    q: {t}[4, 1024] = cast(p)
    store_global(gy, q, offsets=[block_idx_x * i32(4), i32(0)], dims=[0, 1])
"""


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(dtypes.float16, 1e-3), (dtypes.bfloat16, 1e-2), (dtypes.float32, 1e-6)]
)
def test_softmax_of_ragged_rows_is_numpys(dtype, tolerance):
    m, n = int(RNG.integers(5, 20)), int(RNG.integers(2, 1000))
    x = (RNG.standard_normal((m, n)) * 3).astype(dtypes.numpy_dtype(dtype))
    y = np.full_like(x, 7)
    prog = parser.parse_program(SOFTMAX.format(t=dtype.short_name))
    verify(prog)
    evaluator.run(prog, [m, n, x, y], seed=int(RNG.integers(100)))
    exact = np.exp(x.astype(np.float64) - x.astype(np.float64).max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y.astype(np.float64), exact, rtol=tolerance, atol=tolerance / 100)


@settings(max_examples=40)
@given(st.data())
def test_random_program_does_the_same_in_every_order_of_its_blocks(data):
    prog = data.draw(programs())
    first = data.draw(arguments(prog))
    second = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in first]
    evaluator.run(prog, first, seed=0)
    evaluator.run(parser.parse_program(str(prog)), second, seed=data.draw(st.integers(1, 1000)))
    for ours, other in zip(first, second, strict=True):
        assert same(np.asarray(ours), np.asarray(other))


# ------------------------------------------------------------------------------------------------------------- values


def test_integers_wrap_at_their_width():
    lines = ["x: i8[4] = register_tensor(axes=[i], init=i8(i + i32(125)))", "r: i8[4] = add(x, x)"]
    assert result(dtypes.int8, (4,), *lines).tolist() == [-6, -4, -2, 2 * -128 + 256]


def test_floats_round_after_every_operation():
    x = RNG.standard_normal(8).astype(np.float16)
    y = RNG.standard_normal(8).astype(np.float16)
    lines = [
        "gx: Global[f16[i32(8)]] = global_view(ptr=x)",
        "gy: Global[f16[i32(8)]] = global_view(ptr=y)",
        "a: f16[8] = load_global(gx, offsets=[i32(0)], dims=[0])",
        "b: f16[8] = load_global(gy, offsets=[i32(0)], dims=[0])",
        "c: f16[8] = mul(a, b)",
        "r: f16[8] = add(c, b)",
    ]
    found = result(dtypes.float16, (8,), *lines, inputs=[x, y], params="x: ~f16, y: ~f16")
    rounded_twice = (x.astype(np.float64) * y).astype(np.float16).astype(np.float64) + y
    assert found.tobytes() == rounded_twice.astype(np.float16).tobytes()


def test_sum_of_bfloat16_is_rounded_once():
    lines = [
        "x: bf16[1000] = register_tensor(axes=[i], init=bf16(f32(i) / f32(7.0)))",
        "r: bf16[1] = reduce(x, dims=[0], op='sum', keepdim=True)",
    ]
    parts = (np.arange(1000, dtype=np.float32) / np.float32(7)).astype(ml_dtypes.bfloat16)
    assert result(dtypes.bfloat16, (1,), *lines)[0] == parts.astype(np.float64).sum().astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(("op", "wanted"), [("max", [0.0, np.nan]), ("min", [-0.0, np.nan])])
def test_reductions_know_nan_and_the_sign_of_zero(op, wanted):
    zeros = "(f32(0.0) if j == i32(0) else f32(-0.0))"
    others = '(f32("nan") if j == i32(2) else f32(j))'
    lines = [
        f"x: f32[2, 4] = register_tensor(axes=[i, j], init={zeros} if i == i32(0) else {others})",
        f"r: f32[2] = reduce(x, dims=[1], op='{op}')",
    ]
    assert result(dtypes.float32, (2,), *lines).tobytes() == np.float32(wanted).tobytes()


def test_tiles_broadcast_as_in_numpy():
    lines = [
        "row: i32[1, 4] = register_tensor(axes=[i, j], init=j)",
        "column: i32[3, 1] = register_tensor(axes=[i, j], init=i * i32(10))",
        "one: i32[()] = register_tensor(init=i32(100))",
        "s: i32[3, 4] = add(row, column)",
        "r: i32[3, 4] = add(s, one)",
    ]
    assert (result(dtypes.int32, (3, 4), *lines) == 100 + 10 * np.arange(3)[:, None] + np.arange(4)).all()


# ------------------------------------------------------------------------------------------------------- control flow


def counted(*lines: str, n: object = 0, params="n: i32") -> int:
    """What the scalar `k` holds at the end."""
    body = ["k: i32 = i32(0)", *lines, "r: i32[1] = register_tensor(init=k)"]
    return int(result(dtypes.int32, (1,), *body, inputs=[n], params=params)[0])


def test_loops_break_and_count():
    n = int(RNG.integers(3, 20))
    assert counted("for i in range(n):", "    k = k + i", n=n) == sum(range(n))
    assert counted("while k < n:", "    k = k + i32(2)", n=n) == n + n % 2
    early = [
        "for i in range(n):",
        "    for j in range(n):",
        "        if j == i32(2):",
        "            break",
        "        k = k + i32(1)",
    ]
    assert counted(*early, n=n) == 2 * n


def test_loop_without_iterations_runs_nothing():
    assert counted("for i in range(n):", "    k = i32(1)", n=-3) == 0


def test_extent_of_a_loop_is_read_once():
    assert counted("k = i32(3)", "m: i32 = i32(0)", "for i in range(k):", "    k = k + i32(1)") == 6


def test_branches_take_the_side_of_their_condition():
    chain = ["if n < i32(0):", "    k = i32(1)", "elif n == i32(0):", "    k = i32(2)", "else:", "    k = i32(3)"]
    assert [counted(*chain, n=n) for n in (-5, 0, 5)] == [1, 2, 3]


def test_return_ends_the_kernel_from_inside_of_loops():
    out = np.zeros(1, np.int32)
    lines = [
        "one: i32[1] = register_tensor(init=i32(1))",
        "for i in range(n):",
        "    while True:",
        "        return",
        "store_global_generic(one, ptr=out, axes=[i_1], offset=i64(i_1))",
    ]
    prog = program("n: i32, out: ~i32", *lines)
    evaluator.run(prog, [1, out])
    assert out[0] == 0
    evaluator.run(prog, [0, out])
    assert out[0] == 1


def test_let_names_a_value_that_stays():
    assert counted("a: Let[i32] = k + i32(5)", "k = i32(100)", "k = a") == 5


# ------------------------------------------------------------------------------------------------------------- memory


def test_loads_outside_of_the_tensor_give_zero_and_stores_there_do_nothing():
    n = int(RNG.integers(5, 12))
    x, y = RNG.integers(1, 100, n).astype(np.int32), np.full(n, -1, np.int32)
    lines = [
        "gx: Global[i32[n]] = global_view(ptr=x)",
        "gy: Global[i32[n]] = global_view(ptr=y)",
        "a: i32[8] = load_global(gx, offsets=[i32(-3)], dims=[0])",
        "store_global(gy, a, offsets=[n - i32(4)], dims=[0])",
    ]
    evaluator.run(program("n: i32, x: ~i32, y: ~i32", *lines), [n, x, y])
    assert y.tolist() == [-1] * (n - 4) + [0, 0, 0, x[0]]


def test_strides_and_dims_turn_a_matrix():
    x = RNG.standard_normal((5, 6)).astype(np.float32)
    lines = [
        "gx: Global[f32[i32(5), i32(6)]] = global_view(ptr=x)",
        "r: f32[6, 5] = load_global(gx, offsets=[i32(0), i32(0)], dims=[1, 0])",
    ]
    assert (result(dtypes.float32, (6, 5), *lines, inputs=[x], params="x: ~f32") == x.T).all()
    lines[0] = "gx: Global[f32[i32(6), i32(5)]] @ strides(i64(1), i64(6)) = global_view(ptr=x)"
    lines[1] = "r: f32[6, 5] = load_global(gx, offsets=[i32(0), i32(0)], dims=[0, 1])"
    assert (result(dtypes.float32, (6, 5), *lines, inputs=[x], params="x: ~f32") == x.T).all()


SHIFT = [
    "a: i32[32] = load_global_generic(ptr=x, axes=[i], offset=i64(i), mask=i < n)",
    "store_global_generic(a, ptr=y, axes=[i], offset=i64(i), mask=i < n)",
]


def test_arguments_that_overlap_are_the_same_memory():
    x = np.arange(20, dtype=np.int32)
    evaluator.run(program("n: i32, x: ~i32, y: ~i32", *SHIFT), [19, x[:-1], x[1:]])
    assert x.tolist() == [0, *range(19)]


def test_store_is_seen_by_a_load_through_another_argument():
    x = np.zeros(8, np.int32)
    lines = [
        "one: i32[8] = register_tensor(init=i32(1))",
        "store_global_generic(one, ptr=x, axes=[i], offset=i64(i))",
        "a: i32[4] = load_global_generic(ptr=y, axes=[i], offset=i64(i))",
        "b: i32[4] = add(a, a)",
        "store_global_generic(b, ptr=y, axes=[i], offset=i64(i))",
    ]
    evaluator.run(program("x: ~i32, y: ~i32", *lines), [x, x[4:]])
    assert x.tolist() == [1, 1, 1, 1, 2, 2, 2, 2]


def test_pointers_move_by_elements_and_can_be_kept_in_variables():
    x = np.arange(16, dtype=np.int16)
    lines = [
        "p: ~i16 = x + i32(2)",
        "for i in range(i32(3)):",
        "    p = p + i",
        "r: i16[4] = load_global_generic(ptr=p, axes=[i_1], offset=i64(i_1))",
    ]
    assert result(dtypes.int16, (4,), *lines, inputs=[x], params="x: ~i16").tolist() == [5, 6, 7, 8]


def test_view_keeps_the_pointer_that_it_was_made_with():
    x = np.arange(16, dtype=np.int16)
    lines = [
        "p: ~i16 = x",
        "v: Global[i16[i32(4)]] = global_view(ptr=p)",
        "p = p + i32(8)",
        "r: i16[4] = load_global(v, offsets=[i32(0)], dims=[0])",
    ]
    assert result(dtypes.int16, (4,), *lines, inputs=[x], params="x: ~i16").tolist() == [0, 1, 2, 3]


def test_truth_values_are_read_from_bytes():
    x = np.array([0, 1, 2, 255], np.uint8)
    lines = ["r: bool[4] = load_global_generic(ptr=x, axes=[i], offset=i64(i))"]
    found = result(dtypes.boolean, (4,), *lines, inputs=[Memory.of(x)], params="x: ~bool")
    assert found.view(np.uint8).tolist() == [0, 1, 1, 1]


# ------------------------------------------------------------------------------------------------------------- blocks


def test_every_block_knows_its_place():
    m, n = int(RNG.integers(1, 9)), 3
    out = np.zeros((n, m), np.int32)
    text = f"""\
@kernel(
    grid=[m, i32({n}), i32(1)],
    block_indices=[bx, by, bz],
    warps=1,
)
def f(m: i32, out: ~i32):
    g: Global[i32[grid_dim_y, grid_dim_x]] = global_view(ptr=out)
    r: i32[()] = register_tensor(init=bx + i32(100) * block_idx_y + bz)
    store_global(g, r, offsets=[by, bx], dims=[])
"""
    evaluator.run(parser.parse_program(text), [m, out], seed=5)
    assert (out == np.arange(m) + 100 * np.arange(n)[:, None]).all()


def last_block(seed: int, **options) -> int:
    lines = [
        "r: i32[1] = register_tensor(init=block_idx_x)",
        "store_global_generic(r, ptr=out, axes=[i], offset=i64(i))",
    ]
    out = np.full(1, -1, np.int32)
    evaluator.run(program("n: i32, out: ~i32", *lines, grid="n"), [10, out], seed=seed, **options)
    return int(out[0])


def test_order_of_blocks_is_the_seeds():
    assert len({last_block(seed) for seed in range(20)}) > 1
    assert last_block(3) == last_block(3)


def test_chosen_blocks_run_alone():
    assert last_block(0, blocks=[(4, 0, 0)]) == 4
    assert last_block(0, blocks=[]) == -1


def test_empty_grid_runs_nothing():
    out = np.full(1, -1, np.int32)
    evaluator.run(program("n: i32, out: ~i32", "return", grid="n"), [0, out])
    assert out[0] == -1


# ---------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([1], "f takes 3 arguments, got 1"),
        ([1, 2.5, 3], "x is a pointer and takes a NumPy array or a Memory, got a int"),
        ([1, 2.5, np.zeros(4, np.float64)], "x is ~float32: it takes an array of float32, got float64"),
        ([1, 2.5, np.zeros((4, 4), np.float32).T[1:]], "x is not contiguous"),
        ([np.zeros(1), 2.5, np.zeros(4, np.float32)], "n is int32 and takes a number"),
    ],
)
def test_argument_that_does_not_suit_its_parameter_is_refused(args, message):
    with pytest.raises(ArgumentError) as error:
        evaluator.run(program("n: i32, s: f32, x: ~f32", "return"), args)
    assert error.value.message == message


@pytest.mark.parametrize("number", [3, np.int64(3), np.uint8(3), dtypes.int32(3)])
def test_numbers_of_every_library_are_taken(number):
    assert counted("k = n + i32(1)", n=number) == 4
    assert counted("k = i32(n)", n=ml_dtypes.bfloat16(3), params="n: bf16") == 3
    assert counted("k = i32(n)", n=np.uint64(2**63 + 5), params="n: u64") == 5


def test_read_only_array_may_be_read_but_not_written():
    x = np.arange(8, dtype=np.int32)
    x.flags.writeable = False
    evaluator.run(program("n: i32, x: ~i32, y: ~i32", *SHIFT), [8, x, np.zeros(8, np.int32)])
    with pytest.raises(ArgumentError, match="the kernel writes y, which is read-only"):
        evaluator.run(program("n: i32, x: ~i32, y: ~i32", *SHIFT), [8, np.zeros(8, np.int32), x])
