# SPDX-License-Identifier: Apache-2.0
"""Every elementwise function of the language against torch, on every machine."""

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import EVERYWHERE, poisoned
from tilekit import bfloat16, boolean, float16, float32, int32
from tilekit.diag import LanguageError
from tilekit.ir.instructions.elementwise import UNARY
from tilekit.utils import cdiv

OURS = {torch.float32: float32, torch.float16: float16, torch.bfloat16: bfloat16}

# method of the language -> what it is in torch, and the range of its inputs
UNARY_FUNCTIONS = {
    "abs": (torch.abs, (-4, 4)),
    "exp": (torch.exp, (-4, 4)),
    "exp2": (torch.exp2, (-4, 4)),
    "log": (torch.log, (0.01, 4)),
    "sin": (torch.sin, (-6, 6)),
    "cos": (torch.cos, (-6, 6)),
    "round": (torch.round, (-9, 9)),
    "square": (torch.square, (-4, 4)),
    "sqrt": (torch.sqrt, (0, 4)),
    "rsqrt": (torch.rsqrt, (0.01, 4)),
}


def unary_kernel(name, dtype):
    class Unary(tilus.Script):
        def __call__(self, n: int32, x_ptr: ~dtype, y_ptr: ~dtype):
            self.attrs.blocks = [cdiv(n, 256)]
            self.attrs.warps = 2
            at = self.blockIdx.x * 256
            x = self.load_global(self.global_view(x_ptr, dtype=dtype, shape=[n]), offsets=[at], shape=[256])
            gy = self.global_view(y_ptr, dtype=dtype, shape=[n])
            self.store_global(gy, getattr(self, name)(x), offsets=[at])

    return Unary()


def test_every_unary_function_of_the_language_is_compared():
    missing = UNARY.keys() - {"neg", "logical_not"} ^ UNARY_FUNCTIONS.keys()
    assert not missing, f"what are these in torch? Say it in UNARY_FUNCTIONS above: {sorted(missing)}"


