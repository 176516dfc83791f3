# SPDX-License-Identifier: Apache-2.0
import re

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, assert_close, poisoned, simulate
from tilekit import bfloat16, float16, float32, int32
from tilekit.utils import cdiv

DTYPES = {torch.float32: float32, torch.float16: float16, torch.bfloat16: bfloat16}


def vector_add(dtype, block: int = 512, warps: int = 4):
    class VectorAdd(tilus.Script):
        def __call__(self, n: int32, x_ptr: ~dtype, y_ptr: ~dtype, z_ptr: ~dtype):
            self.attrs.blocks = [cdiv(n, block)]
            self.attrs.warps = warps
            start = self.blockIdx.x * block
            gx = self.global_view(x_ptr, dtype=dtype, shape=[n])
            gy = self.global_view(y_ptr, dtype=dtype, shape=[n])
            gz = self.global_view(z_ptr, dtype=dtype, shape=[n])
            x = self.load_global(gx, offsets=[start], shape=[block])
            y = self.load_global(gy, offsets=[start], shape=[block])
            self.store_global(gz, x + y, offsets=[start])

    return VectorAdd()


ADD = {dtype: vector_add(ours) for dtype, ours in DTYPES.items()}
WIDE = vector_add(float16, block=1024)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("n", [1, 511, 512, 1000, 4096])
def test_sums_agree_with_torch(run, dtype, n):
    x, y, z = torch.randn(n).to(dtype), torch.randn(n).to(dtype), poisoned(n, dtype=dtype)
    run(ADD[dtype], (n, x, y, z))
    assert_close(z, x.double() + y.double())


@pytest.mark.parametrize("run", EVERYWHERE)
def test_nothing_happens_to_empty_tensors(run):
    empty = torch.empty(0)
    run(ADD[torch.float32], (0, empty, empty.clone(), empty.clone()))


@pytest.mark.parametrize("run", EVERYWHERE)
def test_only_the_first_n_elements_are_written(run):
    x, y, z = torch.randn(1000), torch.randn(1000), torch.full((1000,), 7.0)
    run(ADD[torch.float32], (700, x, y, z))
    torch.testing.assert_close(z[:700], x[:700] + y[:700])
    assert (z[700:] == 7).all()


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("n", [1, 1021, 1024, 3003])
def test_vectors_of_16_bytes_end_anywhere(run, n):
    x, y, z = torch.randn(n + 9).half(), torch.randn(n + 9).half(), poisoned(n + 9, dtype=torch.half)
    run(WIDE, (n, x, y, z))
    assert_close(z[:n], x[:n].double() + y[:n].double())
    assert z[n:].isnan().all()
    if run is simulate:
        assert re.search(r"tk::load_global(_or_zero)?_16\(", WIDE.last.source)


def test_adds_in_place_on_the_cpu():
    x = torch.randn(5000)
    expected = x + x
    ADD[torch.float32](5000, x, x, x)
    assert torch.equal(x, expected)


def test_an_output_larger_than_64_mb():
    n = 20_000_000
    x, y, z = torch.randn(n), torch.randn(n), poisoned(n, dtype=torch.float32)
    vector_add(float32, block=32768, warps=8)(n, x, y, z)
    assert torch.equal(z, x + y)


class Shift(tilus.Script):
    """Moves a vector by one place within one block: everything is read before anything is written."""

    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float32, shape=[n])
        gy = self.global_view(y_ptr, dtype=float32, shape=[n])
        x = self.load_global(gx, offsets=[0], shape=[1024])
        self.sync()
        self.store_global(gy, x, offsets=[0])


@pytest.mark.parametrize("n", [2, 1000])
def test_overlapping_arguments_mean_what_they_mean_on_a_gpu(n):
    x = torch.randn(n)
    expected = torch.cat([x[:1], x[:-1]])
    Shift()(n - 1, x[:-1], x[1:])
    assert torch.equal(x, expected)
