# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, assert_close, poisoned
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


LAYER_NORM = {
    torch.float32: layer_norm(float32),
    torch.float16: layer_norm(float16),
    torch.bfloat16: layer_norm(bfloat16),
}


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("dtype", LAYER_NORM, ids=str)
@pytest.mark.parametrize("m, n", [(1, 7), (8, 256), (21, 781), (3, 2048)])
def test_rows_agree_with_torch(run, dtype, m, n):
    x, gamma, beta = torch.randn(m, n).to(dtype), torch.randn(n).to(dtype), torch.randn(n).to(dtype)
    y = poisoned(m, n, dtype=dtype)
    run(LAYER_NORM[dtype], (m, n, x, gamma, beta, y, 1e-5))
    reference = torch.nn.functional.layer_norm(x.double(), [n], gamma.double(), beta.double(), 1e-5)
    assert_close(y, reference)
