# SPDX-License-Identifier: Apache-2.0
"""Check mode: each kernel here does one thing wrong, beside one that does the same right."""

import numpy as np
import pytest

from tests.cpusim import harness
from tests.cpusim.harness import line_of
from tests.cpusim.test_reports import kernel
from tilekit.cpusim.client import Check, SharedBuffer
from tilekit.diag import KernelError

SHARED = "  float *s = tk::shared_ptr<float>(0);\n"
PARAMS = "int32_t n, float *x"


@pytest.fixture
def check(simulator):
    """Run a kernel under check on a zero and 256 floats: the error, or None."""

    def run(body: str, *args, params=PARAMS, about=None, shared_bytes=4096, block=64, **options) -> KernelError | None:
        args = args or (np.int32(0), np.zeros(256, np.float32))
        about = about or Check()
        try:
            source = kernel(body, params)
            harness.run(
                simulator, source, "wrong", list(args), block=block, shared_bytes=shared_bytes, check=about, **options
            )
        except KernelError as error:
            return error
        return None

    return run


def lines(body: str, *texts: str) -> list[int]:
    return [line_of(kernel(body, PARAMS), text) for text in texts]


def places(error: KernelError) -> list[int]:
    return [error.data["first"]["line"], error.data["second"]["line"]]


STORES = ["s[threadIdx.x] = 1.0f;", "tk::store_shared_4(&s[threadIdx.x], x);"]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("store", STORES)
def test_a_read_of_what_another_warp_wrote_needs_a_barrier(check, store, seed):
    body = f"{SHARED}  {store}\n  SYNC;\n  x[threadIdx.x] = s[threadIdx.x ^ 32];"
    assert check(body.replace("SYNC", "__syncthreads()"), seed=seed) is None
    error = check(body.replace("SYNC", "__syncwarp()"), seed=seed)
    assert error.kind in ("race", "uninitialized")
    if error.kind == "race":
        assert sorted(places(error)) == lines(body, store, "x[threadIdx.x] = s")
        assert "self.sync() is missing" in error.data["hint"]


def test_a_race_says_who_where_and_what_is_missing(check):
    body = (
        f"{SHARED}  s[threadIdx.x] = 1.0f;\n  __syncwarp();\n  if (threadIdx.x >= 32)\n    x[0] = s[threadIdx.x - 32];"
    )
    error = check(body, block=64)
    first, second = lines(body, "s[threadIdx.x] = 1", "x[0] = s")
    assert str(error) == (
        f"TK720: kernel 'wrong' in source.cu line {second}: race, a read after a write: byte 124 of shared memory\n"
        f"  note: thread 31 (warp 0, lane 31) of block (0, 0, 0) writes it (source.cu line {first})\n"
        f"  note: thread 63 (warp 1, lane 31) of block (0, 0, 0) reads it (source.cu line {second})\n"
        "  help: self.sync() is missing between the two"
    )
    assert error.data["first"] == {"block": (0, 0, 0), "thread": 31, "verb": "writes", "line": first}


def test_lanes_of_a_warp_run_in_no_order(check):
    body = f"{SHARED}  s[threadIdx.x] = 1.0f;\n  SYNC;\n  x[threadIdx.x] = s[threadIdx.x ^ 1];"
    assert check(body.replace("SYNC", "__syncwarp()"), block=32) is None
    for nothing in ("n = 0", "x[0] = tk::shfl_xor(1.0f, 1)", "n = tk::ballot(true)"):
        error = check(body.replace("SYNC", nothing), block=32)
        assert error.kind in ("race", "uninitialized"), nothing


def test_a_write_after_a_read_needs_a_barrier(check):
    body = (
        f"{SHARED}  s[threadIdx.x] = 1.0f;\n  __syncthreads();\n  x[threadIdx.x] = s[threadIdx.x ^ 32];\n"
        "  SYNC;\n  s[threadIdx.x] = 2.0f;"
    )
    assert check(body.replace("SYNC", "__syncthreads()")) is None
    error = check(body.replace("SYNC", "__syncwarp()"))
    assert error.kind == "race"
    assert places(error) in (lines(body, "s[threadIdx.x ^ 32]", "= 2.0f"), lines(body, "= 2.0f", "s[threadIdx.x ^ 32]"))


