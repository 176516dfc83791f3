# SPDX-License-Identifier: Apache-2.0
"""What shared memory, copies, products, workspaces and semaphores mean, and how the wrong use of each is named."""

import numpy as np
import pytest

from tests.ir.evaluator.programs import CONSTANT, copied_rows, failure, ran, result
from tilekit import dtypes
from tilekit.ir.evaluator import Memory

COUNT = "x: i32[4, 8] = register_tensor(axes=[i, j], init=i * i32(8) + j)"
STORE_Y = "store_global(o, y, offsets=[i32(0)], dims=[0])"
COUNTED = np.arange(32, dtype=np.int32).reshape(4, 8)
FILL = [COUNT, "s: Shared[i32[4, 8]] = shared_tensor()", "store_shared(s, x)", "sync()"]


# ------------------------------------------------------------------------------------------------------------- views


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("v: Shared[i32[8]] = slice_shared(s, offsets=[i32(2), i32(0)], dims=[1])", COUNTED[2]),
        ("v: Shared[i32[4]] = slice_shared(s, offsets=[i32(0), i32(5)], dims=[0])", COUNTED[:, 5]),
        ("v: Shared[i32[2, 4]] = slice_shared(s, offsets=[i32(1), i32(4)], dims=[0, 1])", COUNTED[1:3, 4:]),
        ("v: Shared[i32[4, 2]] = slice_shared(s, offsets=[i32(1), i32(4)], dims=[1, 0])", COUNTED[1:3, 4:].T),
        ("v: Shared[i32[()]] = slice_shared(s, offsets=[i32(3), i32(7)], dims=[])", COUNTED[3, 7]),
        ("v: Shared[i32[8, 4]] = permute_shared(s, dims=[1, 0])", COUNTED.T),
        ("v: Shared[i32[2, 16]] = reshape_shared(s)", COUNTED.reshape(2, 16)),
    ],
)
def test_view_shows_the_elements_and_writes_them(line, wanted):
    shape = list(wanted.shape)
    kind = f"i32[{', '.join(map(str, shape)) or '()'}]"
    load = f"out: {kind} = load_shared(v)"
    assert np.array_equal(result("i32", shape, *FILL, line, load), wanted)

    negative = [f"n: {kind} = unary(out, op='neg')", "store_shared(v, n)", "sync()", "all: i32[4, 8] = load_shared(s)"]
    after = result("i32", [4, 8], *FILL, line, load, *negative)
    hit = np.isin(COUNTED, wanted)
    assert np.array_equal(after, np.where(hit, -COUNTED, COUNTED))


def test_view_of_a_view_of_a_view():
    lines = [
        "t: Shared[i32[8, 4]] = permute_shared(s, dims=[1, 0])",
        "r: Shared[i32[4, 8]] = reshape_shared(t)",
        "v: Shared[i32[8]] = slice_shared(r, offsets=[i32(1), i32(0)], dims=[1])",
        "out: i32[8] = load_shared(v)",
    ]
    assert np.array_equal(result("i32", [8], *FILL, *lines), COUNTED.T.reshape(4, 8)[1])


def test_slice_past_the_end_is_named():
    line = "v: Shared[i32[2, 8]] = slice_shared(s, offsets=[n, i32(0)], dims=[0, 1])"
    error = failure([3], *FILL, line, params="n: i32")
    wanted = "a slice of s along dimension 0 takes elements 3 to 4, but there are 4 (block [0, 0, 0])"
    assert (error.kind, error.message) == ("out_of_bounds", wanted)


def test_memory_is_new_wherever_it_is_allocated():
    lines = [
        "for k in range(i32(2)):",
        "    s: Shared[i32[4]] = shared_tensor()",
        "    y: i32[4] = load_shared(s)",
        "    ones: i32[4] = register_tensor(init=i32(1))",
        "    store_shared(s, ones)",
        "store_global_generic(y, ptr=out, axes=[i], offset=i64(i))",
    ]
    error = failure([np.zeros(4, np.int32)], *lines, params="out: ~i32")
    assert (error.kind, error.data["tensor"]) == ("uninitialized", "y")


