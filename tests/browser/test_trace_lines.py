# SPDX-License-Identifier: Apache-2.0
"""A click on a line shows what it was made from and what was made from it, from the person's line to machine code."""

from pathlib import Path

import pytest

import tilekit
from tests.browser import lab
from tests.jit.followed import Matmul
from tilekit import float16, option
from tilekit.config import TraceMode
from tilekit.toolchain import toolkit

STATIC = Path(tilekit.__file__).parent / "static"

pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (STATIC / "report.js").exists(), reason="the viewer is not built: run make widgets"),
    pytest.mark.skipif(toolkit.nvdisasm() is None, reason="needs pip install nvidia-cuda-nvdisasm"),
]

DOT = "acc = self.dot(self.load_shared(sa), self.load_shared(sb), acc)"


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    """The page of a traced matmul."""
    folder = tmp_path_factory.mktemp("trace")
    shapes = (130, 50), (50, 70), (130, 70)
    option.debug.trace_machine_code()
    try:
        with tilekit.tracing(TraceMode.HTML, folder) as traced:
            specs = (tilekit.spec(float16, shape) for shape in shapes)
            Matmul().compile(130, 70, 50, *specs, target="sm_80", device="cuda")
    finally:
        option.debug.trace_machine_code(False)
    assert traced.report is not None
    return traced.report


@pytest.fixture
def open_page(chromium, page, artifact):
    view = lab.Notebook(chromium.new_page())
    view.page.set_viewport_size({"width": 1800, "height": 900})

    def open_(fragment: str = ""):
        view.page.goto("about:blank")
        view.page.goto(f"{page.as_uri()}{fragment}")
        view.page.wait_for_selector(".tk-trace[data-ms]")
        return view.page

    yield open_
    view.screenshot(artifact("lines.png"))
    assert not view.errors and not view.outside
    view.page.close()


def column(there, label: str):
    return there.locator(".tk-column").filter(has=there.locator(".tk-column-head b", has_text=label))


def lit(there, label: str) -> list[str]:
    """The lines of a column that are lit up, and that are in sight."""
    return [text.strip() for text in column(there, label).locator(".tk-column-line.tk-lit code").all_inner_texts()]


def count(there, label: str) -> str:
    return column(there, label).locator(".tk-column-count").inner_text()


def click(there, label: str, part: str):
    """Click the first line of a column that has this in it, wherever it stands."""
    rows = column(there, label).locator(".tk-column-rows")
    line = column(there, label).locator(".tk-column-line", has_text=part).first
    while not line.count():
        top = rows.evaluate("node => node.scrollTop")
        assert rows.evaluate("node => (node.scrollTop += node.clientHeight)") > top, f"no line of {label} has {part}"
        rows.evaluate("() => new Promise(requestAnimationFrame)")
    line.click(position={"x": 60, "y": 9})


def test_case_83_a_click_on_a_line_lights_up_what_belongs_with_it_in_every_language(open_page):
    there = open_page()
    there.keyboard.press("m")
    heads = there.locator(".tk-column-head b").all_inner_texts()
    assert heads == ["followed.py", "Tile IR", "Hidet IR", "CUDA C", "PTX", "SASS"]

    click(there, "CUDA C", "tk::mma_tile")
    assert lit(there, "followed.py") == [DOT]
    assert [text.split("(")[0] for text in lit(there, "Tile IR")] == ["acc = dot"]
    assert lit(there, "Hidet IR")[0].startswith("tk::mma_tile") and lit(there, "CUDA C")[0].startswith("tk::mma_tile")
    assert lit(there, "PTX") and all(text.startswith("mma.sync") for text in lit(there, "PTX"))
    assert any("HMMA." in text for text in lit(there, "SASS"))

    # and back: machine code leads to the same line, and the line to all that was made from it
    click(there, "SASS", "HMMA.")
    assert lit(there, "followed.py") == [DOT] and count(there, "SASS") == "1 line"
    click(there, "followed.py", "self.dot(")
    assert int(count(there, "SASS").split()[0]) > 16 and int(count(there, "CUDA C").split()[0]) > 3
    assert any(text.startswith("tk::ldmatrix_x4") for text in lit(there, "CUDA C"))