def test_a_write_after_a_write_races_unless_it_repeats_it(check):
    for store in ("s[0] = VALUE;", "float v = VALUE;\n  tk::store_shared_4(s, &v);"):
        body = f"{SHARED}  {store}\n  __syncthreads();\n  x[threadIdx.x] = s[0];"
        assert check(body.replace("VALUE", "7.0f")) is None
        error = check(body.replace("VALUE", "threadIdx.x"))
        assert error.kind == "race" and "a write after a write" in error.data["text"]


def test_barriers_of_some_warps_order_those(check):
    body = f"{SHARED}  s[threadIdx.x] = 1.0f;\n  if (threadIdx.x < 64)\n    tk::bar_sync(1, 64);\n  READ\n"
    within = "if (threadIdx.x < 64) x[threadIdx.x] = s[threadIdx.x ^ 32];"
    across = "if (threadIdx.x < 64) x[threadIdx.x] = s[threadIdx.x + 64];"
    assert check(body.replace("READ", within), block=128) is None
    assert check(body.replace("READ", across), block=128).kind in ("race", "uninitialized")


def test_order_is_handed_on(check):
    """Warp 0 meets warp 1, and warp 1 meets warp 2."""
    body = (
        f"{SHARED}  int w = threadIdx.x / 32;\n  if (w == 0) s[threadIdx.x] = 1.0f;\n"
        "  if (w < 2) tk::bar_sync(1, 64);\n"
        "  if (w > 0) tk::bar_sync(2, 64);\n  if (w == 2) x[threadIdx.x] = s[threadIdx.x - 64];"
    )
    assert check(body, block=96) is None


def test_parts_of_words_are_told_apart(check):
    body = (
        "  uint8_t *s = tk::shared_ptr<uint8_t>(0);\n  s[threadIdx.x] = 1;\n  __syncthreads();\n"
        "  uint32_t v;\n  if (threadIdx.x < 16) {\n    tk::load_shared_4(&v, s + 4 * threadIdx.x);\n"
        "    x[threadIdx.x] = v;\n  }\n"
        "  SYNC;\n  if (threadIdx.x == 63) s[N] = 2;"
    )
    assert check(body.replace("SYNC", "__syncthreads()").replace("N]", "5]")) is None
    assert check(body.replace("SYNC", "").replace("N]", "5]")).kind == "race"
    assert check(body.replace("SYNC", "").replace("N]", "64]")) is None


# -------------------------------------------------------------------------------------------------- asynchronous copies

COPY = (
    f"{SHARED}  tk::cp_async_4(&s[threadIdx.x], &x[threadIdx.x]);\n  WAIT;\n  SYNC;\n  x[threadIdx.x + 64] = s[READ];"
)


def copying(wait, sync, read="threadIdx.x"):
    return COPY.replace("WAIT", wait).replace("SYNC", sync).replace("READ", read)


def test_a_copy_must_be_waited_for(check):
    assert check(copying("tk::cp_async_wait_all()", "n = 0")) is None
    assert check(copying("tk::cp_async_commit_group(), tk::cp_async_wait_group<0>()", "n = 0")) is None
    for nothing in ("n = 0", "tk::cp_async_commit_group(), tk::cp_async_wait_group<1>()"):
        body = copying(nothing, "__syncthreads()")
        error = check(body)
        assert error.kind == "in_flight"
        assert places(error) == lines(body, "cp_async_4", "= s[")
        assert error.data["first"]["verb"] == "copies into"
        assert "copy_async_wait_all()" in error.data["hint"]


def test_a_copy_of_another_thread_needs_a_barrier_behind_its_wait(check):
    other = "threadIdx.x ^ 32"
    assert check(copying("tk::cp_async_wait_all()", "__syncthreads()", other)) is None
    error = check(copying("__syncthreads()", "tk::cp_async_wait_all()", other))
    assert error.kind == "in_flight" or (error.kind == "race" and "behind the wait" in error.data["hint"])
    error = check(copying("tk::cp_async_wait_all()", "__syncwarp()", other), seed=3)
    assert error.kind in ("race", "in_flight", "uninitialized")


def test_a_buffer_in_use_must_not_be_filled_again(check):
    body = (
        f"{SHARED}  s[threadIdx.x] = 1.0f;\n  __syncthreads();\n  x[threadIdx.x] = s[threadIdx.x ^ 32];\n  SYNC;\n"
        "  tk::cp_async_4(&s[threadIdx.x], &x[threadIdx.x + 64]);\n  tk::cp_async_wait_all();"
    )
    assert check(body.replace("SYNC", "__syncthreads()")) is None
    error = check(body.replace("SYNC", "n = 0"))
    assert error.kind == "race" and error.data["hint"]


