# SPDX-License-Identifier: Apache-2.0
"""Which types a product may be summed in: small integers, so that every sum is exact in each of them."""

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE
from tilekit import bfloat16, float16, float32, int8, int32
from tilekit.utils import cdiv


def matmul(dtype, acc, warps=2):
    class Matmul(tilus.Script):
        def __call__(self, m: int32, n: int32, k: int32, a_ptr: ~dtype, b_ptr: ~dtype, c_ptr: ~acc):
            self.attrs.blocks = [cdiv(m, 32), cdiv(n, 16)]
            self.attrs.warps = warps
            row, column = self.blockIdx.x * 32, self.blockIdx.y * 16
            ga = self.global_view(a_ptr, dtype=dtype, shape=[m, k])
            gb = self.global_view(b_ptr, dtype=dtype, shape=[k, n])
            gc = self.global_view(c_ptr, dtype=acc, shape=[m, n])
            sa = self.shared_tensor(dtype=dtype, shape=[32, 32])
            sb = self.shared_tensor(dtype=dtype, shape=[32, 16])
            c = self.register_tensor(dtype=acc, shape=[32, 16], init=0)
            for depth in range(0, k, 32):
                self.store_shared(sa, self.load_global(ga, offsets=[row, depth], shape=[32, 32]))
                self.store_shared(sb, self.load_global(gb, offsets=[depth, column], shape=[32, 16]))
                self.sync()
                c = self.dot(self.load_shared(sa), self.load_shared(sb), c)
                self.sync()
            self.store_global(gc, c, offsets=[row, column])

    return Matmul()


KERNELS = {
    "f16 in f16": (matmul(float16, float16), torch.float16, torch.float16),
    "f16 in f32": (matmul(float16, float32), torch.float16, torch.float32),
    "bf16 in f32": (matmul(bfloat16, float32), torch.bfloat16, torch.float32),
    "f32 in f32": (matmul(float32, float32), torch.float32, torch.float32),
    "i8 in i32": (matmul(int8, int32), torch.int8, torch.int32),
    "i8 in i32, eight warps": (matmul(int8, int32, 8), torch.int8, torch.int32),
    "f16 in f16, eight warps": (matmul(float16, float16, 8), torch.float16, torch.float16),
}


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("m, n, k", [(33, 17, 70), (5, 16, 32)])
def test_small_integers_are_summed_exactly(run, name, m, n, k):
    kernel, dtype, acc = KERNELS[name]
    a, b = torch.randint(-4, 5, (m, k)).to(dtype), torch.randint(-4, 5, (k, n)).to(dtype)
    c = torch.full((m, n), 1000, dtype=acc)
    run(kernel, (m, n, k, a, b, c))
    assert torch.equal(c.double(), a.double() @ b.double())
