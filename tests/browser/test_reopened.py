# SPDX-License-Identifier: Apache-2.0
"""A notebook whose kernel is gone shows what its author saw, and nothing that waits for a kernel."""

import copy

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.sign import NotebookNotary

from tests.browser import lab
from tests.notebook.cells import CALL, VECTOR_ADD

pytestmark = pytest.mark.browser

CELLS = ["%load_ext tilekit", f"%%tilus\n{VECTOR_ADD}{CALL}", "add.trace"]


@pytest.fixture(scope="module")
def executed() -> nbformat.NotebookNode:
    """A notebook that was run without a front end; such a run keeps the state of widgets."""
    page = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    NotebookClient(page, timeout=120, extra_arguments=["--IPKernelApp.log_level=ERROR"]).execute()
    return page


def copies_open(notebook: lab.Notebook):
    """The copies of the kernel and of its trace are there, and open to what the author saw."""
    page = notebook.page
    for line in ("CPU simulator", "passes changed the program"):
        page.locator(".jp-OutputArea details > summary").filter(has_text=line).first.click()
    page.locator("summary", has_text="source.cu").click()
    assert page.get_by_text("TK_KERNEL(vector_add_kernel)").is_visible()
    assert page.locator("summary", has_text="layout_inference").nth(1).is_visible()


# how each looks where JupyterLab has made up its mind
@pytest.mark.parametrize(
    ("kept", "settled"),
    [
        pytest.param(True, ".lm-Panel > [hidden]", id="with_the_state_of_its_widgets"),
        pytest.param(False, ".lm-Panel.jupyter-widgets", id="without_it"),
    ],
)
def test_a_trusted_one_shows_the_copies_alone(open_notebook, lab_server, executed, tmp_path, kept, settled, artifact):
    file = tmp_path / "saved.ipynb"
    page = copy.deepcopy(executed)
    assert "widgets" in page.metadata
    if not kept:
        del page.metadata["widgets"]
    nbformat.write(page, file)
    NotebookNotary(data_dir=str(lab_server.home / "data")).sign(nbformat.read(file, as_version=4))
    opened = open_notebook(file)
    opened.page.wait_for_function("one => document.querySelectorAll(`.jp-OutputArea ${one}`).length == 2", arg=settled)
    shown = opened.page.locator(".jp-OutputArea-output:visible").all_inner_texts()
    assert len(shown) == 2, shown
    copies_open(opened)
    opened.screenshot(artifact("light.png"))


def test_one_that_is_not_trusted_shows_the_copies_and_where_the_panels_were(
    open_notebook, executed, tmp_path, artifact
):
    file = tmp_path / "saved.ipynb"
    page = copy.deepcopy(executed)
    page.metadata["title"] = "from elsewhere"  # or else the trusted one would be known by its digest
    nbformat.write(page, file)
    opened = open_notebook(file)
    for panel in ("passes and source in panels", "the panel of these passes"):
        opened.page.get_by_text(f"{panel}: run the cell to open").wait_for()
    copies_open(opened)
    opened.screenshot(artifact("light.png"))


def test_an_open_one_says_so_in_one_line_and_its_copies_open_again(open_notebook, artifact):
    opened = open_notebook(CELLS)
    opened.run_all()
    page = opened.page
    page.wait_for_selector(".tk-trace[data-ms]")
    page.wait_for_selector(".tk-line")
    assert page.locator(".tk-static > details").count() == 0
    page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    page.locator(".tk-bar .tk-gone").wait_for()
    assert page.locator(".tk-bar").inner_text() == "kernel gone, run the cell again"
    assert page.locator(".tk-line").count() == 0
    copies_open(opened)
    opened.screenshot(artifact("light.png"))
