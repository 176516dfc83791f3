# SPDX-License-Identifier: Apache-2.0
"""What a person reads who gives an operation something else than it takes."""

import math

import pytest
import torch

from tests.lang.cells import cell, error_text, function_of
from tilekit import dtypes
from tilekit.diag.errors import LanguageError
from tilekit.ir.instructions.elementwise import ElementwiseBinaryInst, ElementwiseUnaryInst
from tilekit.ir.instructions.reduce import ReduceInst
from tilekit.ir.tensor import RegisterTensor

KERNEL = """
class Kernel(tilus.Script):
    def __call__(self, n: int32, s: float32, p: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        g = self.global_view(p, dtype=float32, shape=[n])
        {line}
"""


@pytest.mark.parametrize(
    ("line", "message", "advice"),
    [
        (
            "self.exp(s)",
            "exp needs a register tensor, got a run-time float32",
            "write math.exp(a) for a number, self.register_tensor(dtype=float32, shape=[…], init=a) for a tile of it",
        ),
        (
            "self.abs(n)",
            "abs needs a register tensor, got a run-time int32",
            "write abs(a) for a number, self.register_tensor(dtype=int32, shape=[…], init=a) for a tile of it",
        ),
        (
            "self.maximum(n, 2)",
            "maximum needs a register tensor, got 2 of type int",
            "write max(a, b) for a number, self.register_tensor(dtype=int32, shape=[…], init=a) for a tile of it",
        ),
        (
            "self.sum(s)",
            "sum needs a register tensor, got a run-time float32",
            "make a tile of it: self.register_tensor(dtype=float32, shape=[…], init=a)",
        ),
        (
            "self.exp(g)",
            "exp needs a register tensor, got a global float32 tensor",
            "load it first: self.load_global(…)",
        ),
        (
            "self.exp(p)",
            "exp needs a register tensor, got a run-time ~float32",
            "load it first: self.load_global(self.global_view(…), …)",
        ),
        ("self.exp(None)", "exp needs a register tensor, got None", None),
    ],
)
def test_who_gives_no_tile_reads_what_to_write(line, message, advice):
    head, *_, last = error_text(KERNEL.format(line=line), 8, 1.0, torch.zeros(8)).splitlines()
    assert head.endswith(f": {message}")
    assert last.strip() == f"help: {advice}" if advice else "help" not in last


def test_what_is_advised_works_on_numbers():
    line = "self.register_tensor(dtype=float32, shape=[8], init=math.exp(s) + max(n, 2))"
    kernel = cell(KERNEL.format(line=line), math=math)["Kernel"]()
    assert function_of(kernel, 8, 1.0, torch.zeros(8))


def tile(dtype=dtypes.float32):
    return RegisterTensor.create(dtype, [8])


@pytest.mark.parametrize(
    ("create", "message", "advice"),
    [
        (
            lambda: ElementwiseUnaryInst.create(tile(), "negg"),
            "there is no function of one tile called 'negg'",
            "did you mean 'neg'?",
        ),
        (
            lambda: ElementwiseBinaryInst.create(tile(), tile(), "maximun"),
            "there is no function of two tiles called 'maximun'",
            "did you mean 'maximum'?",
        ),
        (
            lambda: ReduceInst.create(tile(), 0, "median"),
            "there is no reduction called 'median'",
            "there are sum, max, min, any, all",
        ),
        (
            lambda: ElementwiseUnaryInst.create(tile(), "isnan"),
            "isnan is a function of numbers alone",
            "to have it on tiles, name it in UNARY of tilekit.ir.instructions.elementwise",
        ),
    ],
)
def test_an_unknown_function_is_named_with_the_nearest_one(create, message, advice):
    with pytest.raises(LanguageError) as caught:
        create()
    assert (caught.value.code, caught.value.message, caught.value.diagnostic.help) == ("TK102", message, advice)


OF_MEMORY = """
class Kernel(tilus.Script):
    def __call__(self, n: int32, f: float32, p: ~float32, q: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        g = self.global_view(p, dtype=float32, shape=[n, n])
        x = self.register_tensor(dtype=float32, shape=[8, 16], init=1.0)
        h = self.register_tensor(dtype=float16, shape=[16, 16], init=1.0)
        s = self.shared_tensor(dtype=float32, shape=[8, 16])
        {line}
"""


