# SPDX-License-Identifier: Apache-2.0
"""Kernels that are right compute what they should, whatever the order of blocks and threads."""

import numpy as np
import pytest

from tests.cpusim.harness import HEADER, library, run
from tilekit.cpusim.client import LaunchRequest, Pointer, Scalar

VECTOR_ADD = (
    HEADER
    + """\
extern "C" __global__ void __launch_bounds__(128)
vector_add(int32_t n, float *x, float *y, float *z)
{
  int32_t i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) {
    z[i] = x[i] + y[i];
  }
}
TK_KERNEL(vector_add)
"""
)

# one block a row: each thread adds up a strip, warps reduce by shuffles, the first warp reduces the warps
ROW_SUM = (
    HEADER
    + """\
extern "C" __global__ void __launch_bounds__(256)
row_sum(int32_t n, float *x, float *y)
{
  float *partial = tk::shared_ptr<float>(0);
  int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = 0.0f;
  for (int32_t i = threadIdx.x; i < n; i += 256) {
    sum += x[blockIdx.x * (int64_t)n + i];
  }
  for (int32_t k = 16; k > 0; k /= 2) {
    sum += tk::shfl_xor(sum, k);
  }
  if (lane == 0) {
    partial[warp] = sum;
  }
  __syncthreads();
  if (warp == 0) {
    sum = lane < 8 ? partial[lane] : 0.0f;
    for (int32_t k = 4; k > 0; k /= 2) {
      sum += tk::shfl_down(sum, k);
    }
    if (lane == 0) {
      y[blockIdx.x] = sum;
    }
  }
}
TK_KERNEL(row_sum)
"""
)

BUILTINS = (
    HEADER
    + """\
extern "C" __global__ void builtins(int32_t *out)
{
  int32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  int32_t thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  int32_t threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = block * 10000 + threadIdx.x * 100 + threadIdx.y * 10 + threadIdx.z;
}
TK_KERNEL(builtins)
"""
)


