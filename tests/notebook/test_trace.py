# SPDX-License-Identifier: Apache-2.0
"""A cell whose kernels are traced links to the page."""

import os
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

import tilekit
from tests.notebook.cells import CALL, VECTOR_ADD
from tilekit.tools import lower_trace as lt


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if "LOWER_TRACE" in name]:
        monkeypatch.delenv(name)
    yield
    lt.disable()


def links(html: str) -> list[str]:
    return re.findall(r'<a href="([^"]+)"', html)


def test_a_cell_links_to_the_page_of_its_kernels(notebook, tmp_path):
    lt.enable("html", tmp_path / "my traces")
    ran = notebook.ran(f"%%tilus\n{VECTOR_ADD}{CALL}")
    (shown,) = ran.shown
    (link,) = links(shown.data["text/html"])
    assert re.fullmatch(r"my%20traces/[\w.-]+/report\.html", link)
    assert "trace: my traces/" in shown.data["text/plain"]
    assert ran.stdout == "", "the lines of a terminal are not said beside it"
    assert links(notebook.ran("%%tilus\nadd(n, x, y, z)").html) == [], "what was traced once is not traced again"


def test_a_cell_without_the_magic_links_once(notebook, tmp_path):
    notebook.ran(f"%%tilus\n{VECTOR_ADD}{CALL}")
    with tilekit.tracing("html", tmp_path):
        ran = notebook.ran("add(n, x, y, z); add(n - 1, x, y, z)")
    (shown,) = ran.shown
    assert len(links(shown.data["text/html"])) == 1 and shown.data["text/plain"].startswith("trace: ")
    assert ran.stdout == ""


def test_a_trace_in_the_terminal_has_no_link(notebook, tmp_path):
    with tilekit.tracing("terminal", tmp_path):
        ran = notebook.ran(f"%%tilus\n{VECTOR_ADD}{CALL}")
    assert links(ran.html) == []
    assert "tile/layout_inference" in ran.stdout and "tilekit: VectorAdd" in ran.stdout


def test_case_99_env_before_load_ext_works_and_the_cell_links_to_the_report(tmp_path, monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "tiles.ipynb"))
    cells = ["%env TL_LOWER_TRACE=1", "%load_ext tilekit", f"%%tilus\n{VECTOR_ADD}{CALL}"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = notebook.cells[-1].outputs
    (link,) = [link for output in outputs for link in links(output.get("data", {}).get("text/html", ""))]
    assert link == "tmp/lower_trace_dir/tiles/report.html"
    assert (tmp_path / link).read_text().startswith("<!doctype html>")
    assert not list(Path(tmp_path, "tmp", "lower_trace_dir").glob("ipykernel*"))
