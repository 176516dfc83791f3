# SPDX-License-Identifier: Apache-2.0
"""What a check finds, as a person meets it in JupyterLab: a sentence that opens, marked lines, and both gone again."""

import json
import re

import pytest

from tests.browser import lab
from tests.browser.test_magic import contrast
from tests.browser.test_workflow import edit, open_panel, run_cell, state

pytestmark = pytest.mark.browser

TURNED = """%%tilus --check
import tilus
import torch
from tilus import float32, int32


class Turned(tilus.Script):
    def __call__(self, rows: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [rows // 32]
        self.attrs.warps = 4
        row = self.blockIdx.x * 32
        gx = self.global_view(x_ptr, dtype=float32, shape=[rows, 32])
        gy = self.global_view(y_ptr, dtype=float32, shape=[rows, 32])
        s = self.shared_tensor(dtype=float32, shape=[32, 32])
        self.store_shared(s, self.load_global(gx, offsets=[row, 0], shape=[32, 32]))
        self.sync()
        y = self.load_shared(s.transpose())
        self.free_shared(s)
        self.store_global(gy, y, offsets=[row, 0])


x, y = torch.randn(64, 32), torch.zeros(64, 32)
turned = Turned()
turned(64, x, y)
"""
RACE = TURNED.replace("        self.sync()\n", "")
DETAILS = ".jp-OutputArea-output > details"


def write_cell(notebook: lab.Notebook, index: int, text: str):
    widget = f"jupyterapp.shell.currentWidget.content.widgets[{index}]"
    notebook.page.evaluate(f"() => {widget}.model.sharedModel.setSource({json.dumps(text)})")


def marked_lines(page) -> list[str]:
    """The lines of the editor that have a message below them."""
    below = "lines => lines.map(line => line.previousElementSibling.innerText.trim())"
    return page.locator(".tk-source .tk-error-line").evaluate_all(below)


def test_a_race_is_told_and_marked_and_gone_when_it_is_mended(open_notebook, artifact):
    notebook = open_notebook(["%load_ext tilekit", RACE])
    _, cell = notebook.run_all(may_fail=True)
    page = notebook.page
    line = next(number for number, text in enumerate(RACE.splitlines(), start=1) if "store_shared" in text)
    error = page.locator("[data-mime-type='application/vnd.jupyter.stderr']")
    first, *_, help_ = error.inner_text().splitlines()
    assert re.match(rf"KernelError TK720 in Turned.__call__, Cell In\[2\], line {line}: race, .* s\[\d+, \d+\]", first)
    assert help_.startswith("  help: self.sync()")
    assert len(error.inner_text().splitlines()) == 4
    assert "race found" in cell.text

    details = page.locator(DETAILS)
    assert not details.get_by_text("tile instruction: ").first.is_visible()
    details.locator("summary", has_text="the two accesses: thread ").click()
    assert details.get_by_text(re.compile(r"source\.cu line \d+: tk::store_shared_16")).is_visible()

    page.locator(".tk-report", has_text="race at source.cu line ").click()
    page.wait_for_selector(".tk-bar[data-open='source:0']")
    page.wait_for_function("() => document.querySelectorAll('.tk-source .tk-error-line').length == 2")
    # an opened source shows what was found
    page.wait_for_function(
        """() => {
            const editor = document.querySelector('.tk-editor').getBoundingClientRect();
            const line = document.querySelector('.tk-error-line').getBoundingClientRect();
            return editor.top <= line.top && line.bottom <= editor.bottom;
        }"""
    )
    store, load = marked_lines(page)
    assert store.startswith("tk::store_shared_16(&s[") and load.startswith("tk::load_shared_4(&y[")
    assert page.locator(".cm-lint-marker-error").count() == 2
    assert page.locator(".tk-problem").count() == 2
    for theme, name in ((lab.LIGHT, "light.png"), (lab.DARK, "dark.png")):
        notebook.set_theme(theme)
        notebook.screenshot(artifact(name))
        for place in (f"{DETAILS} span", ".tk-report", ".tk-error-line b"):
            assert contrast(page, place) >= 4.5, (theme, place)
    notebook.set_theme(lab.LIGHT)

    write_cell(notebook, 1, TURNED)
    run_cell(notebook, 1)
    page.get_by_text("checked all 2 blocks, seed 0: nothing wrong").wait_for()
    page.wait_for_selector(".tk-bar[data-open='source:0'] .tk-source .cm-line")
    page.locator(".tk-source .cm-line", has_text="__syncthreads();").wait_for()
    assert not marked_lines(page) and not page.locator(".tk-report").is_visible()
    assert page.locator(DETAILS).count() == 0 and error.count() == 0
    notebook.screenshot(artifact("mended.png"))


def test_checks_of_other_cells_and_of_an_edit_mark_the_open_source(open_notebook, artifact):
    wrong = "turned.check(128, x, y)"
    cells = ["%load_ext tilekit", TURNED.replace(" --check", ""), wrong, "str(turned.check(64, x, y))"]
    notebook = open_notebook(["import tilekit\ntilekit.option.cpu.check_blocks(2)", *cells])
    notebook.run_all(may_fail=True)
    page = notebook.page
    open_panel(notebook, "Source")
    page.locator(".tk-report", has_text="out of bounds").wait_for()
    page.locator(".tk-source .tk-error-line").wait_for()
    run_cell(notebook, 4)
    page.get_by_text("'checked all 2 blocks, seed 0: nothing wrong'").wait_for()
    page.wait_for_function("() => !document.querySelector('.tk-source .tk-error-line')")
    page.locator(".tk-report").wait_for(state="hidden")

    edit(notebook, "__syncthreads();", "")
    state(notebook, "failed")
    page.locator(".tk-report", has_text=re.compile("race|uninitialized")).wait_for()
    page.locator(".tk-source .tk-error-line").first.wait_for()
    notebook.screenshot(artifact("edit.png"))
    page.get_by_role("button", name="Go back to the generated source").click()
    page.wait_for_function("() => !document.querySelector('.tk-source .tk-error-line')")
    page.locator(".tk-report").wait_for(state="hidden")