def test_memory_is_gone_when_it_was_freed_on_the_way():
    lines = [*FILL, "if n == i32(1):", "    free_shared(s)", "y: i32[4, 8] = load_shared(s)"]
    ran([0], *lines, params="n: i32", well_formed=False)
    error = failure([1], *lines, params="n: i32", well_formed=False)
    assert (error.kind, error.message) == ("use_after_free", "s is used after free_shared (block [0, 0, 0])")


def test_part_of_a_tile_is_undefined_in_shared_memory_too():
    lines = [
        "s: Shared[i32[4]] = shared_tensor()",
        "x: i32[2] = register_tensor(init=i32(5))",
        "v: Shared[i32[2]] = slice_shared(s, offsets=[i32(1)], dims=[0])",
        "store_shared(v, x)",
        "y: i32[4] = load_shared(s)",
        "store_global_generic(y, ptr=out, axes=[i], offset=i64(i), mask=n <= i and i < i32(3))",
    ]
    out = np.zeros(4, np.int32)
    ran([1, out], *lines, params="n: i32, out: ~i32")
    assert list(out) == [0, 5, 5, 0]
    assert failure([0, out], *lines, params="n: i32, out: ~i32").data["index"] == (0,)


# ------------------------------------------------------------------------------------------------------------ copies


def test_copy_brings_the_box_and_zeros_around_it():
    lines = [
        "g: Global[f32[n, n]] = global_view(ptr=p)",
        "s: Shared[f32[4, 8]] = shared_tensor()",
        "copy_async(s, g, offsets=[i32(-1), i32(2)], dims=[0, 1])",
        "copy_async_wait_all()",
        "sync()",
        "out: f32[4, 8] = load_shared(s)",
    ]
    source = np.random.default_rng().standard_normal((5, 5)).astype(np.float32)
    wanted = np.zeros((4, 8), np.float32)
    wanted[1:, :3] = source[:3, 2:]
    assert np.array_equal(result("f32", [4, 8], *lines, inputs=[5, source.ravel()], params="n: i32, p: ~f32"), wanted)


def test_unchecked_copy_past_the_end_is_named():
    lines = [
        "g: Global[f32[n]] = global_view(ptr=p)",
        "s: Shared[f32[8]] = shared_tensor()",
        "copy_async(s, g, offsets=[i32(0)], dims=[0], check_bounds=False)",
    ]
    error = failure([5, np.zeros(5, np.float32)], *lines, params="n: i32, p: ~f32")
    assert error.message == "s[5] reads element 5 of p, which has 5 (block [0, 0, 0])"


@pytest.mark.parametrize("wait", ["pass", "copy_async_commit_group()", "copy_async_wait_group(n=0)"])
def test_data_of_a_copy_that_nobody_waited_for_has_no_value(wait):
    """Neither a commit alone brings it, nor a wait for groups, of which it is none."""
    lines = [
        *copied_rows(1),
        wait,
        "sync()",
        "y: f32[8] = load_shared(s0)",
        STORE_Y,
    ]
    args = [np.ones(8, np.float32), np.zeros(8, np.float32)]
    error = failure(args, *lines, params="p: ~f32, q: ~f32", well_formed=False)
    assert (error.kind, error.data["tensor"]) == ("uninitialized", "y")
    ((note, _),) = error.diagnostic.notes
    assert note.startswith("s0 was read while a copy_async into it was on its way: wait for it first")


@pytest.mark.parametrize("pending", range(4))
def test_wait_leaves_the_youngest_groups_on_their_way(pending):
    """Of three groups, the `pending` youngest have no value yet; all others have."""
    head = [*copied_rows(3, "copy_async_commit_group()"), f"copy_async_wait_group(n={pending})", "sync()"]
    for row in range(3):
        lines = [*head, f"y: f32[8] = load_shared(s{row})", STORE_Y]
        args = [np.arange(24, dtype=np.float32), np.zeros(8, np.float32)]
        if row < 3 - pending:
            ran(args, *lines, params="p: ~f32, q: ~f32")
            assert list(args[1]) == list(range(8 * row, 8 * row + 8))
        else:
            error = failure(args, *lines, params="p: ~f32, q: ~f32", well_formed=False)
            assert error.kind == "uninitialized"


