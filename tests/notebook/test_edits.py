# SPDX-License-Identifier: Apache-2.0
"""Rerunning a cell keeps, reports or conflicts with an edit of its kernel; nothing typed is lost."""

import pytest
import torch

import tilekit as tilus
from tests.caches import new_cache
from tilekit import config, float32, int32
from tilekit.events import Stage
from tilekit.jit import observer, session
from tilekit.notebook.edits import NotebookEdits, TileText


@pytest.fixture(autouse=True)
def cache(tmp_path):
    tilus.option.cache_dir(new_cache(tmp_path / "cache"))
    yield tmp_path / "cache"
    config.clear_session_defaults()


@pytest.fixture
def edits(monkeypatch):
    # a shell of another test may have the extension loaded, and so a store of its own
    monkeypatch.setattr(observer, "_listeners", [])
    store = NotebookEdits()
    store.open()
    yield store
    store.close()


def run_cell(factor: float = 2.0):
    """What running the cell again does: a new class of the same name."""

    class Times(tilus.Script):
        def __call__(self, n: int32, x_ptr: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 4
            g = self.global_view(x_ptr, dtype=float32, shape=[n])
            x = self.load_global(g, offsets=[0], shape=[128])
            self.store_global(g, x * factor, offsets=[0])

    session.begin_cell()
    return ran(Times())


def ran(handle):
    x = torch.ones(100)
    handle(100, x)
    return handle.last, float(x[0])


def edit_tile(edits: NotebookEdits, kernel, old: str, new: str) -> None:
    """What the panel of passes does."""
    steps = [step for step in kernel.trace.steps if step.stage is Stage.TILE]
    number = next(number for number, step in enumerate(steps, 1) if step.name == "layout_inference")
    made = TileText(number, "layout_inference", steps[number - 1].after_text)
    kernel.recompile_after(made.name, made.text.replace(old, new))
    edits.store_tile(kernel, made, made.text.replace(old, new), made.text)


def edit(edits: NotebookEdits, kernel, old: str, new: str) -> str:
    text = kernel.source.replace(old, new)
    kernel.recompile(text)
    edits.store(kernel, text)
    return text


def test_a_kernel_that_nobody_edited_has_no_files(edits, cache):
    kernel, value = run_cell()
    assert (value, kernel.patched, kernel.edit_state) == (2.0, False, "clean")
    assert not (cache / "edits").exists()


def test_a_rerun_of_the_same_cell_keeps_the_edit(edits):
    kernel, _ = run_cell()
    edit(edits, kernel, "2.0f", "7.0f")
    again, value = run_cell()
    assert again is not kernel
    assert (value, again.patched, again.edit_state) == (7.0, True, "PATCHED")
    assert any("PATCHED" in line for line in edits.remarks(again))


def test_a_changed_cell_with_an_edit_is_a_conflict_and_the_edit_is_kept(edits, cache):
    kernel, _ = run_cell()
    typed = edit(edits, kernel, "2.0f", "7.0f")
    again, value = run_cell(factor=3.0)
    assert (value, again.patched, again.edit_state) == (3.0, False, "CONFLICT")
    assert [path.read_text() for path in cache.rglob("codegen.cpp.bak")] == [typed]
    assert any("CONFLICT" in line for line in edits.remarks(again))


def test_an_edit_of_a_class_is_none_of_another_that_the_same_cell_makes(edits):
    def scaling(factor):
        class Scaling(tilus.Script):
            def __call__(self, n: int32, x_ptr: ~float32):
                self.attrs.blocks = [1]
                self.attrs.warps = 4
                g = self.global_view(x_ptr, dtype=float32, shape=[n])
                self.store_global(g, self.load_global(g, offsets=[0], shape=[128]) * factor, offsets=[0])

        return Scaling()

    def cell():
        session.begin_cell()
        return [ran(scaling(factor)) for factor in (2.0, 3.0)]

    (first, _), (second, _) = cell()
    edit(edits, first, "2.0f", "7.0f")
    assert [value for _, value in cell()] == [7.0, 3.0]
    edit(edits, second, "3.0f", "8.0f")
    for _ in range(2):
        assert [(value, kernel.edit_state) for kernel, value in cell()] == [(7.0, "PATCHED"), (8.0, "PATCHED")]


def test_a_cell_changed_to_what_the_edit_said_is_in_sync(edits):
    kernel, _ = run_cell()
    other, _ = run_cell(factor=5.0)
    kernel.recompile(other.source)
    edits.store(kernel, other.source)
    again, value = run_cell(factor=5.0)
    assert (value, again.edit_state) == (5.0, "clean")


def test_a_reverted_edit_is_gone_but_not_lost(edits, cache):
    kernel, _ = run_cell()
    typed = edit(edits, kernel, "2.0f", "7.0f")
    kernel.revert()
    edits.revert(kernel)
    again, value = run_cell()
    assert (value, again.patched) == (2.0, False)
    assert typed in [path.read_text() for path in cache.rglob("codegen.cpp.bak*")]


def test_without_the_extension_an_edit_is_never_used(edits):
    kernel, _ = run_cell()
    edit(edits, kernel, "2.0f", "7.0f")
    edits.close()
    try:
        again, value = run_cell()
        assert (value, again.patched) == (2.0, False)
    finally:
        edits.open()


def test_case_88_the_editor_and_the_file_of_a_trace_overwrite_nothing_of_each_other(edits, tmp_path):
    with tilus.tracing(mode="html", dir=tmp_path / "traced"):
        kernel, _ = run_cell()
        typed = edit(edits, kernel, "2.0f", "7.0f")
        (file,) = (tmp_path / "traced").rglob("codegen.cpp")
        assert file.read_text() == typed
        assert run_cell()[1] == 7.0
        on_disk = typed.replace("7.0f", "9.0f")
        file.write_text(on_disk)
        again, value = run_cell()
        assert (value, again.source) == (9.0, on_disk)
        # an editor that was opened before that does not know of it
        newer = typed.replace("7.0f", "11.0f")
        again.recompile(newer)
        (told,) = edits.store(again, newer, seen=typed)
        assert file.read_text() == newer and on_disk in [path.read_text() for path in file.parent.glob("*.bak")]
        assert f"{file.name}.bak" in told
        assert run_cell()[1] == 11.0
        edits.revert(again)
        assert run_cell()[1] == 2.0


def test_case_50_an_edit_of_the_notebook_holds_whether_or_not_it_is_traced(edits, tmp_path):
    kernel, _ = run_cell()
    edit(edits, kernel, "2.0f", "7.0f")
    for _ in range(2):
        with tilus.tracing(mode="html", dir=tmp_path / "traced"):
            assert run_cell()[1] == 7.0
        again, value = run_cell()
        assert (value, again.edit_state) == (7.0, "PATCHED")
    edits.revert(again)
    assert run_cell()[1] == 2.0


def test_case_51_a_rerun_of_the_cell_keeps_an_edit_of_its_tile_ir(edits):
    kernel, _ = run_cell()
    edit_tile(edits, kernel, "f32(2.0)", "f32(7.0)")
    again, value = run_cell()
    assert (value, again.patched, again.edit_state) == (7.0, True, "PATCHED")
    (line,) = edits.remarks(again)
    assert line.startswith("PATCHED from ") and line.endswith("_layout_inference.tir")
    changed, value = run_cell(factor=3.0)
    assert (value, changed.patched, changed.edit_state) == (3.0, False, "CONFLICT")
    assert any("layout_inference.tir.bak" in line for line in edits.remarks(changed))


def test_case_51_an_edit_of_the_tile_ir_ends_with_revert_and_is_not_lost(edits, cache):
    kernel, _ = run_cell()
    edit_tile(edits, kernel, "f32(2.0)", "f32(7.0)")
    again, _ = run_cell()
    again.revert()
    edits.revert(again)
    last, value = run_cell()
    assert (value, last.patched, last.edit_state) == (2.0, False, "clean")
    assert any("f32(7.0)" in path.read_text() for path in cache.rglob("*_layout_inference.tir.bak"))
