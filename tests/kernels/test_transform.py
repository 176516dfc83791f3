# SPDX-License-Identifier: Apache-2.0
"""Tiles and shared tensors under other shapes, parts of them, and facts that a person gives the compiler."""

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, poisoned
from tilekit import float16, float32, int32
from tilekit.utils import cdiv

ROWS, COLUMNS = 16, 32


class Shapes(tilus.Script):
    """Nine images of one tile, one below the other, each with as many elements."""

    def __call__(self, x_ptr: ~float32, out_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        gx = self.global_view(x_ptr, dtype=float32, shape=[ROWS, COLUMNS])
        x = self.load_global(gx, offsets=[0, 0], shape=[ROWS, COLUMNS])
        self.out = self.global_view(out_ptr, dtype=float32, shape=[9, ROWS * COLUMNS])
        self.keep(0, self.reshape(x, [COLUMNS, ROWS]))
        self.keep(1, self.transpose(x))
        self.keep(2, self.reshape(self.transpose(x), [4, 8, 16]))
        self.keep(3, self.squeeze(self.unsqueeze(x, dim=(0, -1)), dim=0))
        self.keep(4, self.view(self.view(x, dtype=int32) + 1, dtype=float32))
        s = self.shared_tensor(dtype=float32, shape=[ROWS, COLUMNS])
        self.store_shared(s, x)
        self.sync()
        self.keep(5, self.load_shared(self.reshape_shared(s, [8, 2, COLUMNS])))
        self.keep(6, self.load_shared(self.permute_shared(s, [1, 0])))
        self.keep(7, self.load_shared(self.reshape_shared(s, [ROWS, 4, 8]).permute([1, 0, 2])))
        self.sync()
        self.store_shared(s.transpose(), self.transpose(x) * 2.0)
        self.sync()
        self.keep(8, self.load_shared(s))

    def keep(self, row: int, tile: tilus.RegisterTensor):
        self.store_global(self.out, self.reshape(tile, [ROWS * COLUMNS]), offsets=[row, 0], dims=[1])


@pytest.mark.parametrize("run", EVERYWHERE)
def test_shapes_keep_the_elements(run):
    x, out = torch.randn(ROWS, COLUMNS), poisoned(9, ROWS * COLUMNS, dtype=torch.float32)
    run(Shapes(), (x, out))
    after = (x.view(torch.int32) + 1).view(torch.float32)
    turned = x.reshape(ROWS, 4, 8).permute(1, 0, 2)
    wanted = [x, x.T, x.T, x, after, x, x.T, turned, x * 2]
    assert torch.equal(out, torch.stack([image.reshape(-1) for image in wanted]))


class Parts(tilus.Script):
    """A row taken from a tile and written to another place of it, at places known at run time; and a sum of parts."""

    def __call__(self, source: int32, target: int32, x_ptr: ~float32, out_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float32, shape=[ROWS, COLUMNS])
        out = self.global_view(out_ptr, dtype=float32, shape=[2, ROWS, COLUMNS])
        x = self.load_global(gx, offsets=[0, 0], shape=[ROWS, COLUMNS])
        row = x[source] * 2.0
        x[target] = row
        x[3, 5] = 7.0
        self.store_global(out[0], x, offsets=[0, 0])
        stages = self.shared_tensor(dtype=float32, shape=[3, ROWS, COLUMNS])
        for i in range(3):
            self.store_shared(stages[i], x * float32(i))
        self.sync()
        y = self.load_shared(stages[2])
        self.store_shared(stages, row, offsets=[0, target, 0], dims=[2])
        self.sync()
        z = self.load_shared(stages[0])
        total = y + z
        self.assign(x, total)
        self.store_global(out[1], x, offsets=[0, 0])
        self.free_shared(stages)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_parts_are_taken_and_written_where_the_program_says(run):
    x, out = torch.randn(ROWS, COLUMNS), poisoned(2, ROWS, COLUMNS, dtype=torch.float32)
    source, target = torch.randint(ROWS, (2,)).tolist()
    run(Parts(), (source, target, x, out))
    row = x[source] * 2
    first = x.clone()
    first[target] = row
    first[3, 5] = 7
    second = first * 2
    second[target] += row
    assert torch.equal(out[0], first)
    assert torch.equal(out[1], second)


class Copies(tilus.Script):
    """Copies a matrix whose rows have whole vectors of 16 bytes, which the kernel says or does not say."""

    def __init__(self, is_known: bool):
        super().__init__()
        self.is_known = is_known

    def __call__(self, m: int32, n: int32, x_ptr: ~float16, out_ptr: ~float16):
        self.attrs.blocks = [cdiv(m, 16)]
        self.attrs.warps = 2
        if self.is_known:
            self.assume(n % 8 == 0 and n > 0 and n <= 64)
        first = self.blockIdx.x * 16
        x = self.load_global(self.global_view(x_ptr, dtype=float16, shape=[m, n]), offsets=[first, 0], shape=[16, 64])
        self.store_global(self.global_view(out_ptr, dtype=float16, shape=[m, n]), x, offsets=[first, 0])


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("is_known", [True, False])
def test_what_is_assumed_changes_no_result(run, is_known):
    x, out = torch.randn(37, 40).half(), poisoned(37, 40, dtype=torch.float16)
    run(Copies(is_known), (37, 40, x, out))
    assert torch.equal(out, x)


def test_what_is_assumed_makes_accesses_wide():
    sources = {}
    for is_known in (True, False):
        handle = Copies(is_known)
        handle(37, 40, torch.zeros(37, 40).half(), torch.zeros(37, 40).half())
        sources[is_known] = handle.last.compiled.source
    assert "tk::load_global_or_zero_16(" in sources[True] and "tk::store_global_16(" in sources[True]
    assert "_16(" not in sources[False]
