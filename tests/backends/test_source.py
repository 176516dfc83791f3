# SPDX-License-Identifier: Apache-2.0
"""What holds of the source and of the machine code of every kernel: how it reads memory, and where its tiles live."""

import itertools
import re
from functools import cache

import pytest
import torch

import tilekit as tilus
from tests.kernels.random_kernels import random_kernel
from tests.kernels.test_elementwise import Choose, Integers, unary_kernel
from tests.kernels.test_layer_norm import LAYER_NORM
from tests.kernels.test_reduce import AnyAll, reduce_kernel
from tests.kernels.test_softmax import SOFTMAX
from tests.kernels.test_vector_add import ADD
from tilekit import bfloat16, drivers, float16, float32, float64, int8, int32, spec, target
from tilekit.cpusim.build import INCLUDE

DTYPES = {str(theirs).removeprefix("torch."): theirs for theirs in ADD}
OURS = {"float32": float32, "float16": float16, "bfloat16": bfloat16}


def vector_add(dtype, n=4096):
    return ADD[DTYPES[dtype]], (n, *[spec(OURS[dtype], (n,))] * 3)


def softmax(dtype, n=1024):
    return SOFTMAX[DTYPES[dtype]], (64, n, *[spec(OURS[dtype], (64, n))] * 2)


def layer_norm(dtype, n=1024):
    matrix, vector = spec(OURS[dtype], (64, n)), spec(OURS[dtype], (n,))
    return LAYER_NORM[DTYPES[dtype]], (64, n, matrix, vector, vector, matrix, 1e-5)


def reduction(op, shape, dim, dtype, warps):
    kernel, kept = reduce_kernel(op, shape, dim, dtype, warps)
    return kernel, (spec(dtype, shape), spec(dtype, kept))


KERNELS = {
    **{f"vector_add {dtype}": vector_add(dtype) for dtype in OURS},
    **{f"softmax {dtype}": softmax(dtype) for dtype in OURS},
    **{f"layer_norm {dtype}": layer_norm(dtype) for dtype in OURS},
    "vector_add ragged": vector_add("float16", 4095),
    "softmax ragged": softmax("float16", 1023),
    "layer_norm ragged": layer_norm("float16", 1023),
    "sum through memory": reduction("sum", [96, 10], [0], float32, 3),
    "sum of doubles": reduction("sum", [16, 64], [0, 1], float64, 4),
    "max of bytes": reduction("max", [4, 128], [1], int8, 4),
    "any and all": (AnyAll(), (spec(float32, (8, 64)), spec(int32, (2, 8)))),
    "integers": (Integers(), (500, *[spec(int32, (500,))] * 2, spec(int32, (10, 500)))),
    "choices": (Choose(), (200, *[spec(float32, (200,))] * 2, spec(float32, (7, 200)))),
    "exp": (unary_kernel("exp", float16), (300, *[spec(float16, (300,))] * 2)),
}

every_kernel = pytest.mark.parametrize("name", KERNELS)


@cache
def source_of(name, to=target.DEFAULT):
    handle, args = KERNELS[name]
    program = handle._jit_instance_for(*args).transpiled_programs[0]
    source, _ = drivers.generate_source(program, to)
    return source.text


def code_of(text):
    """The lines without comments."""
    return [line.strip() for line in text.splitlines() if not line.strip().startswith("//")]


@every_kernel
def test_pointers_may_overlap(name):
    assert "restrict" not in source_of(name)


def assert_registers_are_found_without_the_thread(text):
    """An index is made of numbers and of unrolled loop variables, so that a compiler sees a number each time.

    Loops that are not unrolled run over tiles that no thread has the registers for.
    """
    code = code_of(text)
    arrays = {m[1] for line in code if (m := re.fullmatch(r"\w+ (\w+)\[\d+\];", line))}
    counted = re.compile(r"for \(int32_t (\w+) = 0; \1 < (\d+); \+\+\1\)")
    loops: set[str] = set()
    for before, line in itertools.pairwise(code):
        if (loop := counted.match(line)) and (before == "#pragma unroll" or int(loop[2]) > 255):
            loops.add(loop[1])
    for line in code:
        for array, index in re.findall(r"(\w+)\[([^\[\]]+)\]", line):
            words = set(re.findall(r"[A-Za-z_]\w*", index))
            assert array not in arrays or words <= loops, line
    return arrays


@every_kernel
def test_no_register_is_found_by_the_thread_number(name):
    assert assert_registers_are_found_without_the_thread(source_of(name))


@pytest.mark.parametrize("seed", range(12))
def test_no_register_of_a_random_kernel_is_found_by_the_thread_number(seed):
    kernel = random_kernel(seed)
    program = kernel.handle()._jit_instance_for(*kernel.arguments()).transpiled_programs[0]
    source, _ = drivers.generate_source(program, target.DEFAULT)
    assert_registers_are_found_without_the_thread(source.text)