def test_case_83_the_card_of_ptxas_lists_registers_shared_memory_and_spills(open_page):
    there = open_page()
    there.locator(".tk-pass", has=there.locator(".tk-pass-name", has_text="ptxas")).click()
    facts = dict(text.rsplit(" ", 1) for text in there.locator(".tk-figures span").all_inner_texts())
    assert 32 < int(facts["registers"]) <= 255
    assert (facts["shared bytes"], facts["spill bytes"], facts["target"]) == ("8192", "0", "sm_80")


def test_an_address_opens_the_columns_at_the_line(open_page):
    there = open_page()
    there.keyboard.press("m")
    click(there, "CUDA C", "tk::mma_tile")
    address = there.evaluate("() => location.hash")
    again = open_page(address)
    assert lit(again, "followed.py") == [DOT]
    again.keyboard.press("Escape")
    assert not again.locator(".tk-columns").is_visible() and again.locator(".tk-diff").is_visible()


def test_the_arrows_go_by_lines_and_by_columns(open_page):
    there = open_page()
    there.keyboard.press("m")
    click(there, "followed.py", "self.dot(")
    there.keyboard.press("ArrowUp")
    assert lit(there, "followed.py") == ["self.sync()"]
    there.keyboard.press("ArrowRight")
    there.keyboard.press("Enter")
    assert lit(there, "Tile IR") == ["sync()"] and lit(there, "followed.py") == ["self.sync()"]


def test_a_line_of_a_step_lights_up_its_origin_beside_it_and_names_the_others_below(open_page):
    there = open_page()
    there.locator(".tk-pass", has_text="print_module").click()
    there.locator(".tk-rows code[data-side=right]", has_text="int32_t row = ").click()
    left = there.locator(".tk-rows code[data-side=left].tk-lit").all_inner_texts()
    assert [text.strip() for text in left] == ["declare row: int32 = (blockIdx.y * 64)"]
    links = there.locator(".tk-links .tk-link")
    assert links.first.inner_text().startswith("followed.py")
    assert links.first.locator("code").inner_text().startswith("row, column = self.blockIdx.y * 64")
    # another step shows the same line as it was there
    there.locator(".tk-pass", has_text="generate_ir_module").click()
    before = there.locator(".tk-rows code[data-side=left].tk-lit").all_inner_texts()
    assert [text.strip() for text in before] == ["row: Let[i32] = block_idx_y * i32(64)"]
    links.nth(3).click()
    assert lit(there, "CUDA C") == ["int32_t row = (int)blockIdx.y * 64;"]


PANEL = """
%load_ext tilekit
import tilekit
from tilekit import float32
from tilekit.notebook.panels.passes import PassPanel
from tilekit.notebook.panels.steps import Steps

class Increment(tilekit.Script):
    def __call__(self, x_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        g = self.global_view(x_ptr, dtype=float32, shape=[32])
        self.store_global(g, self.load_global(g, offsets=[0], shape=[32]) + 1.0, offsets=[0])

increment = Increment()
increment.compile(tilekit.spec(float32, (32,)), device="cpu")
PassPanel("Increment", Steps.of(increment.kernels[-1], "Increment"))
"""


def test_the_panel_of_a_kernel_for_the_cpu_gets_machine_code_when_it_is_asked_for(open_notebook):
    notebook = open_notebook([PANEL, "1"])
    notebook.run_all()
    there = notebook.page
    there.wait_for_selector(".tk-trace[data-ms]")
    there.get_by_role("button", name="The lines of every language beside each other (m)").click()
    click(there, "CUDA C", " + 1.0f")
    (cell,) = lit(there, "Cell In[1]")
    assert cell.startswith("self.store_global(g, self.load_global(")
    there.get_by_role("button", name="Compile for the GPU, and show PTX and machine code").click()
    column(there, "SASS").wait_for(timeout=60_000)
    # the line is still chosen, and leads on
    assert any(text.startswith("add.f32") for text in lit(there, "PTX"))
    assert any("FADD" in text for text in lit(there, "SASS"))
