# SPDX-License-Identifier: Apache-2.0
"""The first notebook, as a person meets it in JupyterLab."""

import json
import pathlib
import re

import pytest

from tests.browser import lab

pytestmark = pytest.mark.browser

HELLO = pathlib.Path(__file__).parents[2] / "notebooks" / "01_hello.ipynb"


def test_the_hello_notebook_runs_from_top_to_bottom(open_notebook, artifact):
    notebook = open_notebook(HELLO)
    cells = notebook.run_all()
    kernels = [cell for cell in cells if cell.source.startswith("%%tilus")]
    assert [re.match(r"\w+", cell.text)[0] for cell in kernels] == ["VectorAdd", "Softmax"]
    assert all(re.search(r" sm_\w+ · .* · ran in ", cell.text) for cell in kernels), [cell.text for cell in kernels]
    agreements = [cell.text for cell in cells if "agrees with torch" in cell.text]
    assert len(agreements) == 2
    assert all("agrees with torch: True" in text for text in agreements)
    notebook.screenshot(artifact("light.png"))
    notebook.set_theme(lab.DARK)
    notebook.screenshot(artifact("dark.png"))


def test_it_is_kept_without_outputs():
    cells = json.loads(HELLO.read_text())["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