def test_copy_lands_as_late_as_it_may():
    """What is stored where a copy goes, before the wait for it, is lost."""
    lines = [
        *copied_rows(1),
        "z: f32[8] = register_tensor(init=f32(-1.0))",
        "store_shared(s0, z)",
        "copy_async_wait_all()",
        "y: f32[8] = load_shared(s0)",
        STORE_Y,
    ]
    out = np.zeros(8, np.float32)
    ran([np.ones(8, np.float32), out], *lines, params="p: ~f32, q: ~f32")
    assert list(out) == [1] * 8


def test_memory_is_not_freed_under_a_copy():
    lines = [*copied_rows(1), "free_shared(s0)"]
    error = failure([np.ones(8, np.float32), np.zeros(8, np.float32)], *lines, params="p: ~f32, q: ~f32")
    assert error.kind == "use_after_free"
    assert error.message == "s0 is freed while a copy_async into it is on its way (block [0, 0, 0])"


# ---------------------------------------------------------------------------------------------------------- products


@pytest.mark.parametrize(
    ("dtype", "accumulator"), [("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i32")]
)
def test_dot_multiplies_what_the_tensor_cores_see(dtype, accumulator):
    random = np.random.default_rng()
    ours = dtypes.parse(dtype)
    draw = (lambda shape: random.integers(-128, 128, shape)) if dtype == "i8" else random.standard_normal
    a, b = (draw(shape).astype(dtypes.numpy_dtype(ours)) for shape in ((16, 32), (32, 8)))
    lines = [
        f"a: {dtype}[16, 32] = load_global_generic(ptr=p, axes=[i, j], offset=i64(i * i32(32) + j))",
        f"b: {dtype}[32, 8] = load_global_generic(ptr=q, axes=[i, j], offset=i64(i * i32(8) + j))",
        f"c: {accumulator}[16, 8] = register_tensor(init={accumulator}({CONSTANT[accumulator]}))",
        "c = dot(a, b, c)",
    ]
    got = result(accumulator, [16, 8], *lines, inputs=[a.ravel(), b.ravel()], params=f"p: ~{dtype}, q: ~{dtype}")
    seen = [dtypes.quantize(m, dtypes.tfloat32) if dtype == "f32" else m for m in (a, b)]
    exact = seen[0].astype(np.float64) @ seen[1].astype(np.float64) + CONSTANT[accumulator]
    assert np.array_equal(got, exact.astype(got.dtype))
    if dtype == "f32":
        assert not np.array_equal(
            got, (a.astype(np.float64) @ b.astype(np.float64) + CONSTANT["f32"]).astype(np.float32)
        )


def test_sum_of_int8_products_wraps_like_int32():
    a, b = np.full((16, 16), -128, np.int8), np.full((16, 8), -128, np.int8)
    lines = [
        "a: i8[16, 16] = load_global_generic(ptr=p, axes=[i, j], offset=i64(i * i32(16) + j))",
        "b: i8[16, 8] = load_global_generic(ptr=q, axes=[i, j], offset=i64(i * i32(8) + j))",
        "c: i32[16, 8] = register_tensor(init=i32(2147483647))",
        "c = dot(a, b, c)",
    ]
    got = result("i32", [16, 8], *lines, inputs=[a.ravel(), b.ravel()], params="p: ~i8, q: ~i8")
    assert set(got.ravel()) == {2**31 - 1 + 16 * 2**14 - 2**32}


