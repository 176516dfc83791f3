# SPDX-License-Identifier: Apache-2.0
"""What holds of the source of kernels that use shared memory and tensor cores: it reads as if written by hand."""

import re
from functools import cache

import pytest
import torch

import tilekit as tilus
from tests.backends.test_source import assert_registers_are_found_without_the_thread, code_of
from tests.kernels import test_resources
from tests.kernels.first import first_kernel
from tests.kernels.matmul import scripts
from tilekit import drivers, float16, float32, int32, spec, target

KERNELS = {**test_resources.TENSOR_CORES, "transpose": test_resources.OTHERS["transpose"]}
every_kernel = pytest.mark.parametrize("name", KERNELS)


@cache
def source_of(name, to=target.DEFAULT):
    handle, arguments = KERNELS[name]
    program = handle._jit_instance_for(*arguments()).transpiled_programs[0]
    source, _ = drivers.generate_source(program, to)
    return source.text


def calls(name, function):
    return re.findall(rf"tk::{function}[\w<>, ]*\(", "\n".join(code_of(source_of(name))))


@every_kernel
def test_no_register_is_found_by_the_thread_number(name):
    assert_registers_are_found_without_the_thread(source_of(name))


@every_kernel
def test_what_depends_on_the_thread_alone_is_computed_before_the_loops(name):
    code = code_of(source_of(name))
    for line in code:
        for pointer, offset in re.findall(r"&(\w+)\[((?:[^\[\]])+)\]", line):
            if re.search(rf"tk::(ldmatrix|load_shared|store_shared|cp_async)\w*\(.*&{pointer}\[", line) and any(
                re.fullmatch(rf"\w+ \*{pointer} = tk::shared_ptr<.*", other) for other in code
            ):
                assert "tid" not in offset, line


@pytest.mark.parametrize("name", ["matmul_v3", "matmul_v4", "matmul_v6_linear", "matmul_tf32", "flash", "paged"])
def test_what_a_thread_adds_to_addresses_of_a_tile_is_added_once(name):
    offsets = re.findall(r"tk::cp_async_\w+\([^,]*, &\w+\[([^\[\]]+)\]", source_of(name))
    assert len(offsets) >= 2
    assert {word for offset in offsets for word in re.findall(r"[A-Za-z_]\w*", offset)} <= {"int64_t", "r"}


def test_a_slice_inside_the_period_of_a_swizzle_is_a_variable_of_the_thread():
    code = "\n".join(code_of(source_of("matmul_v6")))
    assert re.search(r"int32_t sa_begin = sa_swizzled\w* \^ \d+;|begin = sa_swizzled\w* \^", code)
    assert ">> 3" not in code[code.rindex("for (int32_t stage") :]


@every_kernel
def test_a_barrier_stands_where_the_kernel_asks_for_one_and_nowhere_else(name):
    text = source_of(name)
    asked = len(re.findall(r"^ *// sync\(\)$", text, re.MULTILINE))
    exchanged = len(re.findall(r"\*workspace(_\d+)? = ", text))
    reused = text.count("this memory was something else's")
    assert text.count("__syncthreads()") == asked + exchanged + reused
    assert reused <= exchanged


@pytest.mark.parametrize("name", ["matmul_v3", "matmul_v4", "matmul_v5", "flash", "flash_causal", "matmul_gelu"])
def test_aligned_copies_move_16_bytes(name):
    assert {"tk::cp_async_16(", "tk::cp_async_or_zero_16("} >= set(calls(name, "cp_async_(?:or_zero_)?[0-9]+")) != set()


@pytest.mark.parametrize("name", ["matmul_v1", "matmul_v2", "matmul_v3", "matmul_v4", "matmul_v4_linear", "matmul_v5"])
def test_operands_are_loaded_four_matrices_at_a_time(name):
    assert {call[:-1].removesuffix("_trans") for call in calls(name, "ldmatrix")} == {"tk::ldmatrix_x4"}
    assert calls(name, "load_shared") == []


@every_kernel
def test_a_dot_is_one_call(name):
    text = source_of(name)
    assert len(calls(name, "mma_tile")) == len(re.findall(r"^ *//.* = dot\(", text, re.MULTILINE))


def test_a_slice_of_stages_is_a_pointer():
    assert "half *t = &sa[stage * " in source_of("matmul_v4")


def generated(handle, *args, to=target.DEFAULT):
    program = handle._jit_instance_for(*args).transpiled_programs[0]
    return drivers.generate_source(program, to)[0].text


