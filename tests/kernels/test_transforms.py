# SPDX-License-Identifier: Apache-2.0
"""Tiles under other shapes and types, and parts of tiles, wherever their elements lie."""

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE
from tilekit import float16, float32, int32

every_machine = pytest.mark.parametrize("run", EVERYWHERE)


class Reshaped(tilus.Script):
    """A matrix, transposed, as one long row, with a dimension more, and as the bits that it is made of."""

    def __call__(self, x: ~float32, turned: ~float32, flat: ~float32, bits: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        t = self.load_global(self.global_view(x, dtype=float32, shape=[16, 32]), offsets=[0, 0], shape=[16, 32])
        gt = self.global_view(turned, dtype=float32, shape=[32, 16])
        self.store_global(gt, self.transpose(t), offsets=[0, 0])
        gf = self.global_view(flat, dtype=float32, shape=[512])
        long = self.squeeze(self.unsqueeze(self.reshape(t, [512]), dim=0), dim=0)
        self.store_global(gf, long, offsets=[0])
        gb = self.global_view(bits, dtype=int32, shape=[16, 32])
        self.store_global(gb, self.view(t, dtype=int32), offsets=[0, 0])


@every_machine
def test_shapes_and_types_change_without_moving_an_element(run):
    x = torch.randn(16, 32)
    turned, flat, bits = torch.empty(32, 16), torch.empty(512), torch.empty(16, 32, dtype=torch.int32)
    run(Reshaped(), (x, turned, flat, bits))
    assert torch.equal(turned, x.T)
    assert torch.equal(flat, x.flatten())
    assert torch.equal(bits, x.view(torch.int32))


class Rows(tilus.Script):
    """Rows of a tile taken out and put in, at a place that is known when it is compiled, and at one that is not."""

    def __init__(self, rows, columns, warps):
        super().__init__()
        self.rows, self.columns, self.warps = rows, columns, warps

    def __call__(self, at: int32, x: ~float32, fixed: ~float32, chosen: ~float32, y: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = self.warps
        shape = [self.rows, self.columns]
        t = self.load_global(self.global_view(x, dtype=float32, shape=shape), offsets=[0, 0], shape=shape)
        second, any_one = t[1], t[at]
        self.store_global(self.global_view(fixed, dtype=float32, shape=[self.columns]), second, offsets=[0])
        self.store_global(self.global_view(chosen, dtype=float32, shape=[self.columns]), any_one, offsets=[0])
        t[at] = second + any_one
        t[0] = any_one
        self.store_global(self.global_view(y, dtype=float32, shape=shape), t, offsets=[0, 0])


@every_machine
@pytest.mark.parametrize(("rows", "columns", "warps"), [(4, 128, 1), (4, 128, 4), (32, 8, 2), (6, 10, 1)])
def test_rows_of_a_tile_are_taken_and_replaced(run, rows, columns, warps):
    x = torch.randn(rows, columns)
    at = int(torch.randint(1, rows, ()))
    fixed, chosen, y = torch.empty(columns), torch.empty(columns), torch.empty(rows, columns)
    run(Rows(rows, columns, warps), (at, x, fixed, chosen, y))
    wanted = x.clone()
    wanted[at] = x[1] + x[at]
    wanted[0] = x[at]
    assert torch.equal(fixed, x[1])
    assert torch.equal(chosen, x[at])
    assert torch.equal(y, wanted)


class Views(tilus.Script):
    """A shared tensor seen in parts, turned, and under another shape."""

    def __call__(self, x: ~float16, turned: ~float16, row: ~float16, flat: ~float16):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        s = self.shared_tensor(dtype=float16, shape=[2, 32, 64])
        gx = self.global_view(x, dtype=float16, shape=[2, 32, 64])
        for half in range(2):
            tile = self.load_global(gx, offsets=[half, 0, 0], shape=[32, 64], dims=[1, 2])
            self.store_shared(s, tile, offsets=[half, 0, 0], dims=[1, 2])
        self.sync()
        gt = self.global_view(turned, dtype=float16, shape=[64, 32])
        self.store_global(gt, self.load_shared(s[1].transpose()), offsets=[0, 0])
        self.store_global(self.global_view(row, dtype=float16, shape=[64]), self.load_shared(s[0, 3]), offsets=[0])
        gf = self.global_view(flat, dtype=float16, shape=[64, 64])
        self.store_global(gf, self.load_shared(self.reshape_shared(s, [64, 64])), offsets=[0, 0])


@every_machine
def test_a_shared_tensor_is_seen_in_parts_turned_and_reshaped(run):
    x = torch.randn(2, 32, 64).half()
    turned, row, flat = (torch.empty(*shape, dtype=torch.float16) for shape in ((64, 32), (64,), (64, 64)))
    run(Views(), (x, turned, row, flat))
    assert torch.equal(turned, x[1].T)
    assert torch.equal(row, x[0, 3])
    assert torch.equal(flat, x.reshape(64, 64))


class Crossed(tilus.Script):
    """Sums of rows and of columns, which lie in different threads, and meet again and again."""

    def __call__(self, x: ~float32, y: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        t = self.load_global(self.global_view(x, dtype=float32, shape=[64, 64]), offsets=[0, 0], shape=[64, 64])
        both = self.sum(t, dim=1) + self.sum(t, dim=0)
        for _ in range(3):
            both = (self.sum(t * both, dim=1) - self.sum(t + both, dim=0)) * 0.01
        self.store_global(self.global_view(y, dtype=float32, shape=[64]), both, offsets=[0])


@every_machine
def test_tiles_that_lie_apart_meet_through_shared_memory(run):
    x, y = torch.randn(64, 64), torch.empty(64)
    kernel = Crossed()
    run(kernel, (x, y))
    wide = x.double()
    both = wide.sum(1) + wide.sum(0)
    for _ in range(3):
        both = ((wide * both).sum(1) - (wide + both).sum(0)) * 0.01
    assert (y.double() - both).norm() / both.norm() < 1e-5


def test_what_moves_through_shared_memory_is_seen_in_the_layouts():
    kernel = Crossed()
    kernel(torch.randn(64, 64), torch.empty(64))
    moved = [row for row in kernel.layouts if row.tensor.endswith("_moved")]
    assert moved and all(row.type == "shared f32[64]" for row in moved)


class Regrouped(tilus.Script):
    """The elements of a matrix under one shape, and those under another."""

    def __init__(self, shapes, turned, warps):
        super().__init__()
        self.shapes, self.turned, self.warps = shapes, turned, warps

    def __call__(self, x: ~float32, y: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = self.warps
        t = self.load_global(self.global_view(x, dtype=float32, shape=[32, 48]), offsets=[0, 0], shape=[32, 48])
        if self.turned:
            t = t.transpose()
        for shape in self.shapes:
            t = self.reshape(t, shape)
        self.store_global(self.global_view(y, dtype=float32, shape=t.shape), t, offsets=[0 for _ in t.shape])


@every_machine
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(
    ("turned", "shapes"),
    [
        (False, ([12, 8, 16], [16, 96])),
        (False, ([3, 512], [16, 96])),
        (False, ([64, 24], [32, 48])),
        (False, ([48, 32], [96, 16])),
        (True, ([16, 96],)),
    ],
)
def test_every_shape_becomes_every_other(run, turned, shapes, warps):
    x, y = torch.randn(32, 48), torch.empty(*shapes[-1])
    run(Regrouped(shapes, turned, warps), (x, y))
    assert torch.equal(y, (x.T if turned else x).reshape(shapes[-1]))


class Scaled(tilus.Script):
    """Groups of neighbors, each divided by the largest of it."""

    def __init__(self, rows, columns, group, warps):
        super().__init__()
        self.shape, self.groups, self.warps = [rows, columns], [rows, columns // group, group], warps

    def __call__(self, x: ~float32, y: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = self.warps
        t = self.load_global(self.global_view(x, dtype=float32, shape=self.shape), offsets=[0, 0], shape=self.shape)
        z = self.reshape(t, self.groups)
        scaled = z / self.max(self.abs(z), dim=2, keepdim=True)
        self.store_global(
            self.global_view(y, dtype=float32, shape=self.shape), self.reshape(scaled, self.shape), offsets=[0, 0]
        )


@every_machine
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize(("rows", "columns", "group"), [(16, 96, 32), (8, 192, 64), (32, 48, 24), (5, 40, 20)])
def test_groups_of_neighbors_are_scaled_however_they_lie(run, rows, columns, group, warps):
    x, y = torch.randn(rows, columns), torch.empty(rows, columns)
    run(Scaled(rows, columns, group, warps), (x, y))
    z = x.reshape(rows, -1, group)
    assert torch.allclose(y, (z / z.abs().amax(2, keepdim=True)).reshape(rows, columns))