def test_two_copies_to_one_place_are_in_no_order(check):
    body = (
        f"{SHARED}  tk::cp_async_4(&s[threadIdx.x], x);\n"
        "  tk::cp_async_4(&s[threadIdx.x], x + 1);\n  tk::cp_async_wait_all();"
    )
    assert check(body).kind == "in_flight"


# ------------------------------------------------------------------------------------------------------------- matrices


def test_matrices_are_the_whole_warps(check):
    body = (
        f"{SHARED}  uint32_t r[4];\n  for (int i = 0; i < 4; ++i) s[threadIdx.x * 4 + i] = i;\n"
        "  SYNC;\n  tk::ldmatrix_x4(r, &s[threadIdx.x * 4]);\n  x[0] = 0;"
    )
    assert check(body.replace("SYNC", "__syncwarp()"), block=32) is None
    error = check(body.replace("SYNC", "n = 0"), block=32)
    assert error.kind == "race"
    assert error.data["second"]["verb"] == "loads a matrix from"


# ------------------------------------------------------------------------------------------------------- uninitialized


def test_shared_memory_must_be_written_first(check):
    error = check(f"{SHARED}  x[threadIdx.x] = s[threadIdx.x];")
    assert (error.kind, error.data["byte_offset"]) == ("uninitialized", 0)
    error = check(f"{SHARED}  float v;\n  tk::load_shared_4(&v, &s[threadIdx.x]);\n  x[threadIdx.x] = v;")
    assert error.kind == "uninitialized"


# --------------------------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize(
    "access", ["x[n] = 1.0f", "x[0] = x[n]", "tk::store_global_4(x + n, &v)", "tk::load_global_4(&v, x + n)"]
)
@pytest.mark.parametrize("at", [-1, 60])
def test_an_access_beside_a_tensor_is_seen_at_its_line(check, access, at):
    body = f"  float v = 1.0f;\n  {access};\n  if (v == 3.0f) x[1] = v;"
    error = check(body, np.int32(at), np.zeros(60, np.float32), block=1)
    assert (error.kind, error.data["tensor"], error.data["byte_offset"]) == ("out_of_bounds", "arg1", 4 * at)
    assert error.data["line"] == line_of(kernel(body), access)


def test_an_access_must_stay_in_the_tensor_that_it_is_meant_for(check):
    body = f"{SHARED}  tk::store_shared_4(&s[n], x);"
    line = line_of(kernel(body), "store_shared")
    meant = [-1] * 20
    meant[line - 1] = 1
    about = Check([SharedBuffer("a", 0, 64), SharedBuffer("b", 64, 64)], meant)
    assert check(body, np.int32(16), np.zeros(4, np.float32), about=about, block=1) is None
    error = check(body, np.int32(15), np.zeros(4, np.float32), about=about, block=1)
    assert error.data["text"] == "out-of-bounds access to shared tensor 'b': byte offset -4, the tensor has 64 bytes"
    assert (error.kind, error.data["tensor"], error.data["line"]) == ("out_of_bounds", "b", line)


def test_register_arrays_have_an_end(check):
    body = "  float r[4] = {};\n  for (int i = 0; i < 4; ++i) r[i] = x[i];\n  x[0] = r[n];"
    assert check(body, np.int32(3), np.zeros(4, np.float32), block=1) is None
    error = check(body, np.int32(4), np.zeros(4, np.float32), block=1)
    assert (error.kind, error.data["line"]) == ("out_of_bounds", line_of(kernel(body), "x[0] = r[n]"))
    assert "index 4 is out of bounds of a register array" in error.data["text"]


@pytest.mark.parametrize(
    "access", ["double f = *(double *)(x + n)", "*(uint64_t *)(x + n) = 1", "Four f = *(Four *)(x + n)"]
)
def test_plain_vectors_must_be_aligned(check, access):
    if "Four" in access and harness.compiler().is_clang:
        pytest.skip("clang does not ask how a struct that is copied is aligned")
    use = "f.v[1]" if "Four" in access else "x[1]"
    body = f"  struct alignas(16) Four {{ float v[4]; }};\n  {access};\n  x[0] = {use};"
    assert check(body, np.int32(4), np.zeros(16, np.float32), block=1) is None
    error = check(body, np.int32(1), np.zeros(16, np.float32), block=1)
    assert (error.kind, error.data["line"]) == ("misaligned", line_of(kernel(body), access))


