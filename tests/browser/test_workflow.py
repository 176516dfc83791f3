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
def notebook(share_notebook) -> lab.Notebook:
    opened = share_notebook(["%load_ext tilekit", CELL, CALL])
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
    page.wait_for_selector(".tk-trace[data-ms]")
    page.locator(".tk-panel").focus()
    before = page.locator(".tk-trace").get_attribute("data-shown")
    page.locator(".tk-grid, .tk-rows").first.click()
    page.keyboard.press("j")
    page.wait_for_selector(f".tk-trace:not([data-shown='{before}'])")
    notebook.screenshot(artifact("light.png"))


def test_case_88_an_edit_is_marked_mended_compared_run_and_reverted(notebook, artifact):
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
    run_cell(notebook, 1)
    page.locator(".tk-line", has_text="Scale PATCHED · sm_90a").wait_for()
    page.locator(".tk-source .cm-line", has_text="3.0f").wait_for()
    page.locator(".tk-source", has_text="edit").wait_for()
    run_cell(notebook, 2)
    page.get_by_text("y is 3.0, patched True").wait_for()
    notebook.screenshot(artifact("rerun-dark.png"))

    notebook.set_theme(lab.LIGHT)
    page.get_by_role("button", name="Go back to the generated source").click()
    page.locator(".tk-source .cm-line", has_text="2.0f").wait_for()
    page.locator(".tk-source", has_text="reverted to the generated source").wait_for()
    run_cell(notebook, 2)
    page.get_by_text("y is 2.0, patched False").wait_for()
    assert page.locator(".tk-bar").count() == 1
    run_cell(notebook, 1)
    page.locator(".tk-line", has_text="Scale sm_90a").wait_for()


def test_case_51_the_tile_ir_after_a_pass_is_edited_and_compiled_on(notebook, artifact):
    page = notebook.page
    open_panel(notebook, "Passes")
    page.wait_for_selector(".tk-passes [data-ms]")
    page.locator(".tk-passes .tk-trace").get_by_text("layout_inference").first.click()
    page.get_by_role("button", name="Edit the tile IR after this pass").click()
    area = page.locator(".tk-tile-text")
    page.wait_for_selector(".tk-tile-text:focus")
    made = area.input_value()
    assert "f32(2.0)" in made

    def compile_from(text: str, verdict: str):
        area.fill(text)
        page.keyboard.press("Control+Enter")
        page.wait_for_selector(f".tk-tile-editor[data-state='{verdict}']")

    compile_from(made.replace("f32(2.0)", "f32(2.0"), "failed")
    at = area.evaluate("area => area.selectionStart")
    line = made[:at].count("\n") + 1
    assert f"line {line}, column " in page.locator(".tk-tile-editor .tk-status").inner_text()

    compile_from(made.replace("f32(2.0)", "f32(6.0)"), "differs")
    assert "y_ptr[0] is 6.0 and was 2.0" in page.locator(".tk-tile-editor").inner_text()
    page.locator(".tk-bar .tk-pill", has_text="PATCHED").wait_for()
    page.locator(".tk-passes .tk-trace").get_by_text("edit_of_layout_inference").first.wait_for()
    notebook.screenshot(artifact("edited.png"))
    run_cell(notebook, 2)
    page.get_by_text("y is 6.0, patched True").wait_for()

    page.get_by_role("button", name="Go back to what the compiler makes of the script").click()
    page.locator(".tk-tile-editor .tk-status", has_text="reverted to what the compiler makes of it").wait_for()
    area.press("Escape")
    assert area.is_hidden()
    run_cell(notebook, 2)
    page.get_by_text("y is 2.0, patched False").wait_for()
    assert page.locator(".tk-bar").count() == 1


def test_the_line_of_the_kernel_stands_above_its_panels(notebook):
    line = notebook.page.locator(".tk-static .tk-line")
    line.wait_for()
    assert "Scale sm_90a · CPU simulator · " in line.inner_text()
    assert notebook.page.locator(".tk-static details").count() == 0
    # and stays whole when the looks of a panel come into the page
    open_panel(notebook, "Passes")
    notebook.page.wait_for_selector(".tk-trace[data-ms]")
    room = "line => line.closest('.jp-OutputArea-output').getBoundingClientRect().height"
    assert line.evaluate(room) >= line.evaluate("line => line.scrollHeight") > 0


