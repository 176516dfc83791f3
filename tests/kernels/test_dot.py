# SPDX-License-Identifier: Apache-2.0
"""Products of all types, of few and of many parts, whose operands come from registers or from shared memory."""

import random

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE
from tilekit import bfloat16, float16, float32, int8, int32

# operands, accumulator, and the k of one instruction
TYPES = {
    "f16": (float16, float32, torch.float16, torch.float32, 16),
    "f16 in f16": (float16, float16, torch.float16, torch.float16, 16),
    "bf16": (bfloat16, float32, torch.bfloat16, torch.float32, 16),
    "tf32": (float32, float32, torch.float32, torch.float32, 8),
    "i8": (int8, int32, torch.int8, torch.int32, 16),
}


class Product(tilus.Script):
    """`a @ b + c` of one block; each operand straight from global memory, or through shared memory, turned or not."""

    def __init__(self, types, m, n, k, warps, a_from, b_from):
        super().__init__()
        self.dtype, self.acc, *_ = TYPES[types]
        self.m, self.n, self.k, self.warps = m, n, k, warps
        self.a_from, self.b_from = a_from, b_from

    def operand(self, pointer, rows: int, columns: int, way: str):
        turned = way == "turned"
        shape = [columns, rows] if turned else [rows, columns]
        view = self.global_view(pointer, dtype=self.dtype, shape=shape)
        tile = self.load_global(view, offsets=[0, 0], shape=shape)
        if way == "registers":
            return tile
        memory = self.shared_tensor(dtype=self.dtype, shape=shape)
        self.store_shared(memory, tile)
        self.sync()
        return self.load_shared(memory.transpose() if turned else memory)

    def __call__(self, a_ptr: tilus.void_p, b_ptr: tilus.void_p, c_ptr: tilus.void_p, d_ptr: tilus.void_p):
        self.attrs.blocks = [1]
        self.attrs.warps = self.warps
        a = self.operand(a_ptr, self.m, self.k, self.a_from)
        b = self.operand(b_ptr, self.k, self.n, self.b_from)
        gc = self.global_view(c_ptr, dtype=self.acc, shape=[self.m, self.n])
        c = self.load_global(gc, offsets=[0, 0], shape=[self.m, self.n])
        gd = self.global_view(d_ptr, dtype=self.acc, shape=[self.m, self.n])
        self.store_global(gd, self.dot(a, b, c), offsets=[0, 0])


def tensor(rows, columns, dtype):
    if dtype.is_floating_point:
        return torch.randn(rows, columns).to(dtype)
    return torch.randint(-100, 100, (rows, columns), dtype=dtype)


def case(types, seed):
    draw = random.Random(f"{types} {seed}")
    k = TYPES[types][4] * draw.choice([1, 2, 3, 4])
    m, n = 16 * draw.choice([1, 2, 3, 4]), 8 * draw.choice([1, 2, 3, 4, 8])
    ways = ["registers", "shared", "turned"]
    return m, n, k, draw.choice([1, 2, 4, 8]), draw.choice(ways), draw.choice(ways)


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("types", TYPES)
def test_a_product_agrees_with_torch(run, types, seed):
    m, n, k, warps, a_from, b_from = case(types, seed)
    _, _, dtype, acc, _ = TYPES[types]
    a, b, c, d = tensor(m, k, dtype), tensor(k, n, dtype), tensor(m, n, acc), tensor(m, n, acc)
    given = [x.T.contiguous() if way == "turned" else x for x, way in ((a, a_from), (b, b_from))]
    run(Product(types, m, n, k, warps, a_from, b_from), (*given, c, d))
    reference = a.double() @ b.double() + c.double()
    if not dtype.is_floating_point:
        assert torch.equal(d.double(), reference)
        return
    error = float((d.double() - reference).norm() / reference.norm())
    assert error < {"tf32": 1e-3, "f16 in f16": 2e-3}.get(types, 1e-5), (m, n, k, warps, a_from, b_from)
