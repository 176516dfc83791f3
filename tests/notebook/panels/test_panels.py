# SPDX-License-Identifier: Apache-2.0
"""The Python half of the panels, with no front end: a widget answers messages all the same."""

import gc
import weakref

import pytest

from tilekit.events import Stage
from tilekit.notebook.panels.bar import Entry, PanelBar
from tilekit.notebook.panels.passes import PassPanel
from tilekit.notebook.panels.source import SourcePanel
from tilekit.notebook.panels.steps import Steps
from tilekit.transforms.recorder import Recorder

VIEW = "application/vnd.jupyter.widget-view+json"


def steps() -> Steps:
    recorder = Recorder()
    recorder.end(Stage.TILE, "same", "a\nb", "a\nb", 0.001)
    recorder.steps[0] = recorder.steps[0].__class__(
        Stage.TILE, "same", recorder.steps[0].after, recorder.steps[0].after, 0
    )
    recorder.end(Stage.TILE, "change", "a\nb", "a\nc\nd", 0.001)
    return Steps(recorder)


def source(**callbacks) -> SourcePanel:
    nothing = dict.fromkeys(("revert", "merge", "stop"), lambda: None)
    asked = {"recompile": lambda text: None, **nothing} | callbacks
    return SourcePanel("Softmax", "int x;\n", **asked)


def test_the_pass_panel_hands_over_its_journal_when_it_is_asked(monkeypatch):
    panel = PassPanel("Softmax", shown := steps())
    sent = []
    monkeypatch.setattr(panel, "send", lambda content, buffers: sent.append(buffers))
    assert panel.get_state()["view"] == ""
    panel._handle_custom_msg({"kind": "journal"}, [])
    assert sent == [[shown.packed]]


def test_every_panel_is_also_plain_text():
    bar = PanelBar([Entry("Softmax"), Entry("VectorAdd", patched=True)], lambda kind, index: source())
    for panel, words in [(PassPanel("Softmax", steps()), "change"), (source(), "int x;"), (bar, "VectorAdd · PATCHED")]:
        bundle = panel._repr_mimebundle_()
        assert words in bundle["text/plain"]
        assert bundle[VIEW]["model_id"] == panel.model_id


def test_the_source_panel_hands_the_text_on_and_is_busy_until_told_otherwise():
    heard = []
    panel = source(recompile=heard.append)
    panel._handle_custom_msg({"kind": "recompile", "text": "int y;\n"}, [])
    assert heard == ["int y;\n"] and panel.busy


def test_a_callback_that_fails_leaves_the_source_panel_ready():
    def fail(text: str):
        raise RuntimeError(text)

    panel = source(recompile=fail)
    with pytest.raises(RuntimeError):
        panel._answer(panel, {"kind": "recompile", "text": "x"}, [])
    assert not panel.busy


def test_stop_leaves_the_panel_as_busy_as_it_is():
    heard = []
    panel = source(stop=lambda: heard.append("stop"))
    panel._handle_custom_msg({"kind": "stop"}, [])
    assert heard == ["stop"] and not panel.busy
    panel.busy = "comparing"
    panel._handle_custom_msg({"kind": "stop"}, [])
    assert heard == ["stop"] * 2 and panel.busy


def test_revert_is_told_apart_from_recompile():
    heard = []
    panel = source(recompile=lambda text: heard.append("recompile"), revert=lambda: heard.append("revert"))
    panel._handle_custom_msg({"kind": "revert"}, [])
    assert heard == ["revert"]


def test_the_bar_makes_a_panel_when_it_is_first_opened_and_keeps_it():
    made = []

    def make(kind: str, index: int):
        made.append((kind, index))
        return source()

    bar = PanelBar([Entry("a"), Entry("b")], make)
    assert made == [] and bar.panels == {}
    bar.shown = "source"
    bar.kernel = 1
    bar.shown = ""
    bar.shown = "source"
    assert made == [("source", 0), ("source", 1)]
    assert set(bar.panels) == {"source:0", "source:1"}
    assert bar.panels["source:1"] == f"anywidget:{bar.panel('source', 1).model_id}"


def test_a_bar_may_begin_open():
    bar = PanelBar([Entry("a"), Entry("b")], lambda kind, index: source(), kernel=1, shown="source")
    assert set(bar.panels) == {"source:1"}


def test_a_closed_panel_is_forgotten():
    panel = PassPanel("Softmax", steps())
    gone = weakref.ref(panel)
    panel.close()
    del panel
    gc.collect()
    assert gone() is None