@pytest.mark.parametrize(
    ("expression", "kind"), [("1 << (n + 32)", "shift"), ("7 / n", "division_by_zero"), ("7 % n", "division_by_zero")]
)
def test_undefined_arithmetic(check, expression, kind):
    body = f"  x[0] = {expression};"
    error = check(body, block=1)
    assert (error.kind, error.data["line"]) == (kind, line_of(kernel(body), expression))


# ------------------------------------------------------------------------------------------------------- between blocks


GLOBAL_STORES = ["x[PLACE] = VALUE;", "float v = VALUE;\n  tk::store_global_4(x + PLACE, &v);"]
each_global_store = pytest.mark.parametrize("store", GLOBAL_STORES, ids=["plain", "vector"])


@each_global_store
@pytest.mark.parametrize("os_threads", [1, 2])
def test_blocks_must_not_write_one_place(check, store, os_threads):
    body = f"  {store.replace('VALUE', 'blockIdx.x + 1')}"
    assert check(body.replace("PLACE", "blockIdx.x"), block=1, grid=8, os_threads=os_threads) is None
    error = check(body.replace("PLACE", "blockIdx.x / 2"), block=1, grid=8, os_threads=os_threads)
    assert error.kind == "global_race" and "lock_semaphore" in error.data["hint"]
    assert "a write after a write" in error.data["text"]
    assert error.data["tensor"] == "arg1"
    assert error.data["first"]["block"][0] // 2 == error.data["second"]["block"][0] // 2


@each_global_store
@pytest.mark.parametrize("os_threads", [1, 2])
def test_blocks_that_write_the_same_value_are_told_if_nothing_else_is_wrong(check, store, os_threads):
    body = f"  {store.replace('VALUE', '7.0f').replace('PLACE', 'blockIdx.x / 2')}\n  AFTER"

    def found(after, *, strict):
        about = Check(strict=strict)
        return check(body.replace("AFTER", after), block=1, grid=8, os_threads=os_threads, about=about)

    assert found("", strict=False) is None
    error = found("", strict=True)
    assert error.kind == "global_race" and "two blocks write the same value" in error.data["text"]
    assert places(error) == lines(body, *[store.splitlines()[-1].split("PLACE")[0]] * 2)
    assert error.data["first"]["block"][0] // 2 == error.data["second"]["block"][0] // 2
    assert "its own part" in error.data["hint"]
    for strict in (True, False):
        error = found("if (blockIdx.x == 7) x[n + 256] = 1.0f;", strict=strict)
        assert error.kind == "out_of_bounds"


@each_global_store
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("reader", [0, 1, 2])
def test_what_two_blocks_write_alike_must_still_not_be_read_by_another(check, store, strict, reader):
    """Whether it is read before both writes, between them, or after."""
    write = store.replace("VALUE", "7.0f").replace("PLACE", "5")
    body = f"  if (blockIdx.x == {reader}) x[blockIdx.x] = x[5];\n  else {{\n  {write}\n  }}"
    error = check(body, block=1, grid=3, os_threads=1, about=Check(strict=strict))
    assert error.kind == "global_race"
    verbs = {error.data[end]["verb"] for end in ("first", "second")}
    assert verbs == {"reads", "writes"}
    assert reader in {error.data[end]["block"][0] for end in ("first", "second")}


@each_global_store
@pytest.mark.parametrize("strict", [True, False])
def test_the_first_value_that_differs_is_a_race_also_within_a_vector(check, store, strict):
    two = (
        "  float v[2] = {7.0f, VALUE};\n  tk::store_global_8(x + 2, v);"
        if "tk::" in store
        else ("  struct alignas(8) Two { float a, b; };\n  *(Two *)(x + 2) = Two{7.0f, VALUE};")
    )
    one_by_one = "tk::store_global_4(x + 2, &seven); tk::store_global_4(x + 3, &one);"
    single = f"  float seven = 7.0f, one = 1.0f;\n  if (blockIdx.x == 0) {{ {one_by_one} }}\n  else {{\n{two}\n  }}"
    error = check(single.replace("VALUE", "2.0f"), block=1, grid=2, os_threads=1, about=Check(strict=strict))
    assert (error.kind, error.data["byte_offset"]) == ("global_race", 12)
    error = check(single.replace("VALUE", "1.0f"), block=1, grid=2, os_threads=1, about=Check(strict=strict))
    assert (error is not None) == strict


