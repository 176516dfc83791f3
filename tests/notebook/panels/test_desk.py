# SPDX-License-Identifier: Apache-2.0
"""What the source panel asks for is done to the kernel, and told back."""

import time

import pytest
import torch

import tilekit as tilus
from tests.caches import new_cache
from tilekit import config, float32, int32
from tilekit.diag import KernelError
from tilekit.jit import observer, session
from tilekit.jit.kernel import Kernel
from tilekit.notebook.edits import NotebookEdits
from tilekit.notebook.panels import at_work
from tilekit.notebook.panels.desk import Desk, SourceDesk


class Half(tilus.Script):
    def __init__(self, salt: int):
        super().__init__()
        self.salt = salt

    def __call__(self, n: int32, x_ptr: ~float32):
        self.attrs.blocks = [(n + 127) // 128]
        self.attrs.warps = 4
        at = self.blockIdx.x * 128
        g = self.global_view(x_ptr, dtype=float32, shape=[n])
        self.store_global(g, self.load_global(g, offsets=[at], shape=[128]) * 0.5, offsets=[at])


@pytest.fixture(autouse=True)
def cache(tmp_path):
    tilus.option.cache_dir(new_cache(tmp_path / "cache"))
    yield
    config.clear_session_defaults()


@pytest.fixture
def opened(request):
    handle = Half(abs(hash(request.node.name)) % 1000)
    x = torch.ones(300)
    handle(300, x)
    desk = Desk([handle.last], NotebookEdits())
    return handle, x, SourceDesk(handle.last, "Half", desk), desk


def ask(panel, **content):
    panel._handle_custom_msg(content, [])


def settled(future):
    future.result(timeout=60)


def test_case_88_a_harmless_edit_says_same_result(opened):
    _, _, source, desk = opened
    settled(source.recompile(source.panel.text.replace("0.5f", "(0.25f + 0.25f)")))
    panel = source.panel
    assert panel.verdict == "same"
    assert panel.comparison.startswith("same result as the generated kernel on the last arguments · generated ")
    assert panel.status.startswith("PATCHED")
    assert desk.bar.kernels[0]["patched"]
    assert not panel.busy


def test_case_88_a_wrong_edit_says_where_it_differs_and_later_calls_run_it(opened):
    handle, x, source, _ = opened
    settled(source.recompile(source.panel.text.replace("0.5f", "2.0f")))
    assert source.panel.verdict == "differs"
    assert "x_ptr[0] is" in source.panel.comparison
    x.fill_(1.0)
    handle(300, x)
    assert (x == 2).all()
    assert "PATCHED" in handle.last.summary()


def test_case_88_an_error_becomes_a_marker_at_its_line(opened):
    handle, x, source, _ = opened
    bad = source.panel.text.replace("0.5f", "0.5f $")
    line = next(i for i, text in enumerate(bad.splitlines(), start=1) if "$" in text)
    settled(source.recompile(bad))
    assert source.panel.verdict == "failed"
    assert source.panel.markers[0]["line"] == line
    assert "the last good build stays in place" in source.panel.status
    x.fill_(1.0)
    handle(300, x)
    assert (x == 0.5).all()


def test_revert_goes_back_to_the_generated_source(opened):
    handle, _, source, desk = opened
    generated = source.panel.generated
    settled(source.recompile(generated.replace("0.5f", "2.0f")))
    settled(source.revert())
    assert source.panel.text == generated
    assert not handle.last.patched
    assert not desk.bar.kernels[0]["patched"]


def test_an_edit_that_crashes_is_told_and_can_be_mended(opened):
    handle, x, source, desk = opened
    settled(source.recompile(source.panel.text.replace("x_ptr[", "x_ptr[1000000000 + ", 1)))
    assert source.panel.verdict == "failed"
    assert "belongs to no tensor" in source.panel.comparison
    assert source.panel.status.startswith("PATCHED") and handle.last.patched and desk.bar.kernels[0]["patched"]
    (marker,) = source.panel.markers
    edited = next(i for i, line in enumerate(source.panel.text.splitlines(), start=1) if "x_ptr[1000000000 + " in line)
    # the compiler may fold the access into the next statement
    assert abs(marker["line"] - edited) <= 4 and marker["severity"] == "error"
    settled(source.revert())
    x.fill_(1.0)
    handle(300, x)
    assert (x == 0.5).all()


def race(opened):
    """An edit by which all threads write one place, checked; what was found."""
    handle, x, _, _ = opened
    handle.last.recompile(handle.source.replace("x_ptr[", "x_ptr[0 * ").replace("0.5f", "(float)blockIdx.x"))
    with pytest.raises(KernelError) as caught:
        handle.last.check(300, x)
    return caught.value


def test_what_a_check_finds_is_marked_at_its_lines_until_a_check_finds_nothing(opened):
    handle, _, _, desk = opened
    found = race(opened)
    desk.refresh()
    headline = f"{found.kind.replace('_', ' ')} at source.cu line {found.data['line']}"
    assert desk.bar.kernels[0]["report"] == headline and headline in desk.bar.plain()
    panel = desk.bar.panel("source", 0)
    lines = {found.data[end]["line"] for end in ("first", "second")}
    assert {marker["line"] for marker in panel.markers} == lines
    (main,) = [marker for marker in panel.markers if marker["line"] == found.data["line"]]
    assert main["message"].startswith(found.message) and found.data["hint"] in main["message"]
    said = "\n".join(marker["message"] for marker in panel.markers)
    for end in ("first", "second"):
        assert f"of block {found.data[end]['block']} {found.data[end]['verb']} it" in said
    assert found.message in panel.plain()

    handle.last.report = None
    desk.refresh()
    assert panel.markers == [] and desk.bar.kernels[0]["report"] == ""


def test_an_edit_takes_the_marks_of_a_check_away(opened):
    _, _, _, desk = opened
    race(opened)
    desk.bar.shown = "source"
    source = desk._sources[-1]
    assert source.panel.markers
    settled(source.recompile(source.panel.text.replace("0 * ", "")))
    assert source.panel.markers == [] and desk.bar.kernels[0]["report"] == ""


def test_marks_of_a_check_do_not_stand_in_a_text_that_was_never_checked(opened):
    handle, _, source, _ = opened
    settled(source.recompile(handle.source.replace("0.5f", "0.5f $")))
    (told,) = {marker["message"] for marker in source.panel.markers[:1]}
    handle.last.report = race(opened)
    source.take_report()
    assert source.panel.markers[0]["message"] == told
    draft = Desk([handle.last], NotebookEdits())
    draft._drafts = {handle.last.identity: "// typed\n" + handle.source}
    assert draft.bar.panel("source", 0).markers == [] and draft.bar.kernels[0]["report"]


def test_an_edit_is_checked_before_it_is_compared(opened):
    _, _, source, desk = opened
    config.set_session_default("cpu.check_blocks", 4)
    settled(source.recompile(source.panel.text.replace("0.5f", "(0.25f + 0.25f)")))
    assert source.panel.comparison.endswith(": nothing wrong") and " · checked all 3 blocks" in source.panel.comparison
    wrong = source.panel.text.replace("x_ptr[", "x_ptr[0 * ").replace("(0.25f + 0.25f)", "(float)blockIdx.x")
    settled(source.recompile(wrong))
    panel = source.panel
    assert panel.verdict == "failed" and panel.status.startswith("PATCHED")
    assert "tilekit.option.cpu.check_blocks(0) launches without this check" in panel.comparison
    assert panel.markers and desk.bar.kernels[0]["report"].partition(" at ")[0] in ("race", "global race")
    settled(source.revert())
    assert panel.markers == [] and desk.bar.kernels[0]["report"] == ""


@pytest.mark.parametrize("stop", [lambda source: ask(source.panel, kind="stop"), lambda source: at_work.stop()])
def test_a_comparison_that_does_not_end_is_stopped(opened, stop):
    handle, x, source, _ = opened
    endless = source.panel.text.replace("{\n", "{\n  while (*(volatile int *)&n) {}\n", 1)
    future = source.recompile(endless)
    while source.panel.busy != "comparing":
        time.sleep(0.01)
    time.sleep(0.3)
    pressed = time.monotonic()
    stop(source)
    settled(future)
    assert time.monotonic() - pressed < 20.0  # and not after the time-out
    assert "was interrupted" in source.panel.comparison
    assert source.panel.verdict == "failed" and source.panel.status.startswith("PATCHED")
    settled(source.revert())
    x.fill_(1.0)
    handle(300, x)
    assert (x == 0.5).all()


def test_stop_while_it_compiles_lets_no_comparison_begin(opened, monkeypatch):
    _, _, source, _ = opened
    recompile = Kernel.recompile

    def stopped(kernel, text):
        source.stop()
        recompile(kernel, text)

    monkeypatch.setattr(Kernel, "recompile", stopped)
    monkeypatch.setattr(Kernel, "compare", lambda kernel: pytest.fail("it was compared"))
    settled(source.recompile(source.panel.text.replace("0.5f", "2.0f")))
    assert source.panel.comparison == "not compared with the generated kernel: stopped"
    assert source.panel.status.startswith("PATCHED") and not source.panel.busy
    at_work.stop()  # nothing runs, nothing happens


def test_a_comparison_that_breaks_leaves_the_edit_in_place_and_says_so(opened, monkeypatch):
    handle, _, source, desk = opened
    settled(source.recompile(source.panel.text.replace("0.5f", "(0.25f + 0.25f)")))

    def broken(_kernel):
        raise MemoryError("no room for copies")

    monkeypatch.setattr(Kernel, "compare", broken)
    settled(source.recompile(source.panel.text.replace("0.25f + 0.25f", "0.125f + 0.375f")))
    assert source.panel.comparison == "MemoryError: no room for copies"
    assert source.panel.verdict == "failed"
    assert source.panel.status.startswith("PATCHED") and handle.last.patched and desk.bar.kernels[0]["patched"]
    assert not source.panel.busy


def test_an_edit_that_cannot_be_kept_still_runs_and_says_so(opened, monkeypatch):
    handle, _, source, desk = opened

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(desk.edits, "store", full)
    settled(source.recompile(source.panel.text.replace("0.5f", "2.0f")))
    assert handle.last.patched and source.panel.verdict == "differs"
    assert "could not be kept for a rerun of the cell: no space left" in source.panel.status


def test_what_was_typed_and_not_compiled_outlives_reruns_of_the_cell(opened):
    handle, _, _, desk = opened
    desk.bar.shown = "source"
    typed = handle.source.replace("0.5f", "0.75f; // to be fini")
    desk.bar.panel("source", 0).text = typed
    for shown in ("source", "", "source"):
        again = Desk([handle.last], NotebookEdits())
        again.take_over(desk)
        assert again.bar.shown == desk.bar.shown
        again.bar.shown, desk = shown, again
    panel = desk.bar.panel("source", 0)
    assert panel.text == typed and panel.generated == handle.source
    assert "it is not compiled" in panel.status
    panel.text = handle.source
    assert desk.drafts() == {}


def test_kernels_of_one_name_are_told_apart():
    handle = Half(1001)
    for n in (300, 256):
        handle(n, torch.ones(n))
    first, second = Desk(handle.kernels, NotebookEdits()).names
    assert first != second


def test_the_bar_makes_a_panel_when_it_is_opened(opened):
    _, _, _, desk = opened
    assert desk.bar.panels == {}
    desk.bar.shown = "passes"
    assert list(desk.bar.panels) == ["passes:0"]
    desk.bar.shown = "source"
    assert list(desk.bar.panels) == ["passes:0", "source:0"]


@pytest.fixture
def edits(monkeypatch):
    # a shell of another test may have the extension loaded, and so a store of its own
    monkeypatch.setattr(observer, "_listeners", [])
    store = NotebookEdits()
    store.open()
    yield store
    store.close()


ONES = torch.ones(100)  # kept, so that the kernels can be run on it again


def scaled(factor: float):
    """What running the cell again makes: a new class of the same name."""

    class Scaled(tilus.Script):
        def __call__(self, n: int32, x_ptr: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 4
            g = self.global_view(x_ptr, dtype=float32, shape=[n])
            self.store_global(g, self.load_global(g, offsets=[0], shape=[128]) * factor, offsets=[0])

    session.begin_cell()
    handle = Scaled()
    handle(100, ONES)
    return handle


def after_a_conflict(edits: NotebookEdits, old: str, new: str) -> SourceDesk:
    """The source panel of a kernel whose edit gave way to another generated source."""
    kernel = scaled(2.0).last
    text = kernel.source.replace(old, new)
    kernel.recompile(text)
    edits.store(kernel, text)
    again = scaled(3.0).last
    assert again.edit_state == "CONFLICT"
    return SourceDesk(again, "Scaled", Desk([again], edits))


def test_an_edit_that_gave_way_is_brought_together_on_request(edits):
    source = after_a_conflict(edits, "#include <tk/tk.h>", "// by a person\n#include <tk/tk.h>")
    panel = source.panel
    assert panel.mergeable and panel.status.startswith("CONFLICT")
    settled(source.merge())
    assert panel.text.startswith("// by a person") and "3.0f" in panel.text
    assert (panel.verdict, panel.mergeable) == ("same", False)
    assert source.kernel.source == panel.text
    again = scaled(3.0).last
    assert (again.patched, again.source) == (True, panel.text), "it is kept for the next run of the cell"


def test_where_both_changed_the_same_lines_a_person_decides(edits):
    source = after_a_conflict(edits, "2.0f", "7.0f")
    panel = source.panel
    settled(source.merge())
    assert "<<<<<<< edited" in panel.text and "7.0f" in panel.text and "3.0f" in panel.text
    (marker,) = panel.markers
    assert panel.text.split("\n")[marker["line"] - 1] == "<<<<<<< edited"
    assert "decide there, then recompile" in panel.status
    assert not source.kernel.patched, "nothing is compiled before that"
    assert not panel.busy


def test_without_a_conflict_there_is_nothing_to_bring_together(opened):
    _, _, source, _ = opened
    assert not source.panel.mergeable
    settled(source.merge())
    assert source.panel.status == "there is no edit that gave way"
