# SPDX-License-Identifier: Apache-2.0
"""`%%tilus` cells as a person meets them in JupyterLab."""

import re

import pytest

from tests.browser import lab
from tests.notebook.cells import CALL, VECTOR_ADD

pytestmark = pytest.mark.browser

# a reopened notebook has no kernel to answer its panels: what is left is the page that these tests look at
STATIC = "%load_ext tilekit\nget_ipython().tilekit._show_panels = lambda kernels: None"
RUN = f"%%tilus\n{VECTOR_ADD}{CALL}torch.equal(z, x + y)"


def test_a_kernel_is_one_line_that_opens(share_notebook, artifact):
    notebook = share_notebook([STATIC, RUN])
    _, cell = notebook.run_all()
    assert re.match(r"VectorAdd sm_90a · CPU simulator · \d+ passes changed it · ", cell.text)
    assert cell.text.rstrip().endswith("True")
    page = notebook.page
    kernel = page.locator(".tk-static > details")
    assert kernel.count() == 1
    line = kernel.locator("> summary")
    height = line.bounding_box()["height"]
    assert height <= 20, "the line is no line any more"
    assert not page.get_by_text("layout_inference").is_visible()
    line.click()
    step = page.locator("details", has=page.get_by_text("layout_inference")).last
    step.locator("> summary").click()
    assert step.locator("ins").first.is_visible()
    page.get_by_text("source.cu").click()
    assert page.get_by_text("TK_KERNEL(vector_add_kernel)").is_visible()
    for theme, name in ((lab.LIGHT, "light.png"), (lab.DARK, "dark.png")):
        notebook.set_theme(theme)
        notebook.screenshot(artifact(name))
        assert contrast(page, "ins") >= 4.5
        assert contrast(page, ".tk-static summary span") >= 3


def test_before_and_after_lie_side_by_side_and_line_by_line(share_notebook):
    notebook = share_notebook([STATIC, RUN])
    notebook.run_all()
    page = notebook.page
    page.evaluate("document.querySelectorAll('.tk-static details').forEach(details => { details.open = true; })")
    columns = page.locator(".tk-static table").nth(1).locator("td pre")
    left, right = (columns.nth(i).bounding_box() for i in range(2))
    assert left["x"] + left["width"] <= right["x"] + 1
    assert left["y"] == right["y"]
    texts = [columns.nth(i).inner_text().split("\n") for i in range(2)]
    assert len(texts[0]) == len(texts[1])
    assert left["height"] == pytest.approx(right["height"])


def test_a_failing_cell_says_three_lines_and_stops_the_run(open_notebook, artifact):
    wrong = VECTOR_ADD.replace("load_global(gy", "load_globl(gy")
    notebook = open_notebook(["%load_ext tilekit", f"%%tilus\n{wrong}", "print('after')"])
    _, cell, after = notebook.run_all(may_fail=True)
    assert cell.failed
    assert cell.text.split("\n")[:3] == [
        "LanguageError TK102 in VectorAdd.__call__, Cell In[2], line 17: self has no load_globl",
        "    y = self.load_globl(gy, offsets=[start], shape=[256])",
        "        ^^^^^^^^^^^^^^^",
    ]
    assert not after.ran
    notebook.screenshot(artifact("light.png"))


def contrast(page, selector: str) -> float:
    """How well the text of the first such element stands out from what lies behind it."""
    return page.evaluate(
        """selector => {
            const shown = document.querySelector(selector);
            const channels = css => css.match(/[\\d.]+/g).map(Number);
            let ground = [255, 255, 255];
            const layers = [];
            for (let node = shown; node; node = node.parentElement)
                layers.unshift(channels(getComputedStyle(node).backgroundColor));
            for (const [r, g, b, alpha = 1] of layers)
                ground = [r, g, b].map((value, i) => alpha * value + (1 - alpha) * ground[i]);
            const luminance = rgb => rgb.slice(0, 3)
                .map(value => value / 255)
                .map(value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
                .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
            const both = [luminance(ground), luminance(channels(getComputedStyle(shown).color))];
            const [dark, light] = both.sort((a, b) => a - b);
            return (light + 0.05) / (dark + 0.05);
        }""",
        selector,
    )