def test_blocks_must_not_read_what_another_writes(check):
    error = check("  if (blockIdx.x == 0) x[5] = 1.0f;\n  else x[blockIdx.x] = x[5];", block=1, grid=3)
    assert error.kind == "global_race"
    error = check("  if (blockIdx.x == 2) x[5] = 1.0f;\n  else x[blockIdx.x] = x[5];", block=1, grid=3)
    assert error.kind == "global_race"


WAITING = "int32_t n, int32_t *turn, float *x"


def test_a_semaphore_must_hold_something(check):
    body = "  SET;\n  tk::lock_semaphore(turn + 1, 0);\n  x[0] = 1.0f;"

    def run(set_, undefined):
        arguments = (np.int32(0), np.zeros(8, np.int32), np.zeros(64, np.float32))
        return check(body.replace("SET", set_), *arguments, params=WAITING, undefined=undefined)

    assert run("n = 1", None) is None
    assert run("tk::release_semaphore(turn + 1, 0)", 1) is None
    for elsewhere in ("n = 1", "tk::release_semaphore(turn + 2, 0)"):
        error = run(elsewhere, 1)
        assert (error.kind, error.data["tensor"], error.data["byte_offset"]) == ("uninitialized", "arg1", 4)
        assert error.data["line"] == line_of(kernel(body, WAITING), "lock_semaphore")


@pytest.mark.parametrize("call", ["lock_semaphore(turn + n, 0)", "release_semaphore(turn + n, 0)"])
@pytest.mark.parametrize("at", [-1, 8])
def test_a_semaphore_lies_within_its_tensor(check, call, at):
    body = f"  tk::{call};\n  x[0] = 1.0f;"
    arguments = (np.zeros(8, np.int32), np.zeros(64, np.float32))
    assert check(body, np.int32(7), *arguments, params=WAITING, block=32) is None
    error = check(body, np.int32(at), *arguments, params=WAITING, block=32)
    assert (error.kind, error.data["tensor"], error.data["byte_offset"]) == ("out_of_bounds", "arg1", 4 * at)
    assert error.data["line"] == line_of(kernel(body, WAITING), call)


@pytest.mark.parametrize("os_threads", [1, 2])
def test_a_read_of_what_another_block_writes_only_later_is_a_race(check, os_threads):
    """Whichever comes first."""
    body = "  if (blockIdx.x == WRITER) x[5] = 1.0f;\n  else x[blockIdx.x] = x[5];"
    for writer in (0, 2):
        error = check(body.replace("WRITER", str(writer)), block=1, grid=3, os_threads=os_threads, undefined=1)
        assert error.kind == "global_race"
    error = check(body.replace("WRITER", "7"), block=1, grid=3, os_threads=os_threads, undefined=1)
    assert (error.kind, error.data["byte_offset"]) == ("uninitialized", 20)
    assert error.data["line"] == line_of(kernel(body, PARAMS), "= x[5]")


@pytest.mark.parametrize(
    "use", ["x[(int)v] = 0", "while (v != 0) v += x[1]", "if (v != 0 && threadIdx.x < 32) __syncthreads()"]
)
@pytest.mark.parametrize("memory", ["x[2]", "s[2]"])
def test_what_comes_of_a_read_of_nothing_is_told_as_that(check, memory, use):
    body = f"{SHARED}  float v = {memory};\n  {use};\n  x[0] = v;"
    nothing = np.full(256, np.frombuffer(b"\x7f\x7f\x7f\x7f", np.float32)[0], np.float32)
    error = check(body, np.int32(0), nothing, undefined=1, timeout_s=2.0)
    assert error.kind == "uninitialized"
    assert error.data["line"] == line_of(kernel(body, PARAMS), memory)


