# SPDX-License-Identifier: Apache-2.0
"""What the default schedules cost: registers without spills, and shared memory without bank conflicts."""

import pytest
import torch

import tilekit as tilus
from tests.kernels import test_int8_matmul, test_layer_norm, test_rms_norm, test_softmax, test_transpose
from tests.kernels.attention import test_flash_attention, test_paged_attention
from tests.kernels.first import first_kernel
from tests.kernels.machines import poisoned
from tests.kernels.matmul import (
    test_matmul_epilogue,
    test_matmul_tf32,
    test_matmul_v0,
    test_matmul_v1,
    test_matmul_v2,
    test_matmul_v3,
    test_matmul_v4,
    test_matmul_v5,
    test_matmul_v6,
)
from tilekit import float32

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32


def matmul(dtype, m=128, n=128, k=128):
    return m, n, k, torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype), poisoned(m, n, dtype=dtype)


def linear(dtype, activation):
    m, n, k, x, weight, y = matmul(dtype)
    return m, n, k, activation, x, weight, torch.randn(n).to(dtype), y


def int8_matmul(m=128, n=128, k=128):
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((m, k), (n, k)))
    return m, n, k, a, b, torch.zeros(m, n, dtype=torch.int32)


def int8_linear():
    m, n, k, x, weight, _ = int8_matmul()
    return m, n, k, x, torch.rand(m), weight, torch.rand(n), poisoned(m, n, dtype=F16)


def attention(dtype, q_len, causal):
    batch, k_len, heads, k_heads, dim = 1, 128, 2, 1, 64
    q, o = torch.randn(batch, q_len, heads, dim).to(dtype), poisoned(batch, q_len, heads, dim, dtype=dtype)
    k, v = torch.randn(2, batch, k_len, k_heads, dim).to(dtype)
    return batch, q_len, k_len, heads, k_heads, dim, causal, q, k, v, o


def paged(dtype, *q_len):
    page, heads, k_heads, dim = 32, 4, 2, 64
    table, k, v = test_paged_attention.cache([64, 128], page, k_heads, dim, dtype)
    q = torch.randn(2, *q_len, heads, dim).to(dtype)
    lengths = torch.tensor([64, 128], dtype=torch.int32)
    return 2, *q_len, 4, len(k), page, heads, k_heads, dim, lengths, table, q, k, v, torch.empty_like(q)


