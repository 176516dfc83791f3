# SPDX-License-Identifier: Apache-2.0
"""The kernels that are not in tests/kernels, run as a person would: notebooks, the pages of docs, the benchmarks' cell.

No test by itself: test_no_false_alarms.py has it run under check.
"""

import re
import runpy
from pathlib import Path

import nbformat
import pytest
import torch

from benchmarks import budgets, launch
from tests.kernels.machines import scheduled
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


def test_the_kernels_of_the_benchmarks(notebook, monkeypatch, tmp_path):
    """Every other kernel that is measured is one of tests/kernels."""
    ours = [path for path in (ROOT / "benchmarks").glob("*.py") if path.name != "tilus_kernels.py"]  # which a peer runs
    kernels = {path.name: path.read_text().count("Script)") for path in ours}
    assert {name for name, count in kernels.items() if count} == {"budgets.py", "launch.py", "split_k.py"}
    assert max(kernels.values()) == 1

    x, y, z = torch.randn(3, 4096)
    notebook.ran(LOAD)
    notebook.shell.user_ns.update(x=x, y=y, z=z)
    notebook.ran(budgets._CELL.partition('cell = """')[2].partition('"""')[0])
    assert torch.equal(z, x + y)

    script = launch._SCRIPT.format(language="tilekit", folder=str(tmp_path / "cache"))
    (tmp_path / "script.py").write_text(script.replace(', device="cuda"', "").replace("torch.cuda.synchronize()", ""))
    found = runpy.run_path(str(tmp_path / "script.py"))
    found["handle"](1024, *found["tensors"])
    assert torch.equal(found["tensors"][3], torch.full((1024,), 3.0))

    monkeypatch.setattr("sys.argv", ["split_k.py", "tilekit"])
    handle = runpy.run_path(str(ROOT / "benchmarks" / "split_k.py"))["SplitK"]()
    a, b, c = torch.randn(128, 512).half(), torch.randn(512, 128).half(), torch.empty(128, 128).half()
    for schedule in (handle.schedules.rows[0].schedule, handle.schedules.rows[-1].schedule):
        scheduled(handle, schedule)(128, 128, 512, a, b, c)
        assert (c.float() - a.float() @ b.float()).norm() / c.float().norm() < 1e-3
