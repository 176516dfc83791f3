# SPDX-License-Identifier: Apache-2.0
"""A linear layer in one kernel: act(x @ weight.T + bias), with the activation chosen when it is compiled."""

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, assert_close, on_gpu, poisoned
from tilekit import bfloat16, float16, float32, int32
from tilekit.utils import cdiv


def linear(dtype):
    class Linear(tilus.Script):
        def __init__(self):
            super().__init__()
            self.block_m = 64
            self.block_n = 64
            self.block_k = 32

        def activate(self, x, activation):
            if activation == "relu":
                y = self.maximum(x, 0.0)
            elif activation == "silu":
                y = x / (self.exp(-x) + 1.0)
            else:
                self.static_assert(activation == "gelu", "the activation is relu, silu or gelu")
                # tanh(u) = 1 - 2 / (exp(2 u) + 1), and the halves cancel
                twice = (x + x * x * x * 0.044715) * 1.5957691216057308
                y = x - x / (self.exp(twice) + 1.0)
            return y

        def __call__(
            self,
            m: int32,
            n: int,
            k: int,
            activation: str,
            x_ptr: ~dtype,
            weight_ptr: ~dtype,
            bias_ptr: ~dtype,
            y_ptr: ~dtype,
        ):
            self.attrs.blocks = [cdiv(n, self.block_n), cdiv(m, self.block_m)]
            self.attrs.warps = 4
            row, column = self.blockIdx.y * self.block_m, self.blockIdx.x * self.block_n
            gx = self.global_view(x_ptr, dtype=dtype, shape=[m, k])
            g_weight = self.global_view(weight_ptr, dtype=dtype, shape=[n, k])
            g_bias = self.global_view(bias_ptr, dtype=dtype, shape=[n])
            gy = self.global_view(y_ptr, dtype=dtype, shape=[m, n])
            # two stages, so that a copy is under way while the other stage is multiplied
            sx = self.shared_tensor(dtype=dtype, shape=[2, self.block_m, self.block_k])
            s_weight = self.shared_tensor(dtype=dtype, shape=[2, self.block_n, self.block_k])

            self.copy_async(gx, sx[0], offsets=[row, 0])
            self.copy_async(g_weight, s_weight[0], offsets=[column, 0])
            acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)
            stage: int32 = 0
            for depth in range(self.block_k, k + self.block_k, self.block_k):
                self.copy_async_wait_all()
                self.sync()
                self.copy_async(gx, sx[1 - stage], offsets=[row, depth])
                self.copy_async(g_weight, s_weight[1 - stage], offsets=[column, depth])
                x = self.load_shared(sx[stage])
                weight = self.load_shared(s_weight[stage].transpose())
                self.dot(x, weight, acc, out=acc)
                stage = 1 - stage
            self.copy_async_wait_all()
            self.free_shared(sx)
            self.free_shared(s_weight)

            bias = self.load_global(g_bias, offsets=[column], shape=[self.block_n]).to(float32)
            y = self.activate(acc + bias, activation)
            # through shared memory, so that whole rows of the tile are written side by side
            sy = self.shared_tensor(dtype=dtype, shape=[self.block_m, self.block_n])
            self.sync()
            self.store_shared(sy, y.to(dtype))
            self.sync()
            self.store_global(gy, self.load_shared(sy), offsets=[row, column])
            self.free_shared(sy)

    return Linear()


LINEAR = {torch.float16: linear(float16), torch.bfloat16: linear(bfloat16)}
ACTIVATION = {
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}


def check(run, dtype, activation, m, n, k):
    x, weight, bias = torch.randn(m, k).to(dtype), torch.randn(n, k).to(dtype), torch.randn(n).to(dtype)
    y = poisoned(m, n, dtype=dtype)
    run(LINEAR[dtype], (m, n, k, activation, x, weight, bias, y))
    reference = ACTIVATION[activation](torch.nn.functional.linear(x.double(), weight.double(), bias.double()))
    assert_close(y, reference)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("activation", ACTIVATION)
def test_every_activation_agrees_with_torch(run, activation):
    check(run, torch.float16, activation, 67, 93, 42)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("m, n, k", [(1, 5, 8), (64, 128, 96)])
def test_bfloat16_agrees_with_torch(run, m, n, k):
    check(run, torch.bfloat16, "silu", m, n, k)


@pytest.mark.gpu
@pytest.mark.parametrize("activation", ACTIVATION)
@pytest.mark.parametrize("m, n, k", [(1000, 1000, 1000), (333, 1365, 810)])
def test_large_sizes_agree_with_torch_on_a_gpu(activation, m, n, k):
    check(on_gpu, torch.float16, activation, m, n, k)