def test_hole_in_an_operand_makes_a_row_of_holes():
    memory = Memory.empty(16 * 16 * 2)
    memory.written[:] = True
    memory.written[3 * 32 : 3 * 32 + 2] = False  # a[3, 0]
    lines = [
        "a: f16[16, 16] = load_global_generic(ptr=p, axes=[i, j], offset=i64(i * i32(16) + j))",
        "b: f16[16, 8] = register_tensor(init=f16(0.0))",
        "c: f32[16, 8] = dot(a, b, None)",
        "store_global_generic(c, ptr=q, axes=[i, j], offset=i64(i * i32(8) + j), mask=i != i32(3) or n == i32(1))",
    ]
    out = np.ones(128, np.float32)
    ran([0, memory, out], *lines, params="n: i32, p: ~f16, q: ~f32")
    assert np.array_equal(np.flatnonzero(out), np.arange(24, 32))
    error = failure([1, memory, out], *lines, params="n: i32, p: ~f16, q: ~f32")
    assert error.data["index"] == (3, 0)


# -------------------------------------------------------------------------------------- workspaces and semaphores

LOCK = ["locks: Global[i32[i32(1)]] = global_tensor(requires_clean=True)", "lock: Item[~i32] = ~locks[i32(0)]"]


@pytest.mark.parametrize("seed", range(3))
def test_semaphores_put_blocks_in_a_row(seed):
    """Each block appends its number to what the blocks before it wrote."""
    lines = [
        *LOCK,
        "lock_semaphore(ptr=lock, value=block_idx_x)",
        "g: Global[i32[i32(100)]] = global_view(ptr=out)",
        "count: Item[i32] = g[i32(99)]",
        "x: i32[1] = register_tensor(init=block_idx_x)",
        "store_global(g, x, offsets=[count], dims=[0])",
        "more: i32[1] = register_tensor(init=count + i32(1))",
        "store_global(g, more, offsets=[i32(99)], dims=[0])",
        "release_semaphore(ptr=lock, value=(block_idx_x + i32(1)) % grid_dim_x)",
    ]
    out = np.zeros(100, np.int32)
    ran([out], *lines, params="out: ~i32", grid="i32(90)", seed=seed)
    assert list(out) == [*range(90), *[0] * 9, 90]


def test_blocks_that_wait_for_the_last_one_let_it_come():
    lines = [
        *LOCK,
        "if block_idx_x == grid_dim_x - i32(1):",
        "    release_semaphore(ptr=lock, value=i32(7))",
        "else:",
        "    lock_semaphore(ptr=lock, value=i32(7))",
    ]
    error = failure([], *lines, grid="i32(200)")  # every block ended, and nobody cleaned up
    assert error.kind == "unclean_workspace"
    assert error.message == "the kernel ended without setting element 0 of the workspace locks back to zero"


def test_waiting_for_nobody_is_a_deadlock_at_its_line():
    error = failure([], *LOCK, "sync()", "lock_semaphore(ptr=lock, value=i32(3))", grid="i32(2)")
    assert error.kind == "deadlock"
    assert error.message.startswith("lock_semaphore waits for 3, and nobody is left who could change that")
    assert error.diagnostic.at is not None and error.diagnostic.at.line == 4


def test_workspace_that_holds_nothing_is_uninitialized_and_the_same_for_every_block():
    lines = [
        *LOCK,
        "w: Global[i32[i32(8), n]] = global_tensor(requires_clean=False)",
        "x: i32[4] = register_tensor(init=block_idx_x)",
        "lock_semaphore(ptr=lock, value=block_idx_x)",
        "store_global(w, x, offsets=[block_idx_x, i32(0)], dims=[1])",
        "if block_idx_x == i32(7):",
        "    y: i32[8, 4] = load_global(w, offsets=[i32(0), i32(0)], dims=[0, 1])",
        "    store_global_generic(y, ptr=out, axes=[i, j], offset=i64(i * i32(4) + j))",
        "release_semaphore(ptr=lock, value=(block_idx_x + i32(1)) % grid_dim_x)",
    ]
    options = {"params": "n: i32, out: ~i32", "grid": "i32(8)"}
    out = np.full((8, 4), -1, np.int32)
    ran([4, out], *lines, **options)
    assert np.array_equal(out, np.repeat(np.arange(8), 4).reshape(8, 4))
    assert failure([5, out], *lines[:5], *lines[6:], **options).kind == "uninitialized"


