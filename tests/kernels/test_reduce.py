# SPDX-License-Identifier: Apache-2.0
"""Reductions over every dimension, op and shape against torch, also where warps are no power of two."""

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, assert_close, poisoned
from tilekit import bfloat16, boolean, float16, float32, float64, int32

OURS = {torch.float32: float32, torch.float16: float16, torch.bfloat16: bfloat16, torch.int32: int32}


def reduce_kernel(op, shape, dim, dtype, warps):
    kept = [1 if d in dim else extent for d, extent in enumerate(shape)]

    class Reduce(tilus.Script):
        def __call__(self, x_ptr: ~dtype, y_ptr: ~dtype):
            self.attrs.blocks = [1]
            self.attrs.warps = warps
            gx = self.global_view(x_ptr, dtype=dtype, shape=shape)
            gy = self.global_view(y_ptr, dtype=dtype, shape=kept)
            x = self.load_global(gx, offsets=[0] * len(shape), shape=shape)
            self.store_global(gy, getattr(self, op)(x, dim=dim, keepdim=True), offsets=[0] * len(shape))

    return Reduce(), kept


CASES = [
    ([256], [0]),
    ([8, 64], [1]),
    ([8, 64], [0]),
    ([4, 8, 16], [0, 2]),
    ([16, 16], [0, 1]),
    ([3, 5], [1]),
    ([96, 10], [0]),
]


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("warps", [1, 3, 4])
@pytest.mark.parametrize("shape, dim", CASES, ids=str)
def test_sums_agree_with_torch(run, shape, dim, warps):
    kernel, kept = reduce_kernel("sum", shape, dim, float32, warps)
    x, y = torch.randn(shape), poisoned(*kept, dtype=torch.float32)
    run(kernel, (x, y))
    assert_close(y, x.double().sum(dim, keepdim=True))


@pytest.mark.parametrize("run", EVERYWHERE)
def test_partial_sums_may_need_more_than_48_kib_of_shared_memory(run):
    kernel, _ = reduce_kernel("sum", [6, 4096], [0], float64, 3)
    x, y = torch.randint(-9, 9, (6, 4096)).double(), poisoned(1, 4096, dtype=torch.float64)
    run(kernel, (x, y))
    assert torch.equal(y, x.sum(0, keepdim=True))
    assert kernel.last is None or kernel.last.compiled.manifest.shared_bytes > 48 * 1024


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("dtype", OURS, ids=str)
@pytest.mark.parametrize("op", ["max", "min", "sum"])
def test_every_dtype_is_reduced(run, op, dtype):
    kernel, kept = reduce_kernel(op, [4, 128], [1], OURS[dtype], 4)
    x = torch.randint(-(2**31), 2**31, (4, 128), dtype=dtype) if dtype is torch.int32 else torch.randn(4, 128).to(dtype)
    y = torch.zeros(kept, dtype=dtype)
    run(kernel, (x, y))
    if op == "sum" and dtype is not torch.int32:
        assert_close(y, x.double().sum(1, keepdim=True))
    else:
        expected = x.sum(1, keepdim=True, dtype=dtype) if op == "sum" else getattr(x, f"a{op}")(1, keepdim=True)
        assert torch.equal(y, expected)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_a_nan_wins_every_maximum(run):
    kernel, _ = reduce_kernel("max", [4, 64], [1], float32, 2)
    x, y = torch.randn(4, 64), torch.zeros(4, 1)
    x[2, 63] = float("nan")
    run(kernel, (x, y))
    assert y.isnan().flatten().tolist() == [False, False, True, False]


class AnyAll(tilus.Script):
    def __call__(self, x_ptr: ~float32, y_ptr: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float32, shape=[8, 64])
        gy = self.global_view(y_ptr, dtype=int32, shape=[2, 8])
        positive = self.load_global(gx, offsets=[0, 0], shape=[8, 64]) > 0.0
        self.store_global(gy, self.any(positive, dim=1).to(int32), offsets=[0, 0], dims=[1])
        self.store_global(gy, self.all(positive, dim=1).to(int32), offsets=[1, 0], dims=[1])


def truth_kernel(shape, dim, warps):
    kept = [1 if d == dim else extent for d, extent in enumerate(shape)]
    start = [0] * len(shape)

    class Truth(tilus.Script):
        def __call__(self, x_ptr: ~boolean, any_ptr: ~boolean, all_ptr: ~boolean):
            self.attrs.blocks = [1]
            self.attrs.warps = warps
            x = self.load_global(self.global_view(x_ptr, dtype=boolean, shape=shape), offsets=start, shape=shape)
            g_any = self.global_view(any_ptr, dtype=boolean, shape=kept)
            g_all = self.global_view(all_ptr, dtype=boolean, shape=kept)
            self.store_global(g_any, self.any(x, dim=dim, keepdim=True), offsets=start)
            self.store_global(g_all, self.all(x, dim=dim, keepdim=True), offsets=start)

    return Truth()


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("rare", [True, False])
@pytest.mark.parametrize("shape, dim, warps", [([4, 64], 1, 1), ([3, 40], 1, 2), ([64, 8], 0, 4)], ids=str)
def test_any_and_all_of_the_one_lane_that_differs(run, rare, shape, dim, warps):
    x = (torch.rand(shape) < 0.03) == rare
    some, every = torch.zeros(2, *(1 if d == dim else extent for d, extent in enumerate(shape)), dtype=torch.bool)
    run(truth_kernel(shape, dim, warps), (x, some, every))
    assert torch.equal(some, x.any(dim, keepdim=True))
    assert torch.equal(every, x.all(dim, keepdim=True))


@pytest.mark.parametrize("run", EVERYWHERE)
def test_any_and_all(run):
    x = torch.randn(8, 64)
    x[0], x[1], x[2, 1:] = 1.0, -1.0, -1.0
    x[2, 0] = 1.0
    y = torch.full((2, 8), 7, dtype=torch.int32)
    run(AnyAll(), (x, y))
    assert torch.equal(y.bool(), torch.stack([(x > 0).any(1), (x > 0).all(1)]))