@pytest.mark.parametrize("n", [1, 127, 128, 1000])
def test_vector_add_at_ragged_sizes(simulator, n):
    x, y = np.random.default_rng().standard_normal((2, n), np.float32)
    z = np.zeros(n, np.float32)
    result = run(simulator, VECTOR_ADD, "vector_add", [np.int32(n), x, y, z], grid=-(-n // 128), block=128)
    np.testing.assert_array_equal(z, x + y)
    assert result.counters["blocks"] == -(-n // 128)
    assert result.counters["threads"] == -(-n // 128) * 128


def test_the_same_tensor_as_input_and_output_of_one_region(simulator):
    x = np.random.default_rng().standard_normal(200, np.float32)
    region = simulator.memory.allocate(x.nbytes, x.ctypes.data)
    region.view[:] = x.tobytes()
    pointers = [Pointer(0, 0, x.nbytes, name) for name in "xyz"]
    simulator.run(
        LaunchRequest(
            library(VECTOR_ADD),
            "vector_add",
            (2, 1, 1),
            (128, 1, 1),
            regions=[region],
            arguments=[Scalar(np.int32(200).tobytes()), *pointers],
        )
    )
    np.testing.assert_array_equal(np.frombuffer(region.view, np.float32), x + x)
    simulator.memory.release(region)


# processes that share the tests must agree on their names
@pytest.mark.parametrize(
    "seed", [0, *np.random.default_rng().integers(1, 2**31, 3).tolist()], ids=["in order", "one", "another", "a third"]
)
@pytest.mark.parametrize("os_threads", [1, 3])
def test_row_sums_in_any_order(simulator, seed, os_threads):
    x = np.random.default_rng().integers(-100, 100, (37, 777)).astype(np.float32)
    y = np.zeros(37, np.float32)
    options = {"grid": 37, "block": 256, "shared_bytes": 32, "seed": seed, "os_threads": os_threads}
    result = run(simulator, ROW_SUM, "row_sum", [np.int32(777), x, y], **options)
    np.testing.assert_array_equal(y, x.sum(1))
    assert result.counters["barriers"] == 37
    assert result.counters["collectives"] == 37 * (8 * 5 + 3)


def test_every_axis_of_grid_and_block(simulator):
    out = np.zeros((24, 30), np.int32)
    run(simulator, BUILTINS, "builtins", [out], grid=(2, 3, 4), block=(5, 3, 2))
    x, y, z = np.meshgrid(range(5), range(3), range(2), indexing="ij")
    threads = np.zeros(30, np.int64)
    threads[((z * 3 + y) * 5 + x).ravel()] = (x * 100 + y * 10 + z).ravel()
    np.testing.assert_array_equal(out, np.arange(24)[:, None] * 10000 + threads)


def test_a_grid_without_blocks_does_nothing(simulator):
    z = np.zeros(4, np.float32)
    result = run(simulator, VECTOR_ADD, "vector_add", [np.int32(0), z, z, z], grid=0, block=128)
    assert result.counters["blocks"] == 0


def test_an_empty_tensor_is_a_parameter_like_any_other(simulator):
    empty = np.zeros(0, np.float32)
    run(simulator, VECTOR_ADD, "vector_add", [np.int32(0), empty, empty, empty], block=128)


def test_uninitialized_shared_memory_is_nan(simulator):
    source = HEADER + (
        'extern "C" __global__ void peek(float *x) { x[threadIdx.x] = tk::shared_ptr<float>(0)[threadIdx.x]; '
        "tk::shared_ptr<float>(0)[threadIdx.x] = 1.0f; }\nTK_KERNEL(peek)\n"
    )
    x = np.zeros(32, np.float32)
    run(simulator, source, "peek", [x], grid=3, shared_bytes=128, os_threads=1)
    assert np.isnan(x).all()


def test_threads_that_return_early_do_not_hold_up_the_others(simulator):
    source = (
        HEADER
        + """\
extern "C" __global__ void early(int32_t n, int32_t *x)
{
  if (threadIdx.x >= n) return;
  __syncthreads();
  x[threadIdx.x] = tk::shfl_xor((int32_t)threadIdx.x, 1);
}
TK_KERNEL(early)
"""
    )
    x = np.full(64, -1, np.int32)
    run(simulator, source, "early", [np.int32(40), x], block=64)
    np.testing.assert_array_equal(x, [*(np.arange(40) ^ 1), *[-1] * 24])


def test_printf_comes_back_with_the_result(simulator):
    source = HEADER + (
        'extern "C" __global__ void say(float x)\n'
        '{\n  if (threadIdx.x == 3) printf("block %d: %.2f\\n", blockIdx.x, x);\n}\nTK_KERNEL(say)\n'
    )
    result = run(simulator, source, "say", [np.float32(1.5)], grid=2, os_threads=1)
    assert result.printed == "block 0: 1.50\nblock 1: 1.50\n"
    assert run(simulator, VECTOR_ADD, "vector_add", [np.int32(0), *[np.zeros(1, np.float32)] * 3]).printed == ""


def test_much_printing_comes_back_whole_and_far_too_much_is_counted(simulator):
    source = HEADER + (
        'extern "C" __global__ void talk(int32_t n, int32_t width)\n'
        '{\n  for (int32_t i = 0; i < n; ++i) printf("%*d\\n", width, i);\n}\nTK_KERNEL(talk)\n'
    )
    many = run(simulator, source, "talk", [np.int32(50_000), np.int32(39)], block=1)
    assert many.printed == "".join(f"{i:39}\n" for i in range(50_000)), "2 MB, more than CUDA keeps"
    far_too_many = run(simulator, source, "talk", [np.int32(18), np.int32(999_999)], block=1).printed
    assert far_too_many.endswith(" 15\n\n(2 more calls of printf: no room for what they print)\n")
    assert run(simulator, source, "talk", [np.int32(1), np.int32(2)], block=1).printed == " 0\n"


def test_kernels_of_one_thousand_threads_with_a_frame_each(simulator):
    source = (
        HEADER
        + """\
extern "C" __global__ void frames(int32_t *x)
{
  int32_t own[8000];
  for (int32_t i = 0; i < 8000; i += 100) own[i] = threadIdx.x + i;
  __syncthreads();
  int32_t sum = 0;
  for (int32_t i = 0; i < 8000; i += 100) sum += own[i] - i;
  x[threadIdx.x] = sum / 80;
}
TK_KERNEL(frames)
"""
    )
    x = np.zeros(1024, np.int32)
    run(simulator, source, "frames", [x], block=1024)
    np.testing.assert_array_equal(x, np.arange(1024))
