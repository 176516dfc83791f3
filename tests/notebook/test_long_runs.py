# SPDX-License-Identifier: Apache-2.0
"""Cells whose kernels run long or print much, and looks into kernels from cells."""

import re

import pytest

from tests.notebook.cells import Notebook
from tilekit.cpusim import client
from tilekit.jit import progress

SLOW = """\
import tilus
import torch
from tilus import float32, int32


class Slow(tilus.Script):
    def __call__(self, m: int32, n: int32, x_ptr: ~float32):
        self.attrs.blocks = [m]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float32, shape=[m, 128])
        acc = self.load_global(gx, offsets=[self.blockIdx.x, 0], shape=[1, 128])
        for i in range(n):
            acc += self.sum(acc, dim=1, keepdim=True) * 1e-9
        self.printf("done\\n")
        self.store_global(gx, acc, offsets=[self.blockIdx.x, 0])


slow = Slow()
x = torch.ones(96, 128)
"""


@pytest.fixture
def impatient(monkeypatch):
    """Progress is shown from the first moment on."""
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(client, "TICK_S", 0.03)


def test_a_bar_stands_below_a_cell_while_its_kernel_runs(notebook: Notebook, impatient, monkeypatch):
    shown: list[dict[str, str]] = []
    publish = notebook.publisher.publish
    monkeypatch.setattr(
        notebook.publisher, "publish", lambda data, *a, **k: (shown.append(data), publish(data, *a, **k))
    )
    notebook.ran("%%tilus\n" + SLOW)
    ran = notebook.ran("%%tilus\nslow(96, 400, x)")
    bars = [data for data in shown if "of 96 blocks" in data["text/plain"]]
    assert bars and all(re.search(r"[━╌]{24} Slow: \d+ of 96 blocks", data["text/plain"]) for data in bars)
    assert all("var(--jp-brand-color1" in data["text/html"] and "<script" not in data["text/html"] for data in bars)
    assert "blocks" not in ran.text and ran.text.startswith("Slow · ") and ran.stdout.startswith("done\n")


def test_a_cell_without_the_magic_shows_it_too_and_leaves_nothing(notebook: Notebook, impatient):
    notebook.ran(SLOW.replace("import tilus", "import tilekit as tilus").replace("from tilus", "from tilekit"))
    ran = notebook.ran("slow(96, 400, x)")
    (output,) = ran.shown
    assert output.updates >= 1 and output.data == {"text/plain": "", "text/html": ""}


def test_a_terminal_gets_no_outputs(notebook: Notebook, impatient):
    notebook.ran("%%tilus\n" + SLOW)
    with notebook.as_terminal():
        ran = notebook.ran("slow(96, 400, x)")
    assert set(ran.stdout.splitlines()[:1000]) == {"done"}


def test_a_cell_shows_a_thousand_lines_and_the_kernel_has_them_all(notebook: Notebook):
    notebook.ran("%%tilus\n" + SLOW)
    ran = notebook.ran("%%tilus\nslow(96, 0, x)\nlen(slow.printed.splitlines())")
    lines = ran.stdout.splitlines()
    assert ran.value == 96 * 128
    assert lines[:1000] == ["done"] * 1000 and lines[1000] == "… and 11,288 more lines: kernel.printed has all"


def test_lines_of_a_watched_kernel_are_those_of_its_cell(notebook: Notebook):
    notebook.ran("%%tilus\n" + SLOW + "slow(96, 3, x)")
    line = ("%%tilus\n" + SLOW).splitlines().index("            acc += self.sum(acc, dim=1, keepdim=True) * 1e-9") + 1
    ran = notebook.ran(f"slow.watch('acc', block=5, line={line}, step=1)")
    assert str(ran.value.where) == f"after line {line} of Cell In[2], step 1, block (5, 0, 0)"
    assert ran.value.where.text == "acc += self.sum(acc, dim=1, keepdim=True) * 1e-9"
    html = notebook.shell.display_formatter.format(ran.value)[0]["text/html"]
    assert "<table" in html and f"line {line} of Cell In[2]" in html
    failed = notebook.run("slow.watch('axc')")
    assert "did you mean acc?" in failed.stdout and "Traceback" not in failed.stdout
