# SPDX-License-Identifier: Apache-2.0
"""Kernels that are wrong are reported with kind, line, thread and tensor, and the simulator lives on."""

import time

import numpy as np
import pytest

from tests.cpusim.harness import HEADER, line_of, run
from tests.cpusim.test_kernels import VECTOR_ADD
from tilekit.diag import KernelError


def kernel(body: str, params: str = "int32_t n, float *x") -> str:
    return HEADER + f'extern "C" __global__ void wrong({params})\n{{\n{body}\n}}\nTK_KERNEL(wrong)\n'


@pytest.fixture
def fails(simulator):
    """Run a wrong kernel and return its error, having seen that the simulator goes on."""

    def check(source: str, *args, name="wrong", **options) -> KernelError:
        args = args or (np.int32(0), np.zeros(64, np.float32))
        before = [arg.copy() for arg in args]
        with pytest.raises(KernelError) as caught:
            run(simulator, source, name, list(args), **options)
        for arg, old in zip(args, before, strict=True):
            np.testing.assert_array_equal(arg, old)
        x = np.ones(5, np.float32)
        z = np.zeros(5, np.float32)
        run(simulator, VECTOR_ADD, "vector_add", [np.int32(5), x, x, z], block=128)
        assert (z == 2).all()
        return caught.value

    return check


def test_a_read_past_the_end_of_a_tensor(fails):
    source = VECTOR_ADD.replace("if (i < n)", "if (i < n + 1)")
    x, y, z = np.ones((3, 100), np.float32)
    error = fails(source, np.int32(100), x, y, z, name="vector_add", block=128)
    line = line_of(source, "z[i] = x[i] + y[i]")
    assert str(error) == (
        f"TK702: kernel 'vector_add' in source.cu line {line}: out-of-bounds access to 'arg1': byte offset 400, the "
        "tensor has 400 bytes\n  note: in block (0, 0, 0), thread 100 (warp 3, lane 4)"
    )
    assert error.kind == "out_of_bounds"
    assert {key: error.data[key] for key in ("line", "tensor", "byte_offset", "block", "thread")} == {
        "line": line,
        "tensor": "arg1",
        "byte_offset": 400,
        "block": (0, 0, 0),
        "thread": 100,
    }


def test_a_write_past_the_end_of_a_tensor(fails):
    source = kernel("  x[n + threadIdx.x] = 1.0f;")
    error = fails(source, np.int32(33), np.zeros(64, np.float32))
    assert (error.kind, error.data["byte_offset"], error.data["thread"]) == ("out_of_bounds", 256, 31)


def test_an_access_far_outside_names_the_tensor(fails):
    for at in (-(1 << 22), 1 << 23):
        error = fails(kernel("  x[n] = 1.0f;"), np.int32(at), np.zeros(64, np.float32), block=1)
        assert (error.kind, error.data["tensor"], error.data["byte_offset"]) == ("out_of_bounds", "arg1", 4 * at)


def test_a_write_beside_a_tensor_on_its_own_page_is_found_afterwards(fails):
    x = np.zeros(65, np.uint8)
    for at in (-3, 66):
        error = fails(kernel("  x[n] = 7;", "int32_t n, uint8_t *x"), np.int32(at), x, block=1)
        assert (error.kind, error.data["tensor"], error.data["byte_offset"], error.data["line"]) == (
            "out_of_bounds",
            "arg1",
            at,
            None,
        )


def test_a_vector_access_reports_the_line_that_calls_it(fails):
    source = kernel("  uint32_t r[4];\n  tk::load_global_16(r, x + n);\n  x[0] = r[0];")
    error = fails(source, np.int32(64), np.zeros(64, np.float32), block=1)
    assert (error.kind, error.data["line"]) == ("out_of_bounds", line_of(source, "load_global_16"))
    error = fails(source, np.int32(1), np.zeros(64, np.float32), block=1)
    assert (error.kind, error.data["line"]) == ("misaligned", line_of(source, "load_global_16"))


def test_shared_memory_out_of_bounds(fails):
    source = kernel("  float *s = tk::shared_ptr<float>(0);\n  s[threadIdx.x + n] = x[0];")
    error = fails(source, np.int32(1), np.zeros(1, np.float32), shared_bytes=128)
    assert error.data["text"] == "out-of-bounds access to shared memory: byte offset 128, the block has 128 bytes"
    assert (error.kind, error.data["line"]) == ("out_of_bounds", line_of(source, "s[threadIdx.x + n]"))


def test_a_deadlock_says_who_waits_where(fails):
    source = kernel("  if (threadIdx.x < 64) __syncthreads();\n  else if (threadIdx.x < 96)\n    tk::bar_sync(1, 64);")
    error = fails(source, block=128)
    first, second = line_of(source, "__syncthreads()"), line_of(source, "bar_sync")
    assert str(error) == (
        f"TK710: kernel 'wrong' in source.cu line {first}: deadlock: no thread of block (0, 0, 0) can go on\n"
        f"  note: threads 0-63 wait in __syncthreads(), where 64 of 96 threads are (source.cu line {first})\n"
        f"  note: threads 64-95 wait at barrier 1, where 32 of 64 threads are (source.cu line {second})\n"
        "  note: threads 96-127 have returned from the kernel"
    )
    assert error.data["notes"][0] == ("threads 0-63 wait in __syncthreads(), where 64 of 96 threads are", first)