def accesses(name):
    """The vector loads and stores in the source: how many bytes each moves."""
    found = re.findall(r"tk::(load|store)_global_(?:or_zero_)?(\d+)\(", "\n".join(code_of(source_of(name))))
    return [(kind, int(nbytes)) for kind, nbytes in found]


@pytest.mark.parametrize("dtype", OURS)
def test_aligned_arguments_move_in_the_widest_vectors(dtype):
    # 512 elements on 128 threads: four for each
    width = 4 * OURS[dtype].nbytes
    assert accesses(f"vector_add {dtype}") == [("load", width), ("load", width), ("store", width)]
    assert {nbytes for _, nbytes in accesses(f"softmax {dtype}")} == {min(16, 8 * OURS[dtype].nbytes)}
    assert {nbytes for _, nbytes in accesses(f"layer_norm {dtype}")} == {min(16, 16 * OURS[dtype].nbytes)}


@pytest.mark.parametrize("kernel", ["softmax", "layer_norm"])
def test_rows_that_begin_anywhere_move_one_by_one(kernel):
    rows = [access for access in accesses(f"{kernel} ragged") if access[1] != 2]
    assert rows == []


def test_a_vector_that_ends_anywhere_moves_whole_or_one_by_one():
    assert accesses("vector_add ragged") == [("load", 8), ("load", 8), ("store", 8)]


def test_a_pointer_that_is_not_aligned_moves_one_by_one():
    handle, (n, *_) = KERNELS["vector_add float16"]
    x = torch.zeros(n + 1, dtype=torch.float16)
    program = handle._jit_instance_for(n, x[1:], x[1:], x[1:]).transpiled_programs[0]
    source, _ = drivers.generate_source(program, target.DEFAULT)
    assert "tk::" not in "".join(code_of(source.text)[1:])


class Odd(tilus.Script):
    """A tile whose extents share no factor with the number of threads: each of them holds all of it."""

    def __call__(self, n: int32, x: ~float32, y: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        t = self.load_global(self.global_view(x, dtype=float32, shape=[n, n]), offsets=[0, 0], shape=[33, 33])
        self.store_global(self.global_view(y, dtype=float32, shape=[n]), self.sum(t, dim=1), offsets=[0])


def test_loops_over_more_registers_than_there_are_stay_loops():
    program = Odd()._jit_instance_for(33, *[spec(float32, (33, 33))] * 2).transpiled_programs[0]
    source, _ = drivers.generate_source(program, target.DEFAULT)
    assert assert_registers_are_found_without_the_thread(source.text)
    code = code_of(source.text)
    long = [before for before, line in itertools.pairwise(code) if re.search(r"r < 1089", line)]
    assert long and "#pragma unroll" not in long


class Views(tilus.Script):
    """One tile of each form through views of many."""

    def __call__(self, n: int32, x: ~float16, y: ~float16):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        rows = self.global_view(x, dtype=float16, shape=[16, n])
        columns = self.global_view(x, dtype=float16, shape=[n, 16], strides=[1, n])
        apart = self.global_view(x, dtype=float16, shape=[16, n], strides=[2 * n, 2])
        gy = self.global_view(y, dtype=float16, shape=[4, 16, n])
        self.store_global(gy, self.load_global(rows, offsets=[0, 8], shape=[16, 32]), offsets=[0, 0, 0])
        self.store_global(gy, self.load_global(rows, offsets=[0, 2], shape=[16, 32]), offsets=[1, 0, 0])
        self.store_global(gy, self.load_global(apart, offsets=[0, 8], shape=[16, 32]), offsets=[2, 0, 0])
        self.store_global(gy, self.load_global(columns, offsets=[8, 0], shape=[32, 16]), offsets=[3, 0, 0], dims=[2, 1])


def test_vectors_follow_the_dimension_that_is_contiguous():
    program = Views()._jit_instance_for(64, spec(float16, (9999,)), spec(float16, (9999,))).transpiled_programs[0]
    source, _ = drivers.generate_source(program, target.DEFAULT)
    found = re.findall(r"tk::load_global_\w*?(\d+)\(", "\n".join(code_of(source.text)))
    assert found == ["16", "4", "16"]


# -------------------------------------------------------------------------------------------------------- machine code


@pytest.mark.parametrize("to", [target.SM80, target.SM89, target.SM90A], ids=str)
@every_kernel
def test_tiles_live_in_registers(name, to, tmp_path_factory):
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")
    from tilekit.toolchain import nvrtc
    from tilekit.toolchain.binary import Options

    headers = tmp_path_factory.getbasetemp() / "headers"
    binary = nvrtc.compile(source_of(name, to), to, include=INCLUDE, options=Options(headers))
    assert (binary.stack_bytes, binary.spill_bytes) == (0, 0), binary.log
    assert binary.registers <= 128
