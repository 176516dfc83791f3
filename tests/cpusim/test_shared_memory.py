# SPDX-License-Identifier: Apache-2.0
"""What the simulator knows of shared memory: bank conflicts, copies that arrive late, and accesses that are wrong."""

import numpy as np
import pytest

from tests.cpusim.harness import HEADER, line_of, run
from tests.cpusim.test_reports import fails, kernel  # noqa: F401  # a fixture
from tests.include import sources

SHARED_BYTES = 16384


def turns(offsets: np.ndarray, nbytes: int) -> int:
    """How often lanes must wait, word by word: 128 bytes are served at once, and of each bank one word."""
    lanes_at_once = 32 * 4 // max(nbytes, 4)
    waits = 0
    for begin in range(0, 32, lanes_at_once):
        words = {
            word
            for offset in offsets[begin : begin + lanes_at_once]
            for word in range(int(offset) // 4, (int(offset) + nbytes - 1) // 4 + 1)
        }
        waits += max(sum(word % 32 == bank for word in words) for bank in range(32)) - 1
    return waits


def patterns(nbytes: int) -> dict[str, np.ndarray]:
    """Slots of lanes, by name."""
    lane = np.arange(32)
    slots = SHARED_BYTES // nbytes
    return {
        "neighbors": lane,
        "the same": np.zeros(32),
        "every second": lane * 2,
        "a column of 32 words": lane * 128 // nbytes % slots,
        "anything": np.random.default_rng().integers(0, slots, 32),
        "few": np.random.default_rng().integers(0, 40, 32),
    }


@pytest.mark.parametrize("name", patterns(4))
@pytest.mark.parametrize("nbytes", sources.VECTOR_BYTES)
def test_conflicts_of_loads_and_stores_are_counted(simulator, nbytes, name):
    slot = patterns(nbytes)[name].astype(np.int32)
    x = np.zeros((32, nbytes), np.uint8)
    result = run(
        simulator, sources.shared_vectors(), f"shared_{nbytes}", [slot, x, x.copy()], shared_bytes=SHARED_BYTES
    )
    offsets = slot.astype(np.int64) * nbytes
    assert result.counters["bank_conflicts"] == turns(offsets, nbytes) + turns(offsets[::-1], nbytes)


@pytest.mark.parametrize("stride", [8, 16, 32, 64, 72])
def test_conflicts_of_ldmatrix_are_counted(simulator, stride):
    rows = np.arange(32, dtype=np.int32) * stride % sources.MATRIX_ELEMENTS
    x = np.zeros(sources.MATRIX_ELEMENTS, np.uint16)
    out = np.zeros((4, 32), np.uint32)
    result = run(simulator, sources.matrix_loads(), "ldmatrix_x4", [rows, x, out], shared_bytes=x.nbytes)
    assert result.counters["bank_conflicts"] == turns(rows.astype(np.int64) * 2, 16)


def test_an_access_in_a_loop_is_many_accesses(simulator):
    """Also when there are more of them than are kept at a time, and with a lane that stays away from some."""
    body = (
        "  float *s = tk::shared_ptr<float>(0);\n"
        "  for (int32_t i = 0; i < n + (threadIdx.x == 7); ++i)\n"
        "    tk::store_shared_4(s + threadIdx.x * 2, x);\n"
    )
    for count in (1, 5, 64, 200):
        result = run(
            simulator,
            kernel(body),
            "wrong",
            [np.int32(count), np.ones(1, np.float32)],
            block=64,
            shared_bytes=512,
            os_threads=1,
        )
        assert result.counters["bank_conflicts"] == 2 * count


COPY = (
    HEADER
    + """\
extern "C" __global__ void copy(int32_t waits, float *x, float *out)
{
  float *s = tk::shared_ptr<float>(0);
  int32_t i = threadIdx.x;
  tk::cp_async_4(s + i, x + i);
  tk::cp_async_commit_group();
  tk::cp_async_4(s + 32 + i, x + 32 + i);
  tk::cp_async_commit_group();
  if (waits == 1) tk::cp_async_wait_group<1>();
  if (waits == 2) tk::cp_async_wait_group<0>();
  if (waits == 3) tk::cp_async_wait_all();
  out[i] = s[i];
  out[32 + i] = s[32 + i];
}
TK_KERNEL(copy)
"""
)


@pytest.mark.parametrize(("waits", "arrived"), [(0, 0), (1, 32), (2, 64), (3, 64)])
def test_a_copy_is_not_there_before_the_wait_for_its_group(simulator, waits, arrived):
    x = np.random.default_rng().standard_normal(64, np.float32)
    out = np.zeros(64, np.float32)
    result = run(simulator, COPY, "copy", [np.int32(waits), x, out], shared_bytes=256)
    np.testing.assert_array_equal(out[:arrived], x[:arrived])
    assert np.isnan(out[arrived:]).all()
    assert result.counters["copies"] == 64
    assert result.counters["copy_bytes"] == result.counters["shared_bytes"] == 256


def test_a_buffer_that_is_refilled_too_early_is_seen_to_be(simulator):
    """Warp 0 reads after warp 1 has asked for the next copy to the same place, though that will only land later."""
    body = (
        "  float *s = tk::shared_ptr<float>(0);\n"
        "  s[threadIdx.x] = 1.0f;\n"
        "  __syncthreads();\n"
        "  if (threadIdx.x >= 32) tk::cp_async_4(s + threadIdx.x - 32, x);\n"
        "  x[threadIdx.x] = s[threadIdx.x];\n"
        "  __syncthreads();\n"
    )
    x = np.zeros(64, np.float32)
    run(simulator, kernel(body), "wrong", [np.int32(0), x], block=64, shared_bytes=256)
    assert np.isnan(x[:32]).all() and (x[32:] == 1).all()


def test_a_pipeline_of_many_stages_keeps_its_order(simulator):
    """More groups than the simulator keeps room for at first, of different sizes, always some under way."""
    source = (
        HEADER
        + """\
extern "C" __global__ void pipeline(int32_t n, float *x, float *out)
{
  float *s = tk::shared_ptr<float>(0);
  int32_t lane = threadIdx.x;
  for (int32_t step = 0; step < n + 3; ++step) {
    for (int32_t k = 0; k < 4; ++k) {
      int32_t at = step * 4 + k;
      tk::cp_async_or_zero_4(s + (step % 4 * 4 + k) * 32 + lane, x + at * 32 + lane, step < n && lane != k);
    }
    tk::cp_async_commit_group();
    tk::cp_async_wait_group<3>();
    if (step < 3) continue;
    for (int32_t k = 0; k < 4; ++k) {
      tk::load_shared_4(out + ((step - 3) * 4 + k) * 32 + lane, s + ((step - 3) % 4 * 4 + k) * 32 + lane);
    }
  }
}
TK_KERNEL(pipeline)
"""
    )
    x = np.random.default_rng().standard_normal((50, 4, 32)).astype(np.float32)
    out = np.full_like(x, np.nan)
    run(simulator, source, "pipeline", [np.int32(50), x, out], shared_bytes=4 * 4 * 32 * 4)
    for k in range(4):
        x[:, k, k] = 0
    np.testing.assert_array_equal(out, x)


CALLS = {
    "tk::load_shared_4(x, s + n)": 4,
    "tk::store_shared_16(s + n, x)": 16,
    "tk::cp_async_8(s + n, x)": 8,
    "tk::ldmatrix_x4(x, s + n)": 16,
    "tk::stmatrix_x4(s + n, x)": 16,
}


@pytest.mark.parametrize(("call", "nbytes"), CALLS.items())
def test_wrong_addresses_are_reported_at_their_line(fails, call, nbytes):  # noqa: F811
    source = kernel(f"  uint8_t *s = tk::shared_ptr<uint8_t>(0);\n  {call};")
    for at in (1024, 1024 - nbytes // 2, -nbytes, 1 << 30):
        error = fails(source, np.int32(at), np.zeros(64, np.float32), shared_bytes=1024)
        assert (error.kind, error.data["line"]) == ("out_of_bounds", line_of(source, call))
        assert error.data["text"] == (
            f"out-of-bounds access to shared memory: byte offset {at}, the block has 1024 bytes"
        )
    error = fails(source, np.int32(nbytes // 2), np.zeros(64, np.float32), shared_bytes=1024)
    assert (error.kind, error.data["line"]) == ("misaligned", line_of(source, call))
    assert error.data["text"] == (
        f"access of {nbytes} bytes at byte {nbytes // 2} of shared memory, no multiple of {nbytes} (a GPU traps here)"
    )


def test_a_copy_from_beside_a_tensor_is_reported_where_it_was_asked_for(fails):  # noqa: F811
    source = kernel(
        "  float *s = tk::shared_ptr<float>(0);\n"
        "  tk::cp_async_4(s + threadIdx.x, x + n);\n"
        "  tk::cp_async_wait_all();\n"
    )
    error = fails(source, np.int32(64), np.zeros(64, np.float32), shared_bytes=128)
    assert (error.kind, error.data["byte_offset"]) == ("out_of_bounds", 256)
    assert error.data["line"] == line_of(source, "cp_async_4")


def test_a_copy_from_nowhere_is_no_copy_of_zeros(fails):  # noqa: F811
    source = kernel("  tk::cp_async_4(tk::shared_ptr<float>(threadIdx.x * 4), (float *)nullptr);\n")
    error = fails(source, shared_bytes=128)
    assert (error.kind, error.data["line"]) == ("segfault", line_of(source, "cp_async_4"))


def test_a_warp_that_has_lost_a_lane_cannot_multiply(fails):  # noqa: F811
    source = kernel(
        "  if (threadIdx.x == 3) return;\n"
        "  float d[4] = {};\n"
        "  int8_t a[16] = {}, b[8] = {};\n"
        "  tk::mma_m16n8k32_i8_i32(d, a, b, d);\n"
    )
    error = fails(source)
    assert (error.kind, error.data["line"]) == ("divergence", line_of(source, "mma"))
    assert error.data["text"] == "mma takes all 32 lanes of a warp, and only 31 are left"


def test_instructions_are_counted(simulator):
    f = sources.FRAGMENTS["m16n8k16_f16_f32"]
    tile = f.tiles()["tile"]
    lanes = [
        np.zeros((32, count), dtype)
        for count, dtype in zip(tile.register_counts(f), (f.dtype, f.dtype, f.sums), strict=True)
    ]
    result = run(simulator, sources.multiplications("m16n8k16_f16_f32"), "tile", lanes)
    assert result.counters["mma"] == 3 * 5 * 2
    assert result.counters["bank_conflicts"] == 0