@pytest.mark.parametrize(
    ("line", "message", "advice"),
    [
        (
            "self.shared_tensor(dtype=float32, shape=[n, 8])",
            "a shared tensor needs a shape of positive compile-time integers, got [n, 8]",
            "make the extents constants: pass them to __init__, or annotate the parameter as int",
        ),
        (
            "self.load_shared(x)",
            "load_shared needs a shared tensor, got a float32[8, 16] tile",
            "make one with self.shared_tensor(dtype=…, shape=…)",
        ),
        (
            "self.exp(s)",
            "exp needs a register tensor, got a shared float32[8, 16] tensor",
            "load it first: self.load_shared(…)",
        ),
        (
            "self.store_shared(s, h)",
            "store_shared: the tile is float16, the shared tensor float32",
            "cast the tile: .to(float32)",
        ),
        (
            "self.store_shared(s, x, dims=[0, 1])",
            "store_shared: dims= says nothing without offsets=",
            "give offsets= too, or neither",
        ),
        (
            "self.store_shared(s, x, offsets=[0])",
            "a slice needs one offset per dimension: the tensor has 2, got 1 offsets",
            None,
        ),
        (
            "self.store_shared(s, x, offsets=[4, 0])",
            "a slice takes elements 4 to 11 of dimension 0, which has only 8",
            None,
        ),
        (
            "self.load_shared(s, out=self.register_tensor(dtype=float32, shape=[16, 8]))",
            "load_shared: the tile has shape [16, 8], the shared tensor [8, 16]",
            "give a slice of the shared tensor that has the shape of the tile",
        ),
        (
            "self.copy_async(s, g, offsets=[0, 0])",
            "copy_async needs a global tensor, got a shared float32[8, 16] tensor",
            "make one with self.global_view",
        ),
        (
            "self.copy_async(g, x, offsets=[0, 0])",
            "copy_async needs a shared tensor, got a float32[8, 16] tile",
            "make one with self.shared_tensor(dtype=…, shape=…)",
        ),
        (
            "self.copy_async(g, s, offsets=[0, 0], evict='first')",
            "there is no eviction priority called 'first'",
            "there are evict_normal, evict_first",
        ),
        (
            "self.copy_async(g, s, offsets=[f, 0])",
            "offsets needs integers or integer expressions, got a run-time float32",
            None,
        ),
        (
            "self.copy_async_wait_group(n)",
            "self.copy_async_wait_group: n needs an integer known at compile time, got a run-time int32",
            None,
        ),
        (
            "self.dot(h, h)",
            "dot does not know in which dtype to sum up the products",
            "give acc_dtype=float32, or the tile to add to",
        ),
        (
            "self.dot(h, h, x)",
            "dot gives float32[16, 16], which cannot be added to a float32[8, 16] tile",
            None,
        ),
        (
            "self.dot(h, h, acc_dtype=float64)",
            "no matrix instruction sums up products of float16 in float64",
            "sum up in float32 or float16, then cast the result",
        ),
        (
            "self.dot(h, h, h, acc_dtype=float32)",
            "dot: acc_dtype is float32, but the given tile is float16",
            "give one of them",
        ),
        (
            "self.dot(x, h, acc_dtype=float32)",
            "dot needs operands of one dtype, got float32 and float16",
            "cast one of them",
        ),
        (
            "self.dot(s, h, acc_dtype=float32)",
            "dot needs a register tensor, got a shared float32[8, 16] tensor",
            "load it first: self.load_shared(…)",
        ),
        (
            "self.transpose(s)",
            "transpose needs a register tensor, got a shared float32[8, 16] tensor",
            "load it first: self.load_shared(…)",
        ),
        (
            "self.squeeze(x, dim=1)",
            "squeeze: dimension 1 of a float32[8, 16] tile has 16 elements, not 1",
            None,
        ),
        (
            "self.squeeze(x, dim=5)",
            "squeeze: dim=[5] are not distinct dimensions of a float32[8, 16] tile",
            None,
        ),
        (
            "self.view(x, dtype=float16)",
            "view: an element of float32 has 32 bits, one of float16 has 16",
            "say with layout= where the elements of the result lie",
        ),
        (
            "self.reshape(x, [8, 8])",
            "reshape: shape [8, 8] has 64 elements, a float32[8, 16] tile has 128",
            None,
        ),
        (
            "self.annotate_layout(g, 3)",
            "annotate_layout needs a tile or a shared tensor, got a global float32 tensor",
            None,
        ),
        (
            "self.annotate_layout(x, 3)",
            "annotate_layout: a float32[8, 16] tile needs a register layout, got 3",
            None,
        ),
        (
            "self.global_tensor(float32, [f], requires_clean=True)",
            "shape needs integers or integer expressions, got a run-time float32",
            None,
        ),
        (
            "self.lock_semaphore(3, 0)",
            "lock_semaphore needs a pointer, got 3 of type int",
            "give s[i].item_ptr() of an int32 tensor s",
        ),
        (
            "self.release_semaphore(p, 0)",
            "release_semaphore needs a pointer to an int32, got ~float32",
            "make the semaphores an int32 tensor, s, and give ~s[i] as s[i].item_ptr()",
        ),
        (
            "self.lock_semaphore(q, 0.5)",
            "value needs integers or integer expressions, got 0.5 of type float",
            None,
        ),
        (
            "self.print_tensor('n', n)",
            "print_tensor needs a tensor, got a run-time int32",
            "print numbers with self.printf",
        ),
        (
            "self.printf('%s', n)",
            "printf: %s in '%s' prints no number",
            "use %d for integers, %f, %e or %g for floats, %p for pointers, %% for a percent sign",
        ),
        (
            "self.printf('%d', x)",
            "printf needs numbers, got a float32[8, 16] tile",
            "print a tensor with self.print_tensor",
        ),
        ("self.assume(n)", "assume needs a condition, got int32", "compare it: self.assume(n % 16 == 0)"),
        ("self.assume(3 < 2)", "this assumption is known to be false", None),
    ],
)
def test_wrong_use_of_memory_is_said_with_what_to_write(line, message, advice):
    args = 8, 1.0, torch.zeros(8, 8), torch.zeros(8, dtype=torch.int32)
    head, *_, last = error_text(OF_MEMORY.format(line=line), *args).splitlines()
    assert head.endswith(f": {message}")
    assert last.strip() == f"help: {advice}" if advice else "help" not in last
