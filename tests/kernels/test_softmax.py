# SPDX-License-Identifier: Apache-2.0
import math

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, assert_close, evaluate, on_gpu, poisoned, scheduled, simulate
from tests.kernels.rows import row_layout
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


def softmax_in_registers(dtype):
    @tilus.autotune("warps", [8, 4, 16])
    class RegisterSoftmax(tilus.Script):
        """The length of a row is known when it is compiled: a block reads its rows once, and keeps them in registers.

        Rows that are too long for that are read twice, the first time for the maximum and the sum at once.
        """

        def __init__(self, warps: int):
            super().__init__()
            self.warps = warps

        def visible(self, x: tilus.RegisterTensor, column: int32, n: int):
            """Minus infinity where the row has ended."""
            columns = self.register_tensor(dtype=int32, shape=[1, x.shape[1]], init=lambda i, j: j)
            return self.where(columns < n - column, x, float("-inf"))

        def __call__(self, m: int32, n: int, x_ptr: ~dtype, y_ptr: ~dtype):
            rows, width, layout = row_layout(n, dtype, self.warps)
            self.attrs.blocks = [cdiv(m, rows)]
            self.attrs.warps = self.warps
            row = self.blockIdx.x * rows
            gx = self.global_view(x_ptr, dtype=dtype, shape=[m, n])
            gy = self.global_view(y_ptr, dtype=dtype, shape=[m, n])
            if n <= width:
                loaded = self.load_global(gx, offsets=[row, 0], shape=[rows, width])
                self.annotate_layout(loaded, layout)
                x = loaded.to(float32)
                if n < width:
                    x = self.visible(x, 0, n)
                e = self.exp2((x - self.max(x, dim=1, keepdim=True)) * math.log2(math.e))
                y = e * (1.0 / self.sum(e, dim=1, keepdim=True))
                self.store_global(gy, y.to(dtype), offsets=[row, 0])
                return
            # below every score, and finite: minus infinity less itself is not a number
            largest = self.register_tensor(dtype=float32, shape=[rows, width], init=-3e38)
            total = self.register_tensor(dtype=float32, shape=[rows, width], init=0.0)
            for column in range(0, n, width):
                loaded = self.load_global(gx, offsets=[row, column], shape=[rows, width])
                self.annotate_layout(loaded, layout)
                x = self.visible(loaded.to(float32) * math.log2(math.e), column, n)
                before = largest
                largest = self.maximum(before, x)
                total = total * self.exp2(before - largest) + self.exp2(x - largest)
            row_max = self.max(largest, dim=1, keepdim=True)
            scale = 1.0 / self.sum(total * self.exp2(largest - row_max), dim=1, keepdim=True)
            for column in range(0, n, width):
                x = self.load_global(gx, offsets=[row, column], shape=[rows, width]).to(float32)
                y = self.exp2(x * math.log2(math.e) - row_max) * scale
                self.store_global(gy, y.to(dtype), offsets=[row, column])

    return RegisterSoftmax()


SOFTMAX = {
    torch.float32: row_softmax(float32),
    torch.float16: row_softmax(float16),
    torch.bfloat16: row_softmax(bfloat16),
}
REGISTER_SOFTMAX = {
    torch.float32: softmax_in_registers(float32),
    torch.float16: softmax_in_registers(float16),
    torch.bfloat16: softmax_in_registers(bfloat16),
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


def check_register_softmax(run, dtype, m, n, schedule=None):
    kernel = REGISTER_SOFTMAX[dtype] if schedule is None else scheduled(REGISTER_SOFTMAX[dtype], schedule)
    x, y = 20 * torch.randn(m, n).to(dtype), poisoned(m, n, dtype=dtype)
    run(kernel, (m, n, x, y))
    assert_close(y, torch.softmax(x.double(), dim=1))


# rows of a warp each, rows of a block, and rows that do not fit in registers; whole ones, and such that end in a tile
@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n", [(13, 256), (3, 8192), (2, 33000)])
def test_rows_in_registers_agree_with_torch(run, m, n):
    check_register_softmax(run, torch.float16, m, n)


@pytest.mark.parametrize("run", [evaluate, simulate])
@pytest.mark.parametrize("dtype, m, n", [(torch.float32, 9, 781), (torch.bfloat16, 1, 5000), (torch.float32, 1, 1)])
def test_rows_of_any_length_and_type_in_registers_agree_with_torch(run, dtype, m, n):
    check_register_softmax(run, dtype, m, n)


@pytest.mark.parametrize("schedule", REGISTER_SOFTMAX[torch.float16].schedules[1:], ids=str)
def test_every_schedule_of_rows_in_registers_agrees_with_torch(schedule):
    check_register_softmax(evaluate, torch.float16, 2, 3000, schedule)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", REGISTER_SOFTMAX, ids=str)
@pytest.mark.parametrize("m, n", [(4096, 1024), (1823, 781), (512, 8192), (300, 50257)])
def test_many_rows_in_registers_agree_with_torch_on_a_gpu(dtype, m, n):
    check_register_softmax(on_gpu, dtype, m, n)
