# SPDX-License-Identifier: Apache-2.0
"""Products of all types, of few and of many parts, whose operands come from registers or from shared memory."""

import random

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, evaluate, simulate
from tilekit import bfloat16, float16, float32, int8, int32
from tilekit.diag.errors import LanguageError

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


class Chained(tilus.Script):
    """A product, and the product of it, as it is or turned, with itself or with another tile."""

    def __init__(self, left, right, warps):
        super().__init__()
        self.left, self.right, self.warps = left, right, warps

    def __call__(self, x_ptr: ~float16, y_ptr: ~float16, o_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = self.warps
        x = self.load_global(self.global_view(x_ptr, dtype=float16, shape=[64, 64]), offsets=[0, 0], shape=[64, 64])
        y = self.load_global(self.global_view(y_ptr, dtype=float16, shape=[64, 64]), offsets=[0, 0], shape=[64, 64])
        g = self.dot(x, y, acc_dtype=float32).to(float16)
        tiles = {"x": x, "g": g, "turned": g.transpose()}
        o = self.dot(tiles[self.left], tiles[self.right], acc_dtype=float32)
        self.store_global(self.global_view(o_ptr, dtype=float32, shape=[64, 64]), o, offsets=[0, 0])


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize(
    ("left", "right"), [("x", "x"), ("g", "g"), ("turned", "g"), ("turned", "x"), ("x", "turned"), ("x", "g")]
)
def test_any_two_tiles_are_multiplied_wherever_they_come_from(run, left, right, warps):
    x, y, out = torch.randn(64, 64).half(), torch.randn(64, 64).half(), torch.empty(64, 64)
    run(Chained(left, right, warps), (x, y, out))
    product = (x.double() @ y.double()).half().double()
    tiles = {"x": x.double(), "g": product, "turned": product.T}
    reference = tiles[left] @ tiles[right]
    assert float((out.double() - reference).norm() / reference.norm()) < 1e-3


class Annotated(tilus.Script):
    """A product of which only one thing is said to lie somewhere."""

    def __init__(self, what):
        super().__init__()
        self.what = what

    def __call__(self, x_ptr: ~float16, o_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float16, shape=[64, 64])
        sa = self.shared_tensor(dtype=float16, shape=[64, 64])
        self.copy_async(gx, sa, offsets=[0, 0])
        self.copy_async_wait_all()
        self.sync()
        b = self.load_global(gx, offsets=[0, 0], shape=[64, 64])
        if self.what == "shared":
            self.annotate_layout(sa, self.cuda.shared_layout([64, 64]))
        else:
            self.annotate_layout(b, self.cuda.default_register_layout(4, float16, [64, 64]))
        o = self.dot(self.load_shared(sa), b, acc_dtype=float32)
        self.store_global(self.global_view(o_ptr, dtype=float32, shape=[64, 64]), o, offsets=[0, 0])


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("what", ["shared", "tile"])
def test_one_annotation_breaks_no_product(run, what):
    x, out = torch.randn(64, 64).half(), torch.empty(64, 64)
    run(Annotated(what), (x, out))
    reference = x.double() @ x.double()
    assert float((out.double() - reference).norm() / reference.norm()) < 1e-5


@pytest.mark.parametrize(
    ("types", "m", "n", "k", "wrong", "whole"),
    [
        ("f16", 64, 32, 40, "k = 40 is no multiple of 16", 48),
        ("f16", 8, 32, 64, "m = 8 is no multiple of 16", 16),
        ("bf16", 64, 12, 64, "n = 12 is no multiple of 8", 16),
        ("tf32", 64, 32, 20, "k = 20 is no multiple of 8", 24),
        ("i8", 4, 32, 64, "m = 4 is no multiple of 8", 8),
        ("i8", 64, 32, 40, "k = 40 is no multiple of 16", 48),
    ],
)
def test_a_product_that_is_not_made_of_matrix_instructions_is_refused_with_the_size_to_pad_to(
    types, m, n, k, wrong, whole
):
    _, _, dtype, acc, _ = TYPES[types]
    a, b, c, d = tensor(m, k, dtype), tensor(k, n, dtype), tensor(m, n, acc), tensor(m, n, acc)
    for run in (evaluate, simulate):
        with pytest.raises(LanguageError) as caught:
            run(Product(types, m, n, k, 4, "registers", "registers"), (a, b, c, d))
        assert caught.value.code == "TK213"
        assert wrong in caught.value.message
        assert caught.value.diagnostic.help == f"pad the tile to {whole}: loads outside read 0"
