# SPDX-License-Identifier: Apache-2.0
"""The first notebook, as a person meets it in JupyterLab."""

import pathlib

import pytest

from tests.browser import lab

pytestmark = pytest.mark.browser

HELLO = pathlib.Path(__file__).parents[2] / "notebooks" / "01_hello.ipynb"


def test_the_hello_notebook_runs_from_top_to_bottom(open_notebook, artifact):
    notebook = open_notebook(HELLO)
    cells = notebook.run_all()
    kernels = [cell for cell in cells if cell.source.startswith("%%tilus")]
    assert kernels
    assert all("sm_" in cell.text for cell in kernels), [cell.text for cell in kernels]
    notebook.screenshot(artifact("light.png"))
    notebook.set_theme(lab.DARK)
    notebook.screenshot(artifact("dark.png"))
