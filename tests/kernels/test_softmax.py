# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, assert_close, poisoned
from tilekit import bfloat16, float16, float32, int32
from tilekit.utils import cdiv


def row_softmax(dtype):
    @tilus.autotune("block_m, block_n", [(4, 256), (1, 1024)])
    @tilus.autotune("warps", [4, 8])
    class Softmax(tilus.Script):
        def __init__(self, block_m: int, block_n: int, warps: int):
            super().__init__()
            self.block_m = block_m
            self.block_n = block_n
            self.warps = warps

        def load_row(self, gx, row, column, n):
            """A tile of rows in float32, minus infinity where the row has ended."""
            tile = [self.block_m, self.block_n]
            x = self.load_global(gx, offsets=[row, column], shape=tile).to(float32)
            columns = self.register_tensor(dtype=int32, shape=[1, self.block_n], init=lambda i, j: j)
            return self.where(columns + column < n, x, float("-inf"))

        def __call__(self, m: int32, n: int32, x_ptr: ~dtype, y_ptr: ~dtype):
            self.attrs.blocks = [cdiv(m, self.block_m)]
            self.attrs.warps = self.warps
            row = self.blockIdx.x * self.block_m
            gx = self.global_view(x_ptr, dtype=dtype, shape=[m, n])
            gy = self.global_view(y_ptr, dtype=dtype, shape=[m, n])

            largest = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=float("-inf"))
            for column in range(0, n, self.block_n):
                largest = self.maximum(largest, self.load_row(gx, row, column, n))
            row_max = self.max(largest, dim=1, keepdim=True)

            total = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
            for column in range(0, n, self.block_n):
                total = total + self.exp(self.load_row(gx, row, column, n) - row_max)
            row_sum = self.sum(total, dim=1, keepdim=True)

            for column in range(0, n, self.block_n):
                y = self.exp(self.load_row(gx, row, column, n) - row_max) / row_sum
                self.store_global(gy, y.to(dtype), offsets=[row, column])

    return Softmax()


SOFTMAX = {
    torch.float32: row_softmax(float32),
    torch.float16: row_softmax(float16),
    torch.bfloat16: row_softmax(bfloat16),
}


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("dtype", SOFTMAX, ids=str)
@pytest.mark.parametrize("m, n", [(1, 1), (3, 100), (16, 256), (37, 781), (5, 2049)])
def test_rows_agree_with_torch(run, dtype, m, n):
    x, y = torch.randn(m, n).to(dtype), poisoned(m, n, dtype=dtype)
    run(SOFTMAX[dtype], (m, n, x, y))
    assert_close(y, torch.softmax(x.double(), dim=1))


@pytest.mark.parametrize("run", EVERYWHERE)
def test_large_values_do_not_overflow(run):
    x, y = 80 * torch.randn(8, 300), poisoned(8, 300, dtype=torch.float32)
    run(SOFTMAX[torch.float32], (8, 300, x, y))
    assert_close(y, torch.softmax(x.double(), dim=1))