def test_a_rerun_of_the_cell_keeps_open_what_was_open(notebook):
    page = notebook.page
    open_panel(notebook, "Passes")
    run_cell(notebook, 1)
    page.wait_for_function("() => document.querySelectorAll('.tk-bar').length == 1")
    page.wait_for_selector(".tk-bar[data-open='passes:0'] .tk-trace[data-ms]")


def test_three_kernels_and_a_loop_leave_one_bar_and_two_outputs(share_notebook, artifact):
    names = ("Scale", "Second", "Third")
    classes = "\n".join(CELL[CELL.index("class Scale") : CELL.index("x, y =")].replace("Scale", n) for n in names[1:])
    loop = "for n in range(100, 2100, 100): scale(n, torch.ones(n), torch.ones(n))"
    loop += "\nSecond()(1000, x, y)\nThird()(1000, x, y)"
    opened = share_notebook(["%load_ext tilekit", CELL.replace("scale(1000, x, y)\n", f"{classes}\n{loop}")])
    opened.run_all()
    page = opened.page
    page.wait_for_selector(".tk-bar")
    assert page.locator(".tk-bar").count() == 1
    assert page.locator(".jp-Cell").last.locator(".jp-OutputArea-child").count() == 2
    # sizes that are a multiple of 16 have a kernel of their own
    options = page.get_by_role("combobox", name="Kernel").locator("option").all_inner_texts()
    assert options == ["Scale-d1-d16-d16", "Scale-d16-d16-d16", "Second", "Third"]
    opened.screenshot(artifact("light.png"))


def test_the_bar_and_the_panels_are_there_at_once(share_notebook):
    """The bar comes with its cell's output, and a panel at the click, each within 300 ms."""
    opened = share_notebook(["%load_ext tilekit", CELL])
    page = opened.page
    page.evaluate(
        """() => {
            window.seen = {};
            new MutationObserver(() => {
                for (const name of ['.tk-static > details', '.tk-bar', '.tk-trace[data-ms]', '.tk-source .cm-content'])
                    if (!(name in seen) && document.querySelector(name)) {
                        seen[name] = 0;
                        requestAnimationFrame(() => { seen[name] = performance.now(); });
                    }
            }).observe(document.body, {childList: true, subtree: true, attributes: true});
        }"""
    )

    def painted(place: str) -> float:
        return page.wait_for_function("name => window.seen[name]", arg=place).json_value()

    opened.run_all()
    times = {"bar": painted(".tk-bar") - painted(".tk-static > details")}
    for panel, place in (("Passes", ".tk-trace[data-ms]"), ("Source", ".tk-source .cm-content")):
        begin = page.evaluate(
            "panel => { const now = performance.now(); document.querySelector(panel).click(); return now; }",
            f"button[aria-label='{panel} of the kernel']",
        )
        times[panel] = painted(place) - begin
    assert max(times.values()) < 300 * lab.BUSY, times


def test_the_trace_of_a_kernel_is_a_panel_and_the_file_keeps_its_text(share_notebook, artifact):
    opened = share_notebook(["%load_ext tilekit", CELL, "scale.trace"])
    opened.run_all()
    page = opened.page
    page.wait_for_selector(".tk-trace[data-ms]")
    page.locator(".tk-line", has_text="passes changed the program").wait_for()
    page.locator(".tk-rows").focus()
    before = page.locator(".tk-trace").get_attribute("data-shown")
    page.keyboard.press("j")
    page.wait_for_selector(f".tk-trace:not([data-shown='{before}'])")
    opened.screenshot(artifact("light.png"))
    kept = page.evaluate(
        "() => jupyterapp.shell.currentWidget.content.widgets[2].model.sharedModel.getOutputs().map(o => o.data)"
    )
    assert "<b>layout_inference</b>" in "".join(kept[0]["text/html"])