@pytest.mark.parametrize("seed", [0, 5])
def test_semaphores_order_blocks(check, seed):
    params = "int32_t n, int32_t *turn, float *x"
    body = (
        "  tk::lock_semaphore(turn, blockIdx.x);\n  x[threadIdx.x] += 1.0f;\n"
        "  tk::release_semaphore(turn, blockIdx.x + 1);\n  AFTER"
    )

    def run(body):
        return check(
            body, np.int32(0), np.zeros(1, np.int32), np.zeros(64, np.float32), params=params, grid=6, seed=seed
        )

    assert run(body.replace("AFTER", "")) is None
    assert run(body.replace("AFTER", "x[threadIdx.x] = 0;")).kind == "global_race"
    assert run("  x[threadIdx.x] += 1.0f;\n" + body.replace("AFTER", "")).kind == "global_race"


def test_threads_of_a_block_race_on_tensors_too(check):
    body = "  x[threadIdx.x] = 1.0f;\n  SYNC;\n  x[threadIdx.x + 128] = x[threadIdx.x ^ 32];"
    assert check(body.replace("SYNC", "__syncthreads()")) is None
    assert check(body.replace("SYNC", "__syncwarp()")).kind == "race"


def test_chosen_blocks_run_alone(check):
    x = np.zeros(8, np.float32)
    check("  x[blockIdx.x] = 1.0f;", np.int32(0), x, block=1, grid=8, about=Check(blocks=[1, 6]))
    assert x.nonzero()[0].tolist() == [1, 6]


def test_a_loop_without_end_is_named(check):
    body = "  while (x[0] == 0)\n    n += x[1];\n  x[0] = n;"
    error = check(body, timeout_s=0.3)
    assert error.kind == "timeout"
    assert error.data["line"] in lines(body, "while", "n += x[1]")


def test_lanes_of_a_warp_must_come_to_one_barrier(check):
    body = "  if (threadIdx.x < N)\n    __syncthreads();\n  else\n    __syncthreads(  );"
    assert check(body.replace("N", "64")) is None
    for count in ("32", "16"):
        error = check(body.replace("N", count))
        assert (error.kind, error.data["line"]) == ("divergence", lines(body, "__syncthreads(  )")[0])


def test_matrix_instructions_take_a_warp_at_one_line(check):
    load = "tk::ldmatrix_x1(&r, s);"
    body = (
        f"{SHARED}  uint32_t r;\n  for (int i = 0; i < 32; ++i) s[i] = 1;\n  __syncwarp();\n"
        f"  if (threadIdx.x < N)\n    {load}\n  else {load}"
    )
    assert check(body.replace("N", "32"), block=32) is None
    assert check(body.replace("N", "8"), block=32).kind == "divergence"


def test_memory_that_was_another_tensors_holds_nothing_of_this_one(check):
    body = (
        f"{SHARED}  float v = 1.0f;\n  tk::store_shared_4(&s[threadIdx.x], &v);\n"
        "  tk::load_shared_4(&v, &s[threadIdx.x]);\n  x[0] = 0;"
    )
    first, second = lines(body, "store_shared", "load_shared")
    meant = [-1] * 20
    meant[first - 1] = meant[second - 1] = 0
    buffers = [SharedBuffer("a", 0, 256), SharedBuffer("b", 0, 256)]
    assert check(body, about=Check(buffers, meant)) is None
    meant[second - 1] = 1
    error = check(body, about=Check(buffers, meant))
    assert (error.kind, error.data["tensor"]) == ("uninitialized", "b")


def test_shared_memory_begins_at_a_boundary_whatever_its_size(check):
    body = "  int64_t *s = tk::shared_ptr<int64_t>(0);\n  if (threadIdx.x == 0) s[n] = 1;\n  x[threadIdx.x] = 0;"
    for shared_bytes in (8, 12, 260):
        assert check(body, shared_bytes=shared_bytes) is None
    assert check(body, np.int32(1), np.zeros(64, np.float32), shared_bytes=12).kind == "out_of_bounds"


@pytest.mark.parametrize(
    "body",
    [
        "  if (threadIdx.x < 32)\n    __syncthreads();\n  x[0] = 0;",
        "  if (threadIdx.x < 32)\n    __syncthreads();\n  __syncthreads( );",
        "  if (threadIdx.x % 32 < 16)\n    n = tk::shfl_xor(n, 1);\n  x[0] = 0;",
        "  if (threadIdx.x % 32 < 16)\n    n = tk::shfl_xor(n, 1);\n  n = tk::shfl_xor(n, 1 );",
        "  if (threadIdx.x == 3)\n    return;\n  n = tk::ballot(true);",
    ],
)
def test_who_must_come_together_must_come_together(check, body):
    error = check(body)
    assert error.kind == "divergence" and error.data["line"]
