# SPDX-License-Identifier: Apache-2.0
"""A matmul whose stages are an object: buffers, counters and copies in a `tilus.Class` of their own."""

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, on_gpu
from tests.kernels.matmul.cases import COPIED_SIZE, LARGE, check
from tilekit import float16, float32, int32
from tilekit.utils import cdiv


class Stages(tilus.Class):
    """Tiles of one matrix, `count` of them under way; `depth` is where the next one begins."""

    def __init__(self, source: tilus.GlobalTensor, rows: int, columns: int, count: int, steps_down: bool):
        self.source = source
        self.rows: int = rows
        self.columns: int = columns
        self.count: int = count
        self.steps_down: bool = steps_down
        self.buffer = self.shared_tensor(dtype=float16, shape=[count, rows, columns])
        self.newest: int32 = 0
        self.oldest: int32 = 0
        self.depth: int32 = 0

    def fetch(self, across: int32):
        """Start to copy the next tile."""
        if self.steps_down:
            self.copy_async(self.source, self.buffer[self.newest], offsets=[self.depth, across])
            self.depth = self.depth + self.rows
        else:
            self.copy_async(self.source, self.buffer[self.newest], offsets=[across, self.depth])
            self.depth = self.depth + self.columns
        self.newest = (self.newest + 1) % self.count

    def take(self):
        """The oldest tile, in registers."""
        tile = self.load_shared(self.buffer[self.oldest])
        self.oldest = (self.oldest + 1) % self.count
        return tile


class StagedMatmul(tilus.Script):
    def __init__(self, stages: int):
        super().__init__()
        self.stages = stages

    def __call__(self, m: int32, n: int, k: int, a_ptr: ~float16, b_ptr: ~float16, c_ptr: ~float16):
        self.attrs.blocks = [cdiv(m, 64), cdiv(n, 64)]
        self.attrs.warps = 4
        row, column = self.blockIdx.x * 64, self.blockIdx.y * 64
        ga = self.global_view(a_ptr, dtype=float16, shape=[m, k])
        gb = self.global_view(b_ptr, dtype=float16, shape=[k, n])
        gc = self.global_view(c_ptr, dtype=float16, shape=[m, n])
        tiles_a = Stages(ga, 64, 32, self.stages, False)
        tiles_b = Stages(gb, 32, 64, self.stages, True)
        for _ in range(self.stages - 1):
            tiles_a.fetch(row)
            tiles_b.fetch(column)
            self.copy_async_commit_group()
        acc = self.register_tensor(dtype=float32, shape=[64, 64], init=0.0)
        for _ in range(cdiv(k, 32)):
            self.copy_async_wait_group(self.stages - 2)
            self.sync()
            tiles_a.fetch(row)
            tiles_b.fetch(column)
            self.copy_async_commit_group()
            self.dot(tiles_a.take(), tiles_b.take(), acc, out=acc)
        self.copy_async_wait_all()
        self.store_global(gc, acc.to(float16), offsets=[row, column])


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("stages", [2, 3])
@pytest.mark.parametrize("m, n, k", COPIED_SIZE)
def test_every_size_agrees_with_torch(run, stages, m, n, k):
    check(run, StagedMatmul(stages), m, n, k)


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", LARGE)
def test_large_sizes_agree_with_torch_on_a_gpu(m, n, k):
    check(on_gpu, StagedMatmul(4), m, n, k, torch.float16)
