# SPDX-License-Identifier: Apache-2.0
"""Proxy fence required between `store_shared` and `tma.shared_to_global`."""

import pytest
import torch

import tilekit
from tests.promises.due import due, promised
from tilekit import float32, int32
from tilekit.diag import KernelError


def storing(fence: bool):
    """Writes a tile to shared memory, and lets the TMA engine copy it out, with the fence between or without it."""

    class Store(tilekit.Script):
        def __call__(self, n: int32, y: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 4
            gy = self.global_view(y, dtype=float32, shape=[n, 32])
            sy = self.shared_tensor(dtype=float32, shape=[32, 32])
            tile = self.register_tensor(dtype=float32, shape=[32, 32], init=1.0)
            self.store_shared(sy, tile)
            if fence:
                self.fence.proxy_async(space="shared")
            self.sync()
            with self.single_thread():
                self.tma.shared_to_global(sy, gy, offsets=[0, 0])
                self.tma.commit_group()
                self.tma.wait_group(n=0)

    return Store()


def kernel(script):
    """The script's kernel for Hopper, to run on the CPU."""
    script.compile(32, tilekit.spec(float32, (32, 32)), target="sm_90a", device="cpu")
    return script.kernels[-1]


@due(7, "there is no TMA and no proxy fence yet")
def test_the_fence_is_the_one_that_ptx_names():
    assert "fence_proxy_async_shared_cta" in kernel(storing(fence=True)).source


@due(7, "there is no TMA and no proxy fence yet")
def test_with_the_fence_the_copy_is_right():
    y = torch.zeros(32, 32)
    script = storing(fence=True)
    promised(kernel(script), "check")(32, y)
    script(32, y)
    assert (y == 1).all()


@due(7, "there is no TMA and no proxy fence yet")
def test_without_the_fence_the_check_names_it():
    check = promised(kernel(storing(fence=False)), "check")
    with pytest.raises(KernelError, match="proxy") as error:
        check(32, torch.zeros(32, 32))
    assert "self.fence.proxy_async" in str(error.value)
