# SPDX-License-Identifier: Apache-2.0
"""What people come for, in JupyterLab: write a kernel, walk its passes, edit its source, and run the edit."""

import pytest

from tests.browser import lab

pytestmark = pytest.mark.browser

CELL = """%%tilus
import tilus
import torch
from tilus import float32, int32
from tilus.utils import cdiv


class Scale(tilus.Script):
    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [cdiv(n, 256)]
        self.attrs.warps = 4
        at = self.blockIdx.x * 256
        x = self.load_global(self.global_view(x_ptr, dtype=float32, shape=[n]), offsets=[at], shape=[256])
        gy = self.global_view(y_ptr, dtype=float32, shape=[n])
        self.store_global(gy, x * 2.0, offsets=[at])


x, y = torch.ones(1000), torch.zeros(1000)
scale = Scale()
scale(1000, x, y)
"""
CALL = "scale(1000, x, y); f'y is {y[0].item()}, patched {scale.last.patched}'"


@pytest.fixture
def notebook(open_notebook) -> lab.Notebook:
    opened = open_notebook(["%load_ext tilekit", CELL, CALL])
    opened.run_all()
    opened.page.wait_for_selector(".tk-bar")
    return opened


def open_panel(notebook: lab.Notebook, name: str):
    notebook.page.get_by_role("button", name=f"{name} of the kernel").click()
    notebook.page.wait_for_selector(f".tk-bar[data-open='{name.lower()}:0']")


def edit(notebook: lab.Notebook, old: str, new: str):
    """Put the cursor behind `old` in its line, take it away, type `new`, and recompile."""
    page = notebook.page
    line = page.locator(".tk-source .cm-line", has_text=old)
    text = line.inner_text()
    line.click()
    page.keyboard.press("Home")
    page.keyboard.press("Home")
    for _ in range(text.index(old) + len(old)):
        page.keyboard.press("ArrowRight")
    for _ in old:
        page.keyboard.press("Backspace")
    page.keyboard.type(new)
    page.keyboard.press("Control+Enter")


def run_cell(notebook: lab.Notebook, index: int):
    notebook.page.evaluate(f"() => {{ jupyterapp.shell.currentWidget.content.activeCellIndex = {index}; }}")
    notebook.page.evaluate("() => jupyterapp.commands.execute('notebook:run-cell')")


def state(notebook: lab.Notebook, verdict: str):
    notebook.page.wait_for_selector(f".tk-source[data-state='{verdict}']")


def test_passes_of_a_kernel_are_walked_by_keys(notebook, artifact):
    open_panel(notebook, "Passes")
    page = notebook.page
    page.wait_for_selector(".tk-passes[data-ms]")
    page.locator(".tk-panel").focus()
    before = page.locator(".tk-passes").get_attribute("data-shown")
    page.locator(".tk-grid, .tk-rows").first.click()
    page.keyboard.press("j")
    page.wait_for_selector(f".tk-passes:not([data-shown='{before}'])")
    notebook.screenshot(artifact("light.png"))


def test_an_edit_is_marked_mended_compared_run_and_reverted(notebook, artifact):
    page = notebook.page
    open_panel(notebook, "Source")
    page.wait_for_selector(".tk-source .cm-content")
    edit(notebook, "2.0f", "2.0f $")
    state(notebook, "failed")
    page.locator(".cm-lint-marker-error").wait_for()
    edit(notebook, "2.0f $", "(1.0f + 1.0f)")
    state(notebook, "same")
    assert "same result as the generated kernel on the last arguments" in page.locator(".tk-source").inner_text()
    notebook.screenshot(artifact("same-light.png"))

    edit(notebook, "(1.0f + 1.0f)", "3.0f")
    state(notebook, "differs")
    assert "y_ptr[0] is 3.0 and was 2.0" in page.locator(".tk-source").inner_text()
    page.locator(".tk-bar .tk-pill", has_text="PATCHED").wait_for()
    notebook.set_theme(lab.DARK)
    notebook.screenshot(artifact("differs-dark.png"))

    run_cell(notebook, 2)
    page.get_by_text("y is 3.0, patched True").wait_for()
    page.get_by_role("button", name="Go back to the generated source").click()
    state(notebook, "")
    run_cell(notebook, 2)
    page.get_by_text("y is 2.0, patched False").wait_for()
    assert page.locator(".tk-bar").count() == 1


def test_the_line_of_the_kernel_stands_above_its_panels(notebook):
    line = notebook.page.locator(".tk-static .tk-line")
    line.wait_for()
    assert "Scale sm_90a · CPU simulator · " in line.inner_text()
    assert notebook.page.locator(".tk-static details").count() == 0


def test_a_rerun_of_the_cell_keeps_open_what_was_open(notebook):
    page = notebook.page
    open_panel(notebook, "Passes")
    run_cell(notebook, 1)
    page.wait_for_function("() => document.querySelectorAll('.tk-bar').length == 1")
    page.wait_for_selector(".tk-bar[data-open='passes:0'] .tk-passes[data-ms]")
