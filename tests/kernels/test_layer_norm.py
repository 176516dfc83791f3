# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, assert_close, evaluate, on_gpu, poisoned, scheduled, simulate
from tests.kernels.rows import row_layout
from tilekit import bfloat16, float16, float32, int32
from tilekit.utils import cdiv


def layer_norm(dtype):
    @tilus.autotune("block_m", [8, 1])
    @tilus.autotune("block_n", [256, 1024])
    @tilus.autotune("warps", [4, 2])
    class LayerNorm(tilus.Script):
        """Per row: (x - mean) / sqrt(variance + eps) * gamma + beta, in two passes over the mean."""

        def __init__(self, block_m: int, block_n: int, warps: int):
            super().__init__()
            self.block_m = block_m
            self.block_n = block_n
            self.warps = warps

        def __call__(
            self,
            m: int32,
            n: int32,
            x_ptr: ~dtype,
            gamma_ptr: ~dtype,
            beta_ptr: ~dtype,
            y_ptr: ~dtype,
            eps: float = 1e-5,
        ):
            self.attrs.blocks = [cdiv(m, self.block_m)]
            self.attrs.warps = self.warps
            row = self.blockIdx.x * self.block_m
            tile = [self.block_m, self.block_n]
            gx = self.global_view(x_ptr, dtype=dtype, shape=[m, n])
            gy = self.global_view(y_ptr, dtype=dtype, shape=[m, n])
            g_gamma = self.global_view(gamma_ptr, dtype=dtype, shape=[n])
            g_beta = self.global_view(beta_ptr, dtype=dtype, shape=[n])
            columns = self.register_tensor(dtype=int32, shape=[1, self.block_n], init=lambda i, j: j)

            total = self.register_tensor(dtype=float32, shape=tile, init=0.0)
            for column in range(0, n, self.block_n):
                total += self.load_global(gx, offsets=[row, column], shape=tile).to(float32)
            mean = self.sum(total, dim=1, keepdim=True) / n

            squares = self.register_tensor(dtype=float32, shape=tile, init=0.0)
            for column in range(0, n, self.block_n):
                x = self.load_global(gx, offsets=[row, column], shape=tile).to(float32)
                # out of bounds reads 0, which is not the mean
                centered = self.where(columns + column < n, x - mean, 0.0)
                squares += self.square(centered)
            scale = self.rsqrt(self.sum(squares, dim=1, keepdim=True) / n + eps)

            for column in range(0, n, self.block_n):
                x = self.load_global(gx, offsets=[row, column], shape=tile).to(float32)
                gamma = self.load_global(g_gamma, offsets=[column], shape=[self.block_n]).to(float32)
                beta = self.load_global(g_beta, offsets=[column], shape=[self.block_n]).to(float32)
                y = (x - mean) * scale * gamma + beta
                self.store_global(gy, y.to(dtype), offsets=[row, column])

    return LayerNorm()


def layer_norm_in_registers(dtype):
    @tilus.autotune("warps", [8, 4, 16])
    class RegisterLayerNorm(tilus.Script):
        """The same of rows whose length is known when it is compiled: each is read once, and kept in registers."""

        def __init__(self, warps: int):
            super().__init__()
            self.warps = warps

        def __call__(
            self,
            m: int32,
            n: int,
            x_ptr: ~dtype,
            gamma_ptr: ~dtype,
            beta_ptr: ~dtype,
            y_ptr: ~dtype,
            eps: float = 1e-5,
        ):
            rows, width, layout = row_layout(n, dtype, self.warps)
            self.static_assert(n <= width, "such long rows do not fit in registers: LayerNorm reads them in parts")
            self.attrs.blocks = [cdiv(m, rows)]
            self.attrs.warps = self.warps
            row = self.blockIdx.x * rows
            gx = self.global_view(x_ptr, dtype=dtype, shape=[m, n])
            gy = self.global_view(y_ptr, dtype=dtype, shape=[m, n])
            g_gamma = self.global_view(gamma_ptr, dtype=dtype, shape=[n])
            g_beta = self.global_view(beta_ptr, dtype=dtype, shape=[n])

            loaded = self.load_global(gx, offsets=[row, 0], shape=[rows, width])
            self.annotate_layout(loaded, layout)
            x = loaded.to(float32)
            mean = self.sum(x, dim=1, keepdim=True) * (1.0 / n)
            x = x - mean
            if n < width:
                # out of bounds reads 0, which is not the mean
                columns = self.register_tensor(dtype=int32, shape=[1, width], init=lambda i, j: j)
                x = self.where(columns < n, x, 0.0)
            scale = self.rsqrt(self.sum(self.square(x), dim=1, keepdim=True) * (1.0 / n) + eps)
            gamma = self.load_global(g_gamma, offsets=[0], shape=[width]).to(float32)
            beta = self.load_global(g_beta, offsets=[0], shape=[width]).to(float32)
            self.store_global(gy, (x * scale * gamma + beta).to(dtype), offsets=[row, 0])

    return RegisterLayerNorm()


LAYER_NORM = {
    torch.float32: layer_norm(float32),
    torch.float16: layer_norm(float16),
    torch.bfloat16: layer_norm(bfloat16),
}
REGISTER_LAYER_NORM = {
    torch.float32: layer_norm_in_registers(float32),
    torch.float16: layer_norm_in_registers(float16),
    torch.bfloat16: layer_norm_in_registers(bfloat16),
}


def check(run, kernel, dtype, m, n):
    x, gamma, beta = torch.randn(m, n).to(dtype), torch.randn(n).to(dtype), torch.randn(n).to(dtype)
    y = poisoned(m, n, dtype=dtype)
    run(kernel, (m, n, x, gamma, beta, y, 1e-5))
    reference = torch.nn.functional.layer_norm(x.double(), [n], gamma.double(), beta.double(), 1e-5)
    assert_close(y, reference)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("dtype", LAYER_NORM, ids=str)
@pytest.mark.parametrize("m, n", [(1, 7), (8, 256), (21, 781), (3, 2048)])
def test_rows_agree_with_torch(run, dtype, m, n):
    check(run, LAYER_NORM[dtype], dtype, m, n)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n", [(13, 256), (3, 8192)])
def test_rows_in_registers_agree_with_torch(run, m, n):
    check(run, REGISTER_LAYER_NORM[torch.float16], torch.float16, m, n)


@pytest.mark.parametrize("run", [evaluate, simulate])
@pytest.mark.parametrize("dtype, m, n", [(torch.float32, 9, 781), (torch.bfloat16, 1, 5000)])
def test_rows_of_any_length_and_type_in_registers_agree_with_torch(run, dtype, m, n):
    check(run, REGISTER_LAYER_NORM[dtype], dtype, m, n)


@pytest.mark.gpu
@pytest.mark.parametrize("schedule", REGISTER_LAYER_NORM[torch.float16].schedules, ids=str)
@pytest.mark.parametrize("m, n", [(4096, 1024), (1823, 781), (512, 8192)])
def test_every_schedule_of_rows_in_registers_agrees_with_torch_on_a_gpu(m, n, schedule):
    for dtype, kernel in REGISTER_LAYER_NORM.items():
        check(on_gpu, scheduled(kernel, schedule), dtype, m, n)
