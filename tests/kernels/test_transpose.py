# SPDX-License-Identifier: Apache-2.0
"""A transpose through shared memory, so that both the loads and the stores run along rows of global memory."""

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, on_gpu
from tilekit import float16, float32, int8, int32, int64
from tilekit.utils import cdiv


def transpose(dtype):
    class Transpose(tilus.Script):
        def __init__(self):
            super().__init__()
            self.tile_m = 32
            self.tile_n = 64

        def __call__(self, m: int32, n: int32, x_ptr: ~dtype, y_ptr: ~dtype):
            self.attrs.blocks = [cdiv(n, self.tile_n), cdiv(m, self.tile_m)]
            self.attrs.warps = 4
            row, column = self.blockIdx.y * self.tile_m, self.blockIdx.x * self.tile_n
            gx = self.global_view(x_ptr, dtype=dtype, shape=[m, n])
            gy = self.global_view(y_ptr, dtype=dtype, shape=[n, m])
            tile = self.shared_tensor(dtype=dtype, shape=[self.tile_m, self.tile_n])
            self.store_shared(tile, self.load_global(gx, offsets=[row, column], shape=[self.tile_m, self.tile_n]))
            self.sync()
            turned = self.load_shared(tile.transpose())
            self.free_shared(tile)
            self.store_global(gy, turned, offsets=[column, row])

    return Transpose()


def exchange_heads(dtype):
    class ExchangeHeads(tilus.Script):
        """[sequence, heads, dim] to [heads, sequence, dim], eight positions of all heads at a time."""

        def __call__(self, length: int32, heads: int, dim: int, x_ptr: ~dtype, y_ptr: ~dtype):
            self.attrs.blocks = [cdiv(length, 8)]
            self.attrs.warps = 2
            first = self.blockIdx.x * 8
            gx = self.global_view(x_ptr, dtype=dtype, shape=[length, heads, dim])
            gy = self.global_view(y_ptr, dtype=dtype, shape=[heads, length, dim])
            tile = self.shared_tensor(dtype=dtype, shape=[8, heads, dim])
            self.store_shared(tile, self.load_global(gx, offsets=[first, 0, 0], shape=[8, heads, dim]))
            self.sync()
            self.store_global(gy, self.load_shared(tile.permute([1, 0, 2])), offsets=[0, first, 0])
            self.free_shared(tile)

    return ExchangeHeads()


TRANSPOSE = {
    torch.int8: transpose(int8),
    torch.float16: transpose(float16),
    torch.float32: transpose(float32),
    torch.int64: transpose(int64),
}
EXCHANGE = exchange_heads(float16)


def check(run, dtype, m, n):
    x = torch.randint(-128, 128, (m, n)).to(dtype)
    y = torch.full((n, m), 77, dtype=dtype)
    run(TRANSPOSE[dtype], (m, n, x, y))
    assert torch.equal(y, x.T)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("dtype", TRANSPOSE, ids=str)
@pytest.mark.parametrize("m, n", [(1, 1), (67, 93), (64, 128)])
def test_rows_become_columns(run, dtype, m, n):
    check(run, dtype, m, n)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("length, heads, dim", [(13, 4, 32), (8, 2, 64)])
def test_heads_come_first(run, length, heads, dim):
    x = torch.randn(length, heads, dim).half()
    y = torch.full((heads, length, dim), float("nan")).half()
    run(EXCHANGE, (length, heads, dim, x, y))
    assert torch.equal(y, x.transpose(0, 1))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TRANSPOSE, ids=str)
@pytest.mark.parametrize("m, n", [(1024, 4096), (1365, 2049)])
def test_large_sizes_on_a_gpu(dtype, m, n):
    check(on_gpu, dtype, m, n)
