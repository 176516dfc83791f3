# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, assert_close, on_gpu, poisoned
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


RMS_NORM = {torch.float32: rms_norm(float32), torch.float16: rms_norm(float16), torch.bfloat16: rms_norm(bfloat16)}


def check(run, dtype, m, n):
    layer, residual = torch.randn(2, m, n).to(dtype)
    gamma, y = torch.randn(n).to(dtype), poisoned(m, n, dtype=dtype)
    expected = layer + residual
    run(RMS_NORM[dtype], (m, n, 1e-6, layer, residual, gamma, y))
    assert torch.equal(residual, expected)
    assert_close(y, torch.nn.functional.rms_norm(expected.double(), [n], gamma.double(), 1e-6))


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("dtype", RMS_NORM, ids=str)
@pytest.mark.parametrize("m, n", [(1, 7), (5, 781), (16, 1024)])
def test_rows_agree_with_torch(run, dtype, m, n):
    check(run, dtype, m, n)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", RMS_NORM, ids=str)
@pytest.mark.parametrize("m, n", [(4096, 4096), (1823, 5003)])
def test_large_sizes_agree_with_torch_on_a_gpu(dtype, m, n):
    check(on_gpu, dtype, m, n)
