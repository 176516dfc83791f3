# SPDX-License-Identifier: Apache-2.0
"""The tile IR after a pass is edited in the panel of passes, and the kernel is compiled on from there."""

import queue

import pytest
import torch

import tilekit as tilus
from tests.caches import new_cache
from tilekit import config, float32, int32
from tilekit.notebook.edits import NotebookEdits
from tilekit.notebook.panels.desk import Desk
from tilekit.notebook.panels.passes import PassPanel


@pytest.fixture(autouse=True)
def cache(tmp_path):
    tilus.option.cache_dir(new_cache(tmp_path / "cache"))
    yield
    config.clear_session_defaults()


@pytest.fixture
def opened():
    """A kernel that was called, its tensor, and the panels of its passes and its source."""

    class Half(tilus.Script):
        def __call__(self, n: int32, x_ptr: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 4
            g = self.global_view(x_ptr, dtype=float32, shape=[n])
            self.store_global(g, self.load_global(g, offsets=[0], shape=[128]) * 0.5, offsets=[0])

    handle, x = Half(), torch.ones(100)
    handle(100, x)
    desk = Desk([handle.last], NotebookEdits())
    return handle, x, desk.bar.panel("passes", 0), desk.bar.panel("source", 0), desk


def step(panel: PassPanel, name: str):
    return next(step for step in panel.steps.steps if step.title == name)


def text_of(panel: PassPanel, name: str) -> str:
    return "\n".join(panel.steps.sides(step(panel, name))[1])


def edited(panel: PassPanel, name: str, old: str, new: str) -> None:
    """What the front end asks for, and the wait until it is done."""
    text = text_of(panel, name)
    assert old in text
    panel._edit(step(panel, name).seq, text.replace(old, new)).result(timeout=60)


def test_case_51_an_edit_in_the_panel_runs_and_shows_what_the_later_passes_made_of_it(opened):
    handle, x, passes, source, desk = opened
    edited(passes, "layout_inference", "f32(0.5)", "f32(4.0)")
    assert passes.status.startswith("PATCHED") and passes.verdict == "differs" and not passes.busy
    assert "x_ptr[0] is 2.0 and was 0.25" in passes.comparison
    assert desk.bar.kernels[0]["patched"] and handle.edit_state == "PATCHED"
    assert passes.view == f"p={step(passes, 'edit_of_layout_inference').index}"
    assert "f32(4.0)" in text_of(passes, "lower_load_store")
    assert "4.0f" in source.generated and source.text == source.generated, "the source panel follows"
    x.fill_(1.0)
    handle(100, x)
    assert (x == 4).all()


def test_case_51_an_edit_is_edited_again_and_ends_with_the_text_of_the_pass(opened):
    handle, _, passes, _, _ = opened
    made = text_of(passes, "layout_inference")
    edited(passes, "layout_inference", "f32(0.5)", "f32(4.0)")
    edited(passes, "edit_of_layout_inference", "f32(4.0)", "f32(8.0)")
    assert "8.0f" in handle.source
    passes._edit(step(passes, "layout_inference").seq, made).result(timeout=60)
    assert not handle.patched and passes.status == "nothing is edited"


def test_case_51_a_text_that_does_not_parse_is_marked_at_its_place(opened):
    handle, _, passes, _, _ = opened
    before = handle.source
    edited(passes, "layout_inference", "f32(0.5)", "f32(0.5")
    assert passes.verdict == "failed" and "the last good build stays in place" in passes.status
    (marker,) = passes.markers
    text = text_of(passes, "layout_inference").replace("f32(0.5)", "f32(0.5")
    assert "f32(0.5" in text.split("\n")[marker["line"] - 1] and marker["column"] > 0
    assert f"{marker['line']}:{marker['column']}: " in passes.plain()
    assert handle.source == before and not passes.busy


@pytest.mark.parametrize("by", ["passes", "source"])
def test_case_51_revert_in_either_panel_ends_every_edit(opened, by):
    handle, _, passes, source, _ = opened
    generated = handle.source
    edited(passes, "layout_inference", "f32(0.5)", "f32(4.0)")
    if by == "passes":
        passes._revert().result(timeout=60)
    else:
        source._handle_custom_msg({"kind": "revert"}, [])
        passes._revert().result(timeout=60)  # behind it
    assert (handle.source, handle.patched) == (generated, False)
    assert source.text == source.generated == generated
    assert not [step for step in passes.steps.steps if step.name.startswith("edit_of")]


def test_only_tile_passes_can_be_edited(opened):
    _, _, passes, _, _ = opened
    named = {step.seq: step for step in passes.steps.steps}
    assert {named[seq].base_phase for seq in passes.editable} == {"tile"}
    assert "verify" not in [named[seq].name for seq in passes.editable]
    assert len(passes.editable) == 11


def test_a_message_of_the_front_end_is_answered(opened):
    _, _, passes, _, _ = opened
    sent = []
    passes.send = lambda content, buffers=(): sent.append((content, buffers))
    passes._handle_custom_msg({"kind": "journal"}, [])
    assert sent[0][0] == {"kind": "journal", "goes_on": True} and len(sent[0][1]) == 1
    seq, text = step(passes, "layout_inference").seq, text_of(passes, "layout_inference")
    passes._handle_custom_msg({"kind": "edit", "seq": seq, "text": text.replace("f32(0.5)", "f32(4.0)")}, [])
    assert passes.busy
    passes._revert().result(timeout=60)
    assert not passes.busy and len(sent) == 3


def test_machine_code_is_handed_over_when_somebody_asks_for_it(opened):
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")
    _, _, passes, _, _ = opened
    sent: queue.Queue[dict[str, object]] = queue.Queue()
    passes.send = lambda content, buffers=(): sent.put(content)
    passes._handle_custom_msg({"kind": "machine code"}, [])
    assert sent.get(timeout=60) == {"kind": "journal", "goes_on": False}
    assert [step.base_phase for step in passes.steps.steps if step.language == "ptx"][:2] == ["ptx", "ptxas"]


def test_case_88_an_edited_source_stands_beside_the_generated_one_in_the_passes(opened):
    handle, _, passes, source, desk = opened
    generated = handle.source
    text = generated.replace("0.5f", "(0.25f + 0.25f)")
    desk._sources[0].recompile(text).result(timeout=60)
    assert source.verdict == "same"
    shown = next(step.source for step in passes.steps.steps if step.base_phase == "codegen")
    run = passes.steps._recorded[0]
    assert ("\n".join(run.lines(shown.generated)), "\n".join(run.lines(shown.compiled))) == (generated, text)
    assert shown.is_edited and shown.tag == "PATCHED"
    desk._sources[0].revert().result(timeout=60)
    assert next(step.source for step in passes.steps.steps if step.base_phase == "codegen") is None