# matmuls and attention: name -> (kernel, its arguments)
TENSOR_CORES = {
    "matmul_v0": (test_matmul_v0.F16, lambda: matmul(F16)),
    "matmul_v1": (test_matmul_v1.F16, lambda: matmul(F16)),
    "matmul_v2": (test_matmul_v2.F16, lambda: matmul(F16)),
    "matmul_v3": (test_matmul_v3.F16, lambda: matmul(F16)),
    "matmul_v4": (test_matmul_v4.F16, lambda: matmul(F16)),
    "matmul_v4_bf16": (test_matmul_v4.BF16, lambda: matmul(BF16)),
    "matmul_v4_linear": (test_matmul_v4.LINEAR, lambda: matmul(F16)),
    "matmul_v5": (test_matmul_v5.F16, lambda: matmul(F16)),
    "matmul_v6": (test_matmul_v6.F16, lambda: matmul(F16)),
    "matmul_v6_linear": (test_matmul_v6.LINEAR, lambda: matmul(F16)),
    "matmul_tf32": (test_matmul_tf32.LINEAR, lambda: matmul(F32)),
    "matmul_gelu": (test_matmul_epilogue.LINEAR[F16], lambda: linear(F16, "gelu")),
    "int8_matmul": (test_int8_matmul.MATMUL, int8_matmul),
    "int8_linear": (test_int8_matmul.LINEAR, int8_linear),
    "flash": (test_flash_attention.FLASH[F16], lambda: attention(F16, 128, False)),
    "flash_causal": (test_flash_attention.FLASH[F16], lambda: attention(F16, 128, True)),
    "flash_causal_bf16": (test_flash_attention.FLASH[BF16], lambda: attention(BF16, 128, True)),
    "flash_in_two_loops": (test_flash_attention.TWO_LOOPS[F16], lambda: attention(F16, 128, True)),
    "split_flash": (test_flash_attention.SPLIT[F16], lambda: attention(F16, 16, True)),
    "paged": (test_paged_attention.PAGED[F16], lambda: paged(F16, 32)),
    "decode": (test_paged_attention.DECODE[F16], lambda: paged(F16)),
}
OTHERS = {
    "matmul_tf32_row_major": (test_matmul_tf32.ROW_MAJOR, lambda: matmul(F32)),
    "softmax": (test_softmax.SOFTMAX[F16], lambda: (8, 256, torch.randn(8, 256).half(), torch.empty(8, 256).half())),
    "layer_norm": (
        test_layer_norm.LAYER_NORM[F16],
        lambda: (8, 256, *(torch.randn(*s).half() for s in ((8, 256), (256,), (256,), (8, 256))), 1e-5),
    ),
    "rms_norm": (
        test_rms_norm.RMS_NORM[F16],
        lambda: (8, 256, 1e-5, *(torch.randn(*s).half() for s in ((8, 256), (8, 256), (256,), (8, 256)))),
    ),
    "softmax_in_registers": (test_softmax.REGISTER_SOFTMAX[F16], lambda: (4, 8192, *torch.randn(2, 4, 8192).half())),
    "layer_norm_in_registers": (
        test_layer_norm.REGISTER_LAYER_NORM[F16],
        lambda: (4, 8192, *(torch.randn(*s).half() for s in ((4, 8192), (8192,), (8192,), (4, 8192))), 1e-5),
    ),
    "rms_norm_in_registers": (
        test_rms_norm.REGISTER_RMS_NORM[F16],
        lambda: (4, 8192, 1e-5, *(torch.randn(*s).half() for s in ((4, 8192), (4, 8192), (8192,), (4, 8192)))),
    ),
    "transpose": (test_transpose.TRANSPOSE[F16], lambda: (64, 64, *torch.randn(2, 64, 64).half())),
}


@pytest.mark.parametrize("target", [pytest.param("sm_80", marks=pytest.mark.slow), "sm_90a"])
@pytest.mark.parametrize("name", [*TENSOR_CORES, *OTHERS])
def test_nothing_is_spilled_to_local_memory(name, target):
    handle, arguments = {**TENSOR_CORES, **OTHERS}[name]
    facts = first_kernel(handle, arguments(), target).compiled.facts
    assert 0 < facts.registers <= 255
    assert (facts.spill_bytes, facts.stack_bytes) == (0, 0)


@pytest.mark.parametrize("name", TENSOR_CORES)
def test_no_two_threads_want_one_bank_at_a_time(name):
    handle, arguments = TENSOR_CORES[name]
    handle(*arguments())
    counters = handle.last.last_run.counters
    assert counters["bank_conflicts"] == 0
    assert (counters["mma"] > 0) == (name != "decode")


class RowMajorTranspose(tilus.Script):
    """A transpose through a tile that is laid out row by row: its columns lie in one bank each."""

    def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        tile = self.shared_tensor(dtype=float32, shape=[32, 32])
        self.annotate_layout(tile, self.cuda.shared_layout([32, 32]))
        gx = self.global_view(x_ptr, dtype=float32, shape=[32, 32])
        gy = self.global_view(y_ptr, dtype=float32, shape=[32, 32])
        self.store_shared(tile, self.load_global(gx, offsets=[0, 0], shape=[32, 32]))
        self.sync()
        turned = self.load_shared(tile.transpose())
        # threads side by side take elements side by side, so that they write whole rows
        self.annotate_layout(turned, self.cuda.default_register_layout(1, float32, [32, 32]))
        self.store_global(gy, turned, offsets=[0, 0])


def test_a_tile_laid_out_row_by_row_has_the_conflicts_that_others_avoid():
    x, y = torch.randn(2, 32, 32)
    kernel = RowMajorTranspose()
    kernel(x, y)
    assert torch.equal(y, x.T)
    assert kernel.last.last_run.counters["bank_conflicts"] > 0
