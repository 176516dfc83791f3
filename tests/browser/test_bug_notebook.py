# SPDX-License-Identifier: Apache-2.0
"""The notebook of bugs, as a person meets it in JupyterLab."""

import pathlib

import pytest

from tests.browser import lab

pytestmark = pytest.mark.browser

BUGS = pathlib.Path(__file__).parents[2] / "notebooks" / "03_find_the_bug.ipynb"


def test_the_run_goes_on_behind_each_bug(open_notebook, artifact):
    notebook = open_notebook(BUGS)
    notebook.run_all(may_fail=True)
    # JupyterLab settles at the first cell that fails, and runs the others
    notebook.page.get_by_text("checked all 5 blocks, seed 3: nothing wrong").wait_for()
    cells = notebook.cells()
    assert all(cell.ran for cell in cells)
    assert [cell.failed for cell in cells] == [False, *[True, False] * 3, False]
    labels = notebook.page.locator(".tk-report:visible").all_inner_texts()
    assert [label.partition(" at source.cu line ")[0] for label in labels] == ["race", "in flight", "deadlock"]
    notebook.screenshot(artifact("light.png"))
    notebook.set_theme(lab.DARK)
    notebook.screenshot(artifact("dark.png"))
