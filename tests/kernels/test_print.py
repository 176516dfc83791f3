# SPDX-License-Identifier: Apache-2.0
"""Kernels that print say the same on every machine."""

import pytest
import torch

import tilekit as tilus
from tests.kernels.machines import on_gpu, simulate
from tilekit import float16, float32, int8, int32, int64, uint8
from tilekit.ir import evaluator
from tilekit.jit.evaluated import as_memory


class Tensors(tilus.Script):
    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        gx = self.global_view(x_ptr, dtype=float32, shape=[2, n])
        tile = self.load_global(gx, offsets=[0, 1], shape=[2, 4])
        shared = self.shared_tensor(dtype=float32, shape=[2, 4])
        self.store_shared(shared, tile * 2.0)
        self.sync()
        self.print_tensor("100 % of a tile", tile)
        self.print_tensor("shared, turned", shared.transpose(), fmt="%+.2e")
        self.print_tensor("global", gx, fmt="<%6.2f>")
        self.print_tensor("none of", self.global_view(y_ptr, dtype=int32, shape=[n - n]))
        self.print_tensor("half", tile.to(float16))
        self.print_tensor("int8", tile.to(int8))
        self.print_tensor("uint8", tile.to(uint8))
        self.print_tensor("int64", tile.to(int64) * 1000000000000)
        self.print_tensor("bool", tile > 1.0)
        self.print_tensor("sum", self.sum(tile))


class Numbers(tilus.Script):
    def __call__(self, n: int32, wide: int64, x: float32, p: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        self.printf("%d%% of %5d and %x: %.3f, %g\n", n, wide, n, x, x * 0.5)
        if n > 100:
            self.printf("never\n")


def print_evaluated(handle, args) -> None:
    """Print what the evaluator says that the kernel prints."""
    program = handle._jit_instance_for(*args).transpiled_programs[0]
    print(evaluator.run(program, [as_memory(arg) for arg in args]), end="")


EVERYWHERE = [
    pytest.param(print_evaluated, id="evaluator"),
    pytest.param(simulate, id="simulator"),
    pytest.param(on_gpu, id="gpu", marks=pytest.mark.gpu),
]

X = torch.tensor([[9.0, 0.5, 1.5, -2.25, 3.0], [9.0, 0.0, -0.0, 100.0, 1e6]])

PRINTED = """\
100 % of a tile
[[0.5, 1.5, -2.25, 3],
 [0, -0, 100, 1e+06]]
shared, turned
[[+1.00e+00, +0.00e+00],
 [+3.00e+00, -0.00e+00],
 [-4.50e+00, +2.00e+02],
 [+6.00e+00, +2.00e+06]]
global
[[<  9.00>, <  0.50>, <  1.50>, < -2.25>, <  3.00>],
 [<  9.00>, <  0.00>, < -0.00>, <100.00>, <1000000.00>]]
none of
[]
half
[[0.5, 1.5, -2.25, 3],
 [0, -0, 100, inf]]
int8
[[0, 1, -2, 3],
 [0, 0, 100, 127]]
uint8
[[0, 1, 0, 3],
 [0, 0, 100, 255]]
int64
[[0, 1000000000000, -2000000000000, 3000000000000],
 [0, 0, 100000000000000, 1000000000000000000]]
bool
[[0, 1, 0, 1],
 [0, 0, 1, 1]]
sum
1.0001e+06
"""


@pytest.mark.parametrize("run", EVERYWHERE)
def test_tensors_print_row_by_row(run, capfd):
    run(Tensors(), (5, X.clone(), torch.zeros(1, dtype=torch.int32)))
    assert capfd.readouterr().out == PRINTED


@pytest.mark.parametrize("run", EVERYWHERE)
def test_every_thread_prints_its_line(run, capfd):
    run(Numbers(), (-3, 1 << 40, 2.75, torch.zeros(1, dtype=torch.int32)))
    assert capfd.readouterr().out == "-3% of 1099511627776 and fffffffd: 2.750, 1.375\n" * 32


class Reader(tilus.Script):
    """Reads memory in no other way than by printing it and as single numbers."""

    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        self.print_tensor("x", self.global_view(x_ptr, dtype=float32, shape=[n]))
        y = self.global_view(y_ptr, dtype=int32, shape=[n])
        tile = self.register_tensor(dtype=int32, shape=[1], init=y[n - 1].item() * 2)
        self.print_tensor("twice the last of y", tile)


@pytest.mark.parametrize("run", EVERYWHERE)
def test_memory_that_is_only_printed_is_read(run, capfd):
    run(Reader(), (3, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4, 5, 6], dtype=torch.int32)))
    assert capfd.readouterr().out == "x\n[1, 2, 3]\ntwice the last of y\n[12]\n"
