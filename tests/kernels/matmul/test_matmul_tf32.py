# SPDX-License-Identifier: Apache-2.0
"""float32 operands on the tensor cores: rounded to tfloat32 in registers, summed in float32."""

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, TF32, on_gpu
from tests.kernels.matmul.cases import COPIED_SIZE, LARGE, check
from tilekit import float32, int32, tfloat32
from tilekit.utils import cdiv


def rounded_to_tf32(transposed):
    class Tf32Matmul(tilus.Script):
        """Two stages; B lies as [k, n], or as [n, k] if it is transposed."""

        def __init__(self):
            super().__init__()
            self.block_m = 64
            self.block_n = 64
            self.block_k = 16

        def __call__(self, m: int32, n: int, k: int, a_ptr: ~float32, b_ptr: ~float32, c_ptr: ~float32):
            self.attrs.blocks = [cdiv(m, self.block_m), cdiv(n, self.block_n)]
            self.attrs.warps = 4
            row, column = self.blockIdx.x * self.block_m, self.blockIdx.y * self.block_n
            ga = self.global_view(a_ptr, dtype=float32, shape=[m, k])
            gb = self.global_view(b_ptr, dtype=float32, shape=[n, k] if transposed else [k, n])
            gc = self.global_view(c_ptr, dtype=float32, shape=[m, n])
            sa = self.shared_tensor(dtype=float32, shape=[2, self.block_m, self.block_k])
            tile_b = [self.block_n, self.block_k] if transposed else [self.block_k, self.block_n]
            sb = self.shared_tensor(dtype=float32, shape=[2, *tile_b])

            self.copy_async(ga, sa[0], offsets=[row, 0])
            self.copy_async(gb, sb[0], offsets=[column, 0] if transposed else [0, column])
            acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
            stage: int32 = 0
            for depth in range(0, k, self.block_k):
                self.copy_async_wait_all()
                self.sync()
                later = depth + self.block_k
                self.copy_async(ga, sa[1 - stage], offsets=[row, later])
                self.copy_async(gb, sb[1 - stage], offsets=[column, later] if transposed else [later, column])
                a = self.load_shared(sa[stage])
                b = self.load_shared(sb[stage].transpose() if transposed else sb[stage])
                self.dot(a.to(tfloat32), b.to(tfloat32), acc, out=acc)
                stage = 1 - stage
            self.copy_async_wait_all()
            self.free_shared(sa)
            self.free_shared(sb)
            self.store_global(gc, acc, offsets=[row, column])

    return Tf32Matmul()


ROW_MAJOR, LINEAR = rounded_to_tf32(False), rounded_to_tf32(True)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", [*COPIED_SIZE, (33, 5, 7)])
def test_every_size_agrees_with_torch(run, m, n, k):
    check(run, LINEAR, m, n, k, torch.float32, transposed=True, tolerance=TF32)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", [(67, 93, 41)])
def test_row_major_operands_agree_with_torch(run, m, n, k):
    check(run, ROW_MAJOR, m, n, k, torch.float32, tolerance=TF32)


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", [*LARGE, (333, 1365, 811)])
def test_large_sizes_agree_with_torch_on_a_gpu(m, n, k):
    check(on_gpu, LINEAR, m, n, k, torch.float32, transposed=True, tolerance=TF32)
    check(on_gpu, ROW_MAJOR, m, n, k, torch.float32, tolerance=TF32)