class Epilogue(tilus.Script):
    """A product that goes through shared memory on its way out."""

    def __call__(self, a_ptr: ~float16, b_ptr: ~float16, c_ptr: ~float16):
        self.attrs.blocks = [1]
        self.attrs.warps = 4
        ga = self.global_view(a_ptr, dtype=float16, shape=[64, 64])
        gb = self.global_view(b_ptr, dtype=float16, shape=[64, 64])
        a = self.load_global(ga, offsets=[0, 0], shape=[64, 64])
        b = self.load_global(gb, offsets=[0, 0], shape=[64, 64])
        c = self.dot(a, b, acc_dtype=float32).to(float16)
        sc = self.shared_tensor(dtype=float16, shape=[64, 64])
        self.store_shared(sc, c)
        self.sync()
        gc = self.global_view(c_ptr, dtype=float16, shape=[64, 64])
        self.store_global(gc, self.load_shared(sc), offsets=[0, 0])


EPILOGUE = Epilogue(), *[spec(float16, (64, 64))] * 3


def test_hopper_stores_matrices_and_ampere_words():
    hopper, ampere = (generated(*EPILOGUE, to=to) for to in (target.SM90A, target.SM80))
    assert "tk::stmatrix_x4(" in hopper and "tk::store_shared" not in hopper
    assert "tk::store_shared_4(" in ampere and "stmatrix" not in ampere
    for text in (hopper, ampere):
        assert "tk::load_shared_16(" in text and "tk::store_global_16(" in text


def test_a_result_goes_out_through_shared_memory_without_conflicts():
    a, b = torch.randn(64, 64).half(), torch.randn(64, 64).half()
    c = torch.empty(64, 64).half()
    kernel = Epilogue()
    kernel(a, b, c)
    reference = a.double() @ b.double()
    assert (c.double() - reference).norm() / reference.norm() < 5e-4
    assert kernel.last.last_run.counters["bank_conflicts"] == 0


class Twice(tilus.Script):
    """Two shared tensors, one after the other; the second takes the place of the first."""

    def __init__(self, synced):
        super().__init__()
        self.synced = synced

    def __call__(self, x: ~int32, y: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        tile = self.load_global(self.global_view(x, dtype=int32, shape=[256]), offsets=[0], shape=[256])
        for turn in range(3):
            first = self.shared_tensor(dtype=int32, shape=[256])
            self.store_shared(first, tile)
            self.sync()
            tile = self.load_shared(first) + turn
            if self.synced:
                self.sync()
            self.free_shared(first)
            second = self.shared_tensor(dtype=int32, shape=[256])
            self.store_shared(second, tile)
            self.sync()
            tile = self.load_shared(second) * 3
            self.free_shared(second)
        self.store_global(self.global_view(y, dtype=int32, shape=[256]), tile, offsets=[0])


@pytest.mark.parametrize(("synced", "added"), [(False, 2), (True, 1)])
def test_memory_that_is_used_again_gets_the_barriers_that_are_missing(synced, added):
    kernel = Twice(synced)
    x, y = torch.randint(100, (256,), dtype=torch.int32), torch.empty(256, dtype=torch.int32)
    kernel(x, y)
    wanted = x
    for turn in range(3):
        wanted = (wanted + turn) * 3
    assert torch.equal(y, wanted)
    assert kernel.last.compiled.manifest.shared_bytes == 1024
    assert kernel.last.source.count("this memory was something else's") == added


def test_the_layouts_of_shared_tensors_are_shown_with_who_and_why():
    tiles = [spec(float16, shape) for shape in ((128, 64), (64, 64), (128, 64))]
    kernel = first_kernel(scripts.pipelined(), (128, 64, 64, *tiles))
    rows = {row.tensor: row for row in kernel.layouts}
    assert rows["sa"].type == "shared f16[4, 128, 32]"
    assert rows["sa"].layout == "shared_row_major_swizzle([4, 128, 32], 2)"
    assert rows["sa"].why == "so that no two threads want one bank at a time"
    assert rows["acc"].chosen_by == "dot"


@pytest.mark.parametrize("name", ["matmul_v4", "matmul_v5", "int8_matmul", "matmul_tf32", "flash_causal"])
def test_ada_too_has_registers_for_all_tiles(name):
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")
    handle, arguments = KERNELS[name]
    facts = first_kernel(handle, arguments(), "sm_89").compiled.facts
    assert 0 < facts.registers <= 255
    assert (facts.spill_bytes, facts.stack_bytes) == (0, 0)
