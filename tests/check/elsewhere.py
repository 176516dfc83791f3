# SPDX-License-Identifier: Apache-2.0
"""The kernels that are not in tests/kernels, run as a person would: notebooks, the pages of docs, the benchmarks' cell.

No test by itself: test_no_false_alarms.py has it run under check.
"""

import re
from pathlib import Path

import nbformat
import pytest
import torch

from benchmarks import budgets
from tests.notebook.cells import Notebook
from tests.repository import pages

ROOT = Path(__file__).parents[2]
LOAD = "%load_ext tilekit"


@pytest.fixture
def notebook():
    shell = Notebook()
    yield shell
    shell.close()


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook(notebook, path, monkeypatch):
    monkeypatch.chdir(path.parent)
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            may_fail = "raises-exception" in cell.metadata.get("tags", ())
            (notebook.run if may_fail else notebook.ran)(cell.source)


def test_the_readme(notebook):
    for cell in re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL):
        notebook.ran(cell)


def test_the_pages_of_docs():
    pages.instruction_and_emitter()


def test_the_cell_of_the_benchmarks(notebook):
    """Every other kernel that is measured is one of tests/kernels."""
    ours = [path for path in (ROOT / "benchmarks").glob("*.py") if path.name != "tilus_kernels.py"]  # which a peer runs
    texts = {path: path.read_text() for path in ours}
    assert {path.name: text.count("Script)") for path, text in texts.items() if "Script)" in text} == {"budgets.py": 1}
    x, y, z = torch.randn(3, 4096)
    notebook.ran(LOAD)
    notebook.shell.user_ns.update(x=x, y=y, z=z)
    notebook.ran(budgets._CELL.partition('cell = """')[2].partition('"""')[0])
    assert torch.equal(z, x + y)
