# SPDX-License-Identifier: Apache-2.0
"""Traced and edited kernels on a GPU: what was edited is what runs, the binary says so, and bisection takes tensors."""

from pathlib import Path

import pytest
import torch

import tilekit
from tests.caches import in_force, new_cache
from tilekit import float32, int32
from tilekit.ir.functors import IRRewriter
from tilekit.jit import observer
from tilekit.runtime.compiled import CUBIN
from tilekit.tools.lower_trace.edit_sink import EditSink
from tilekit.tools.lower_trace.edit_table import Policy
from tilekit.tools.lower_trace.edits import EditStore
from tilekit.transforms import Pass, after

pytestmark = pytest.mark.gpu

N = 1000


@pytest.fixture(autouse=True)
def cache(tmp_path):
    with in_force(new_cache(tmp_path / "cache")):
        yield


def doubling():
    class Doubling(tilekit.Script):
        def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32):
            self.attrs.blocks = [(n + 127) // 128]
            self.attrs.warps = 4
            at = self.blockIdx.x * 128
            x = self.load_global(self.global_view(x_ptr, dtype=float32, shape=[n]), offsets=[at], shape=[128])
            self.store_global(self.global_view(y_ptr, dtype=float32, shape=[n]), x * 2.0, offsets=[at])

    return Doubling()


def ran(folder: Path):
    """A new class of the same name, called while edits in the folder count; the kernel, and what it multiplies by."""
    x, y = torch.randn(N, device="cuda"), torch.full((N,), float("nan"), device="cuda")

    def sink(kernel):
        return EditSink(EditStore(folder).folder(kernel), Policy.REGENERATE, say=lambda _: None)

    observer.listen(sink)
    try:
        handle = doubling()
        handle(N, x, y)
    finally:
        observer.unlisten(sink)
    factor = (y / x)[0].item()
    assert torch.equal(y, x * factor)
    return handle.last, factor


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_an_edited_source_runs_and_its_cubin_is_marked(tmp_path):
    kernel, factor = ran(tmp_path)
    assert factor == 2.0 and b"tilekit: patched" not in kernel.compiled.entry.files[CUBIN]
    edit(tmp_path / "codegen.cpp", "2.0f", "4.0f")
    kernel, factor = ran(tmp_path)
    assert (factor, kernel.patched, kernel.edit_state) == (4.0, True, "PATCHED")
    assert b"tilekit: patched" in kernel.compiled.entry.files[CUBIN]


def test_an_edited_tile_program_runs_and_its_cubin_is_marked(tmp_path):
    ran(tmp_path)
    (file,) = tmp_path.glob("ir/??_layout_inference.tir")
    edit(file, "f32(2.0)", "f32(8.0)")
    kernel, factor = ran(tmp_path)
    assert (factor, kernel.edit_state) == (8.0, "PATCHED")
    assert b"tilekit: patched" in kernel.compiled.entry.files[CUBIN]


def test_a_kernel_that_ran_is_compiled_on_from_an_edited_tile_program_and_back():
    x, y = torch.randn(N, device="cuda"), torch.empty(N, device="cuda")
    handle = doubling()
    for _ in range(3):  # the short ways are taken, too
        handle(N, x, y)
    kernel = handle.last
    step = next(step for step in kernel.trace.steps if step.name == "layout_inference")
    kernel.recompile_after("layout_inference", step.after_text.replace("f32(2.0)", "f32(3.0)"))
    handle(N, x, y)
    assert torch.equal(y, x * 3)
    kernel.revert()
    handle(N, x, y)
    assert torch.equal(y, x * 2)


def test_a_bisection_takes_tensors_of_a_gpu_and_leaves_them():
    class Next(IRRewriter):
        def visit_LoadGlobalInst(self, inst):
            return inst.replace(offsets=tuple(offset + 1 for offset in inst.offsets))

    class NextPass(Pass):
        def process_function(self, func):
            return Next().visit(func)

    x, y = torch.randn(N, device="cuda"), torch.zeros(N, device="cuda")
    with tilekit.passes(after("copy_elimination", NextPass())):
        found = doubling().bisect(N, x, y)
    assert found.culprit == "next"
    assert not y.any() and doubling().bisect(N, x, y).is_good


def test_a_kernel_shows_its_ptx_and_its_machine_code():
    handle = doubling()
    handle(N, torch.randn(N, device="cuda"), torch.empty(N, device="cuda"))
    assert ".visible .entry" in handle.ptx and "ld.global" in handle.ptx
    assert "LDG" in handle.sass and "STG" in handle.sass