@pytest.mark.parametrize("run", EVERYWHERE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", UNARY_FUNCTIONS)
def test_unary_functions_agree_with_torch(run, name, dtype):
    function, (low, high) = UNARY_FUNCTIONS[name]
    x = (torch.rand(300) * (high - low) + low).to(dtype)
    y = poisoned(300, dtype=dtype)
    run(unary_kernel(name, OURS[dtype]), (300, x, y))
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(y.double(), function(x.double()), rtol=4 * eps, atol=4 * eps)


class Integers(tilus.Script):
    """Every integer operator, one result each."""

    def __call__(self, n: int32, x_ptr: ~int32, y_ptr: ~int32, z_ptr: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        x = self.load_global(self.global_view(x_ptr, dtype=int32, shape=[n]), offsets=[0], shape=[512])
        y = self.load_global(self.global_view(y_ptr, dtype=int32, shape=[n]), offsets=[0], shape=[512])
        gz = self.global_view(z_ptr, dtype=int32, shape=[10, n])
        self.store_global(gz, x + y, offsets=[0, 0], dims=[1])
        self.store_global(gz, x - y, offsets=[1, 0], dims=[1])
        self.store_global(gz, x * y, offsets=[2, 0], dims=[1])
        self.store_global(gz, x // y, offsets=[3, 0], dims=[1])
        self.store_global(gz, x % y, offsets=[4, 0], dims=[1])
        self.store_global(gz, x & y, offsets=[5, 0], dims=[1])
        self.store_global(gz, x | y, offsets=[6, 0], dims=[1])
        self.store_global(gz, x ^ y, offsets=[7, 0], dims=[1])
        self.store_global(gz, x << (y & 7), offsets=[8, 0], dims=[1])
        self.store_global(gz, x >> (y & 7), offsets=[9, 0], dims=[1])


@pytest.mark.parametrize("run", EVERYWHERE)
def test_integers_agree_exactly_and_wrap_at_their_width(run):
    x = torch.randint(-(2**31), 2**31, (500,), dtype=torch.int32)
    y = torch.randint(-100, 100, (500,), dtype=torch.int32)
    y[y == 0] = 7
    z = torch.full((10, 500), -559038737, dtype=torch.int32)
    run(Integers(), (500, x, y, z))
    shift = y & 7
    expected = [x + y, x - y, x * y, x // y, x % y, x & y, x | y, x ^ y, x << shift, x >> shift]
    for row, (ours, theirs) in enumerate(zip(z, expected, strict=True)):
        assert torch.equal(ours, theirs), f"row {row}"


class Choose(tilus.Script):
    """Comparisons, boolean tiles, where, minimum, maximum, clip, negation and casts."""

    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32, z_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        x = self.load_global(self.global_view(x_ptr, dtype=float32, shape=[n]), offsets=[0], shape=[256])
        y = self.load_global(self.global_view(y_ptr, dtype=float32, shape=[n]), offsets=[0], shape=[256])
        gz = self.global_view(z_ptr, dtype=float32, shape=[7, n])
        self.store_global(gz, self.where(x < y, x, y), offsets=[0, 0], dims=[1])
        self.store_global(gz, self.where(not (x >= y), -x, 2.0), offsets=[1, 0], dims=[1])
        self.store_global(gz, self.maximum(x, y), offsets=[2, 0], dims=[1])
        self.store_global(gz, self.minimum(x, 0.25), offsets=[3, 0], dims=[1])
        self.store_global(gz, self.clip(x, -0.5, 0.5), offsets=[4, 0], dims=[1])
        self.store_global(gz, (x * 1000.0).to(int32).to(float32), offsets=[5, 0], dims=[1])
        self.store_global(gz, (x == y).to(float32), offsets=[6, 0], dims=[1])


@pytest.mark.parametrize("run", EVERYWHERE)
def test_choices_agree_with_torch_also_where_a_nan_is(run):
    x, y = torch.randn(200), torch.randn(200)
    x[3], y[5], x[7] = float("nan"), float("nan"), float("inf")
    y[50:60] = x[50:60]
    z = torch.full((7, 200), 123.0)
    run(Choose(), (200, x, y, z))
    integers = (x * 1000).nan_to_num(0, posinf=2**31 - 1, neginf=-(2**31)).double().trunc().clamp(-(2**31), 2**31 - 1)
    expected = [
        torch.where(x < y, x, y),
        torch.where(~(x >= y), -x, 2.0),
        torch.maximum(x, y),
        torch.minimum(x, torch.tensor(0.25)),
        x.clamp(-0.5, 0.5),
        integers.float(),
        (x == y).float(),
    ]
    for row, (ours, theirs) in enumerate(zip(z, expected, strict=True)):
        torch.testing.assert_close(
            ours, theirs, rtol=0, atol=0, equal_nan=True, msg=lambda m, row=row: f"row {row}: {m}"
        )


class Truths(tilus.Script):
    """The operators on bits, of truth values."""

    def __call__(self, n: int32, x_ptr: ~boolean, y_ptr: ~boolean, z_ptr: ~boolean):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        x = self.load_global(self.global_view(x_ptr, dtype=boolean, shape=[n]), offsets=[0], shape=[256])
        y = self.load_global(self.global_view(y_ptr, dtype=boolean, shape=[n]), offsets=[0], shape=[256])
        gz = self.global_view(z_ptr, dtype=boolean, shape=[5, n])
        self.store_global(gz, x & y, offsets=[0, 0], dims=[1])
        self.store_global(gz, x | y, offsets=[1, 0], dims=[1])
        self.store_global(gz, x ^ y, offsets=[2, 0], dims=[1])
        self.store_global(gz, x == (not y), offsets=[3, 0], dims=[1])
        self.store_global(gz, x & True, offsets=[4, 0], dims=[1])


@pytest.mark.parametrize("run", EVERYWHERE)
def test_masks_are_combined_as_truth_values(run):
    x, y = torch.rand(2, 200) < 0.5
    z = torch.zeros(5, 200, dtype=torch.bool)
    run(Truths(), (200, x, y, z))
    assert torch.equal(z, torch.stack([x & y, x | y, x ^ y, x == ~y, x]))


@pytest.mark.parametrize("name", ["abs", "square", "exp"])
def test_truth_values_have_no_arithmetic(name):
    class Wrong(tilus.Script):
        def __call__(self, y_ptr: ~boolean):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            getattr(self, name)(self.register_tensor(dtype=boolean, shape=[32], init=True))

    with pytest.raises(LanguageError, match=r"TK214.*(boolean tile|float tile)"):
        Wrong()(torch.zeros(1, dtype=torch.bool))
