# SPDX-License-Identifier: Apache-2.0
"""The viewer of a trace as the value of a cell: whole in the saved notebook, and at work there without a kernel."""

import json

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.sign import NotebookNotary

from tests.notebook.cells import CALL, VECTOR_ADD

pytestmark = pytest.mark.browser

LARGE = """
import random
from tilekit.events import Stage
from tilekit.notebook.panels.steps import Steps
from tilekit.tools.lower_trace.page import Framed
from tilekit.transforms.recorder import Recorder

text = [f"{'    ' * (n // 9 % 5)}t_{n}: f16[8, 16] = add(t_{n // 2}, t_{n // 3})" for n in range(3000)]
recorder, before = Recorder(), "\\n".join(text)
for number in range(200):
    if number % 5 < 2:
        for _ in range(30):
            text[random.randrange(3000)] = f"    sync_threads()  # {random.random()}"
    after = "\\n".join(text) if number % 5 < 2 else before
    recorder.end(Stage.TILE, f"pass_{number}", before, after, 0.001)
    before = after
Framed([Steps(recorder, "large").journal], "large", "1 kernel traced")
"""
TRACED = """
import tilekit

with tilekit.tracing(mode="html", dir="traces") as t:
    add(n, x, y, z)
t.show()
"""


def size(cell: nbformat.NotebookNode) -> int:
    return len(json.dumps(cell.outputs))


def test_case_87_the_viewer_of_a_trace_is_in_the_saved_notebook_and_works_there_alone(
    open_notebook, lab_server, tmp_path, artifact
):
    cells = ["%load_ext tilekit", f"%%tilus\n{VECTOR_ADD}{CALL}", TRACED, LARGE]
    written = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    resources = {"metadata": {"path": str(tmp_path)}}
    client = NotebookClient(
        written,
        timeout=120,
        store_widget_state=False,
        resources=resources,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )
    client.execute()
    traced, large = written.cells[2:]
    assert size(large) <= 1_000_000
    assert "1 kernel traced" in traced.outputs[-1].data["text/plain"]
    file = tmp_path / "traced.ipynb"
    nbformat.write(written, file)
    NotebookNotary(data_dir=str(lab_server.home / "data")).sign(nbformat.read(file, as_version=4))
    opened = open_notebook(file)
    page = opened.page
    frames = page.locator(".jp-OutputArea iframe")
    for number, kernel in enumerate(["vector_add", "large"]):
        # a browser does not paint a frame that is out of sight
        frames.nth(number).scroll_into_view_if_needed()
        view = frames.nth(number).content_frame
        view.locator(".tk-trace[data-ms]").wait_for()
        assert view.locator(".tk-trace").get_attribute("aria-label") == f"Passes of {kernel}"
    view = frames.nth(1).content_frame
    view.locator(".tk-rows").click()
    view.locator(".tk-trace[data-shown='196']").wait_for()
    page.keyboard.press("k")
    view.locator(".tk-trace[data-shown='195']").wait_for()
    before = page.evaluate("() => jupyterapp.shell.currentWidget.content.widgets.length")
    page.keyboard.press("b")
    view.locator(".tk-note", has_text="pass_195").first.wait_for()
    assert page.evaluate("() => jupyterapp.shell.currentWidget.content.widgets.length") == before
    assert frames.first.evaluate("frame => frame.sandbox.value") == "allow-scripts"
    opened.screenshot(artifact("light.png"))