def test_a_lane_that_skips_a_collective_for_a_barrier_is_a_deadlock(fails):
    source = kernel("  if (threadIdx.x == 5)\n    __syncthreads();\n  else\n    x[0] = tk::shfl_xor(x[1], 1);")
    error = fails(source)
    assert error.kind == "deadlock"
    assert [text for text, _ in error.data["notes"]] == [
        "threads 0-4,6-31 wait in shfl_xor for the other lanes of their warp",
        "thread 5 waits in __syncthreads(), where 1 of 32 threads is",
    ]


def test_a_diverged_warp_names_both_places(fails):
    source = kernel("  if (threadIdx.x < 16)\n    x[0] = tk::shfl_xor(x[1], 1);\n  else\n    n = tk::ballot(true);")
    error = fails(source)
    assert error.kind == "divergence"
    assert error.data["notes"] == (
        ("lane 16 (thread 16) executes ballot", line_of(source, "ballot")),
        ("lane 0 (thread 0) waits in shfl_xor", line_of(source, "shfl_xor")),
        ("in block (0, 0, 0), thread 16 (warp 0, lane 16)", None),
    )


def test_an_endless_loop_times_out_at_its_line(fails):
    source = kernel("  volatile int32_t go = 1;\n  while (go)\n    n = n + 1;\n  x[0] = n;")
    begin = time.monotonic()
    error = fails(source, timeout_s=0.3)
    assert time.monotonic() - begin < 20
    assert error.kind == "timeout"
    assert error.data["line"] in (line_of(source, "while (go)"), line_of(source, "n = n + 1"))
    assert error.data["text"] == "the kernel still ran after 0.3 s, and was stopped here"


@pytest.mark.parametrize(
    "call", ["__syncthreads()", "tk::shfl_xor(n, 1)", 'printf("%d", n)', "x[0] = tk::sin((float)x[0])"]
)
def test_an_endless_loop_of_calls_times_out_at_its_line(fails, call):
    source = kernel(f"  while (x[1] == 0)\n    {call};", "int32_t n, volatile float *x")
    error = fails(source, timeout_s=0.2)
    assert error.kind == "timeout"
    assert error.data["line"] in (line_of(source, call), line_of(source, "while"))


def test_an_endless_block_stops_when_another_fails(fails):
    source = kernel("  volatile int32_t go = 1;\n  if (blockIdx.x == 1) x[n] = 1.0f;\n  while (go) {}")
    begin = time.monotonic()
    error = fails(source, np.int32(64), np.zeros(64, np.float32), grid=2, os_threads=2, timeout_s=20)
    assert error.kind == "out_of_bounds"
    assert time.monotonic() - begin < 10


def test_an_invalid_address(fails):
    source = kernel("  *(int32_t *)(int64_t)n = 1;")
    error = fails(source, np.int32(4096), np.zeros(1, np.float32))
    assert (error.kind, error.data["line"]) == ("segfault", line_of(source, "(int64_t)n"))
    assert error.data["text"] == "access to address 0x1000, which belongs to no tensor"


@pytest.mark.parametrize("expression", ["7 / n", "7 % n"])
def test_integer_division_by_zero(fails, expression):
    source = kernel(f"  x[0] = {expression};")
    error = fails(source, np.int32(0), np.zeros(1, np.float32))
    assert (error.kind, error.data["line"]) == ("division_by_zero", line_of(source, expression))


@pytest.mark.parametrize(
    "body",
    [
        "  volatile float big[40000];\n  big[n] = 1.0f;\n  x[0] = big[0];",
        "  volatile float big[400000];\n  big[n] = 1.0f;\n  x[0] = big[0];",
    ],
)
def test_local_arrays_that_are_too_large(fails, body):
    error = fails(kernel(body), np.int32(0), np.zeros(1, np.float32))
    assert error.kind == "stack overflow"
    assert error.data["text"] == "stack overflow: the local arrays of one thread take more than 124 KiB"


def test_assertions_and_traps(fails):
    source = kernel("  assert(n > 3);")
    error = fails(source)
    assert (error.kind, error.data["text"]) == ("fail", "assertion failed: n > 3")
    assert error.data["line"] == line_of(source, "assert")
    assert fails(kernel("  __trap();")).data["text"] == "the kernel executed __trap()"
    assert fails(kernel("  __builtin_assume(n == 1);")).data["text"] == "this does not hold: n == 1"


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        ("tk::bar_sync(16, 32)", "fail", "barrier 16: there are barriers 0 to 15"),
        (
            "tk::bar_sync(1, 33)",
            "deadlock",
            "barrier 1: 33 threads are no whole number of warps, for which it never opens",
        ),
        ("tk::shfl_xor(n, 1, 3)", "fail", "shfl_xor: width 3 is not a power of two up to 32"),
    ],
)
def test_rules_of_the_machine(fails, call, kind, text):
    error = fails(kernel(f"  {call};"))
    assert (error.kind, error.data["text"]) == (kind, text)


def test_a_barrier_is_for_one_number_of_threads(fails):
    body = "  if (threadIdx.x < 32) tk::bar_sync(1, 64);\n  else tk::bar_sync(1, 96);"
    error = fails(kernel(body), block=96)
    line = line_of(kernel(body), "bar_sync(1, 96)")
    assert (error.kind, error.data["line"]) == ("deadlock", line)
    assert error.data["text"] == f"barrier 1 for 96 threads: others wait there, at line {line - 1}, for 64"


def test_a_kernel_that_is_not_there(fails):
    error = fails(VECTOR_ADD, name="vector_sub")
    assert error.kind == "refused"
    assert "it has no kernel 'vector_sub': does the source end with TK_KERNEL(vector_sub)?" in str(error)
