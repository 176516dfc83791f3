# SPDX-License-Identifier: Apache-2.0
"""int8 operands on the tensor cores, summed in int32; then weights and activations that were quantized to int8."""

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, assert_close, on_gpu, poisoned
from tilekit import float16, float32, int8, int32
from tilekit.utils import cdiv


class Int8Matmul(tilus.Script):
    """C[m, n] = A[m, k] @ B[n, k].T with any number of columns: tiles come through registers."""

    def __init__(self):
        super().__init__()
        self.block_m = 64
        self.block_n = 64
        self.block_k = 64

    def __call__(self, m: int32, n: int32, k: int32, a_ptr: ~int8, b_ptr: ~int8, c_ptr: ~int32):
        self.attrs.blocks = [cdiv(n, self.block_n), cdiv(m, self.block_m)]
        self.attrs.warps = 4
        row, column = self.blockIdx.y * self.block_m, self.blockIdx.x * self.block_n
        ga = self.global_view(a_ptr, dtype=int8, shape=[m, k])
        gb = self.global_view(b_ptr, dtype=int8, shape=[n, k])
        gc = self.global_view(c_ptr, dtype=int32, shape=[m, n])
        sa = self.shared_tensor(dtype=int8, shape=[self.block_m, self.block_k])
        sb = self.shared_tensor(dtype=int8, shape=[self.block_n, self.block_k])

        acc = self.register_tensor(dtype=int32, shape=[self.block_m, self.block_n], init=0)
        for depth in range(0, k, self.block_k):
            a = self.load_global(ga, offsets=[row, depth], shape=[self.block_m, self.block_k])
            b = self.load_global(gb, offsets=[column, depth], shape=[self.block_n, self.block_k])
            self.sync()
            self.store_shared(sa, a)
            self.store_shared(sb, b)
            self.sync()
            acc = self.dot(self.load_shared(sa), self.load_shared(sb.transpose()), acc)
        self.free_shared(sa)
        self.free_shared(sb)
        self.store_global(gc, acc, offsets=[row, column])


class QuantizedLinear(tilus.Script):
    """y[m, n] = (x @ weight.T) * scale of the row of x * scale of the row of weight, in three stages."""

    def __init__(self):
        super().__init__()
        self.block_m = 64
        self.block_n = 64
        self.block_k = 64
        self.stages = 3

    def __call__(
        self,
        m: int32,
        n: int32,
        k: int,
        x_ptr: ~int8,
        x_scale_ptr: ~float32,
        weight_ptr: ~int8,
        weight_scale_ptr: ~float32,
        y_ptr: ~float16,
    ):
        self.attrs.blocks = [cdiv(n, self.block_n), cdiv(m, self.block_m)]
        self.attrs.warps = 4
        row, column = self.blockIdx.y * self.block_m, self.blockIdx.x * self.block_n
        gx = self.global_view(x_ptr, dtype=int8, shape=[m, k])
        g_weight = self.global_view(weight_ptr, dtype=int8, shape=[n, k])
        sx = self.shared_tensor(dtype=int8, shape=[self.stages, self.block_m, self.block_k])
        s_weight = self.shared_tensor(dtype=int8, shape=[self.stages, self.block_n, self.block_k])

        for stage in self.range(self.stages - 1, unroll="all"):
            self.copy_async(gx, sx[stage], offsets=[row, stage * self.block_k])
            self.copy_async(g_weight, s_weight[stage], offsets=[column, stage * self.block_k])
            self.copy_async_commit_group()
        acc = self.register_tensor(dtype=int32, shape=[self.block_m, self.block_n], init=0)
        for step in range(cdiv(k, self.block_k)):
            self.copy_async_wait_group(self.stages - 2)
            self.sync()
            later = step + self.stages - 1
            self.copy_async(gx, sx[later % self.stages], offsets=[row, later * self.block_k])
            self.copy_async(g_weight, s_weight[later % self.stages], offsets=[column, later * self.block_k])
            self.copy_async_commit_group()
            x = self.load_shared(sx[step % self.stages])
            weight = self.load_shared(s_weight[step % self.stages].transpose())
            self.dot(x, weight, acc, out=acc)
        self.copy_async_wait_all()
        self.free_shared(sx)
        self.free_shared(s_weight)

        g_x_scale = self.global_view(x_scale_ptr, dtype=float32, shape=[m, 1])
        g_weight_scale = self.global_view(weight_scale_ptr, dtype=float32, shape=[1, n])
        gy = self.global_view(y_ptr, dtype=float16, shape=[m, n])
        x_scale = self.load_global(g_x_scale, offsets=[row, 0], shape=[self.block_m, 1])
        weight_scale = self.load_global(g_weight_scale, offsets=[0, column], shape=[1, self.block_n])
        y = acc.to(float32) * x_scale * weight_scale
        self.store_global(gy, y.to(float16), offsets=[row, column])


MATMUL, LINEAR = Int8Matmul(), QuantizedLinear()


def check_matmul(run, m, n, k):
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((m, k), (n, k)))
    c = torch.full((m, n), -(2**31), dtype=torch.int32)
    run(MATMUL, (m, n, k, a, b, c))
    assert torch.equal(c.long(), (a.double() @ b.double().T).long())


def quantize(x):
    """Each row as int8 and the scale that brings it back."""
    scale = x.abs().amax(dim=1) / 127
    return torch.round(x / scale[:, None]).to(torch.int8), scale


def check_linear(run, m, n, k):
    (x, x_scale), (weight, weight_scale) = quantize(torch.randn(m, k)), quantize(torch.randn(n, k))
    y = poisoned(m, n, dtype=torch.float16)
    run(LINEAR, (m, n, k, x, x_scale, weight, weight_scale, y))
    reference = (x.double() @ weight.double().T) * x_scale.double()[:, None] * weight_scale.double()
    assert_close(y, reference)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", [(1, 1, 1), (67, 93, 141), (64, 128, 128)])
def test_every_size_is_exact(run, m, n, k):
    check_matmul(run, m, n, k)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", [(67, 93, 180), (37, 72, 272)])
def test_a_quantized_linear_layer_agrees_with_torch(run, m, n, k):
    check_linear(run, m, n, k)


@pytest.mark.gpu
@pytest.mark.parametrize("m, n, k", [(1000, 1000, 1000), (333, 1366, 2052)])
def test_large_sizes_on_a_gpu(m, n, k):
    check_matmul(on_gpu, m, n, k - 1)
    check_linear(on_gpu, m, n, k)
