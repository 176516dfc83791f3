# SPDX-License-Identifier: Apache-2.0
"""A kernel follows what a later cell changes, although the cell that defines it is not run again."""

import pytest

from tests.notebook.cells import Notebook

DEFINE = """\
%%tilus
import tilus
import torch
from tilus import float32

factor = 2.0


class Options:
    offset = 1.0


def scale():
    return factor


class Change(tilus.Script):
    def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        x = self.load_global(self.global_view(x_ptr, dtype=float32, shape=[32]), offsets=[0], shape=[32])
        y = x * scale() + Options.offset
        self.store_global(self.global_view(y_ptr, dtype=float32, shape=[32]), y, offsets=[0])


change_all = Change()
x, y = torch.arange(32.0), torch.zeros(32)
change_all(x, y)
"""
CALL = "change_all(x, y)\n"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("factor = 3.0", "x * 3 + 1"),
        ("Options.offset = 5.0", "x * 2 + 5"),
        ("def scale():\n    return factor + 5", "x * 7 + 1"),
    ],
)
def test_what_another_cell_changes_is_in_the_next_call(notebook: Notebook, cell: str, expected: str):
    notebook.ran(DEFINE)
    assert notebook.ran("torch.equal(y, x * 2 + 1)").value is True
    notebook.ran(cell)
    assert notebook.ran(f"{CALL}torch.equal(y, {expected})").value is True


def test_a_cell_that_changes_nothing_keeps_the_kernel(notebook: Notebook):
    notebook.ran(f"{DEFINE}before = change_all.last")
    notebook.ran("other = 3.0")
    assert notebook.ran(f"{CALL}change_all.last is before").value is True


def test_a_launch_is_as_short_as_before_within_a_cell(notebook: Notebook):
    notebook.ran(DEFINE)
    ran = notebook.ran(f"{CALL}change_all._dispatch.launch((x, y)) is change_all.last")
    assert ran.value is True
