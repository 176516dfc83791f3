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
