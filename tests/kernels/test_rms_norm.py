# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, assert_close, evaluate, on_gpu, poisoned, scheduled, simulate
from tests.kernels.rows import row_layout
from tilekit import bfloat16, float16, float32, int32
from tilekit.utils import cdiv


def rms_norm(dtype):
    @tilus.autotune("block_m, block_n", [(2, 512), (1, 1024)])
    @tilus.autotune("warps", [4, 2])
    class RmsNorm(tilus.Script):
        """Add what the layer computed to the residual in place, and give each row length one: x / rms(x) * gamma."""

        def __init__(self, block_m: int, block_n: int, warps: int):
            super().__init__()
            self.block_m = block_m
            self.block_n = block_n
            self.warps = warps

        def __call__(
            self,
            m: int32,
            n: int32,
            eps: float32,
            layer_ptr: ~dtype,
            residual_ptr: ~dtype,
            gamma_ptr: ~dtype,
            y_ptr: ~dtype,
        ):
            self.attrs.blocks = [cdiv(m, self.block_m)]
            self.attrs.warps = self.warps
            row = self.blockIdx.x * self.block_m
            tile = [self.block_m, self.block_n]
            g_layer = self.global_view(layer_ptr, dtype=dtype, shape=[m, n])
            g_residual = self.global_view(residual_ptr, dtype=dtype, shape=[m, n])
            g_gamma = self.global_view(gamma_ptr, dtype=dtype, shape=[n])
            gy = self.global_view(y_ptr, dtype=dtype, shape=[m, n])

            squares = self.register_tensor(dtype=float32, shape=tile, init=0.0)
            for column in range(0, n, self.block_n):
                layer = self.load_global(g_layer, offsets=[row, column], shape=tile)
                residual = self.load_global(g_residual, offsets=[row, column], shape=tile)
                x = (layer.to(float32) + residual.to(float32)).to(dtype)
                self.store_global(g_residual, x, offsets=[row, column])
                squares += self.square(x.to(float32))
            scale = self.rsqrt(self.sum(squares, dim=1, keepdim=True) / n + eps)
            self.sync()

            for column in range(0, n, self.block_n):
                x = self.load_global(g_residual, offsets=[row, column], shape=tile).to(float32)
                gamma = self.load_global(g_gamma, offsets=[column], shape=[self.block_n]).to(float32)
                self.store_global(gy, (x * scale * gamma).to(dtype), offsets=[row, column])

    return RmsNorm()


def rms_norm_in_registers(dtype):
    @tilus.autotune("warps", [8, 4, 16])
    class RegisterRmsNorm(tilus.Script):
        """The same of rows whose length is known when it is compiled: each is read once, and kept in registers."""

        def __init__(self, warps: int):
            super().__init__()
            self.warps = warps

        def __call__(
            self,
            m: int32,
            n: int,
            eps: float32,
            layer_ptr: ~dtype,
            residual_ptr: ~dtype,
            gamma_ptr: ~dtype,
            y_ptr: ~dtype,
        ):
            rows, width, layout = row_layout(n, dtype, self.warps, least=16)
            self.static_assert(n <= width, "such long rows do not fit in registers: RmsNorm reads them in parts")
            self.attrs.blocks = [cdiv(m, rows)]
            self.attrs.warps = self.warps
            row = self.blockIdx.x * rows
            g_layer = self.global_view(layer_ptr, dtype=dtype, shape=[m, n])
            g_residual = self.global_view(residual_ptr, dtype=dtype, shape=[m, n])
            g_gamma = self.global_view(gamma_ptr, dtype=dtype, shape=[n])
            gy = self.global_view(y_ptr, dtype=dtype, shape=[m, n])

            layer = self.load_global(g_layer, offsets=[row, 0], shape=[rows, width])
            residual = self.load_global(g_residual, offsets=[row, 0], shape=[rows, width])
            self.annotate_layout(layer, layout)
            added = (layer.to(float32) + residual.to(float32)).to(dtype)
            self.store_global(g_residual, added, offsets=[row, 0])
            x = added.to(float32)
            scale = self.rsqrt(self.sum(self.square(x), dim=1, keepdim=True) * (1.0 / n) + eps)
            gamma = self.load_global(g_gamma, offsets=[0], shape=[width]).to(float32)
            self.store_global(gy, (x * scale * gamma).to(dtype), offsets=[row, 0])

    return RegisterRmsNorm()


RMS_NORM = {torch.float32: rms_norm(float32), torch.float16: rms_norm(float16), torch.bfloat16: rms_norm(bfloat16)}
REGISTER_RMS_NORM = {
    torch.float32: rms_norm_in_registers(float32),
    torch.float16: rms_norm_in_registers(float16),
    torch.bfloat16: rms_norm_in_registers(bfloat16),
}


def check(run, kernel, dtype, m, n):
    layer, residual = torch.randn(2, m, n).to(dtype)
    gamma, y = torch.randn(n).to(dtype), poisoned(m, n, dtype=dtype)
    expected = layer + residual
    run(kernel, (m, n, 1e-6, layer, residual, gamma, y))
    assert torch.equal(residual, expected)
    assert_close(y, torch.nn.functional.rms_norm(expected.double(), [n], gamma.double(), 1e-6))


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("dtype", RMS_NORM, ids=str)
@pytest.mark.parametrize("m, n", [(1, 7), (5, 781), (16, 1024)])
def test_rows_agree_with_torch(run, dtype, m, n):
    check(run, RMS_NORM[dtype], dtype, m, n)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", RMS_NORM, ids=str)
@pytest.mark.parametrize("m, n", [(4096, 4096), (1823, 5003)])
def test_large_sizes_agree_with_torch_on_a_gpu(dtype, m, n):
    check(on_gpu, RMS_NORM[dtype], dtype, m, n)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n", [(13, 256), (3, 8192)])
def test_rows_in_registers_agree_with_torch(run, m, n):
    check(run, REGISTER_RMS_NORM[torch.float16], torch.float16, m, n)


@pytest.mark.parametrize("run", [evaluate, simulate])
@pytest.mark.parametrize("dtype, m, n", [(torch.float32, 9, 781), (torch.bfloat16, 1, 5000)])
def test_rows_of_any_length_and_type_in_registers_agree_with_torch(run, dtype, m, n):
    check(run, REGISTER_RMS_NORM[dtype], dtype, m, n)


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", REGISTER_RMS_NORM[torch.float16].schedules, ids=str)
@pytest.mark.parametrize("m, n", [(4096, 1024), (1823, 781), (512, 8192)])
def test_every_schedule_of_rows_in_registers_agrees_with_torch_on_a_gpu(m, n, schedule):
    for dtype, kernel in REGISTER_RMS_NORM.items():
        check(on_gpu, scheduled(kernel, schedule), dtype, m, n)