# -------------------------------------------------------------------------------------------------- items and prints


def test_elements_become_numbers_and_pointers():
    lines = [
        *FILL,
        "one: i32[1, 1] = register_tensor(init=i32(40))",
        "a: Item[i32] = one[()]",
        "b: Item[i32] = s[n, i32(2)]",
        "g: Global[i32[i32(2), i32(3)]] = global_view(ptr=p)",
        "c: Item[i32] = g[i32(1), n]",
        "at: Item[~i32] = ~g[i32(0), i32(1)]",
        "h: Global[i32[i32(2)]] = global_view(ptr=at)",
        "d: Item[i32] = h[i32(1)]",
        "out: i32[1, 4] = register_tensor(axes=[i, j], init=(a if j == i32(0) else b) if j < i32(2) else c + d)",
    ]
    got = result("i32", [1, 4], *lines, inputs=[1, np.arange(100, 106, dtype=np.int32)], params="n: i32, p: ~i32")
    assert list(got[0]) == [40, 10, 206, 206]


def test_address_in_shared_memory_is_that_of_the_element():
    lines = [
        *FILL,
        "v: Shared[i32[8]] = slice_shared(s, offsets=[i32(2), i32(0)], dims=[1])",
        "at: Item[~i32] = ~v[i32(3)]",
        "out: i32[1] = load_global_generic(ptr=at, axes=[i], offset=i64(i))",
    ]
    assert list(result("i32", [1], *lines)) == [19]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            ["s: Shared[i32[4]] = shared_tensor()", "a: Item[i32] = s[n]"],
            "s is read as a number, but was never written",
        ),
        ([*FILL, "a: Item[i32] = s[n, i32(0)]"], "s, dimension 0, takes element 9, but there are 4"),
    ],
)
def test_element_that_is_not_there_is_named(lines, message):
    index = 9 if "dimension" in message else 0
    assert failure([index], *lines, params="n: i32", well_formed=False).message == f"{message} (block [0, 0, 0])"


def test_tensors_print_in_brackets():
    lines = [
        "x: f32[2, 3] = register_tensor(axes=[i, j], init=f32(i * i32(3) + j) / f32(4.0))",
        "print_tensor(x, msg='x')",
        "print_tensor(x, msg='again', fmt='<%5.1f>')",
        "s: Shared[i8[2]] = shared_tensor()",
        "print_tensor(s, msg='nothing yet')",
        "g: Global[u8[n]] = global_view(ptr=p)",
        "print_tensor(g, msg='g')",
    ]
    text = ran([3, np.array([1, 2, 255], np.uint8)], *lines, params="n: i32, p: ~u8", well_formed=False)
    assert text.split("\n") == [
        "x",
        "[[0, 0.25, 0.5],",
        " [0.75, 1, 1.25]]",
        "again",
        "[[<  0.0>, <  0.2>, <  0.5>],",
        " [<  0.8>, <  1.0>, <  1.2>]]",
        "nothing yet",
        "[?, ?]",
        "g",
        "[1, 2, 255]",
        "",
    ]


def test_every_thread_prints_numbers_as_c_does():
    line = "printf(fmt='%d %u %5.2f %x%%\\n', args=[n, n, x, n])"
    assert ran([-1, 2.5], line, params="n: i32, x: f32") == "-1 4294967295  2.50 ffffffff%\n" * 32


def test_assumption_that_does_not_hold_is_named():
    ran([32], "assume(cond=(n % i32(16)) == i32(0))", params="n: i32")
    error = failure([33], "assume(cond=(n % i32(16)) == i32(0))", params="n: i32")
    assert (error.kind, error.message) == (
        "false_assumption",
        "the kernel assumes what does not hold here (block [0, 0, 0])",
    )
