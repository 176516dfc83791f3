# SPDX-License-Identifier: Apache-2.0
"""What a notebook shows of a tuning: a plot that grows, and the copy that it leaves."""

from collections.abc import Iterator

import pytest

from tests.notebook.kernels import Kernel, kernel

PLOTLY = "application/vnd.plotly.v1+json"

COPY = """\
%load_ext tilekit
import numpy as np
import tilekit
from tilekit import float32
from tilekit.jit import progress
from tilekit.jit.tuning import session
from tilekit.notebook import tuning

progress.PATIENCE_S = session._TICK_S = tuning._REDRAW_S = 0.0

@tilekit.autotune("block", [32, 64, 128])
class Copy(tilekit.Script):
    def __init__(self, block: int):
        super().__init__()
        self.block = block

    def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        self.static_assert(self.block != 64, "not so many")
        self.attrs.blocks = [1024 // self.block]
        self.attrs.warps = 1
        gx = self.global_view(x_ptr, dtype=float32, shape=[1024])
        gy = self.global_view(y_ptr, dtype=float32, shape=[1024])
        at = self.blockIdx.x * self.block
        self.store_global(gy, self.load_global(gx, offsets=[at], shape=[self.block]), offsets=[at])

copy, x, y = Copy(), np.ones(1024, np.float32), np.zeros(1024, np.float32)
"""


@pytest.fixture(scope="module")
def notebook(tmp_path_factory) -> Iterator[Kernel]:
    with kernel(tmp_path_factory.mktemp("tuning")) as there:
        there.ran(COPY)
        yield there


def test_a_tuning_is_a_live_plot_that_leaves_a_copy_which_needs_no_kernel(notebook: Kernel):
    reply = notebook.ran("found = copy.tune(x, y)")
    assert reply.widgets == 1, "one live figure"
    (left,) = (data for data in reply.shown.values() if data["text/plain"])
    assert left[PLOTLY]["data"][0]["type"] == "bar" and len(left[PLOTLY]["data"][0]["y"]) == 2
    assert left["text/plain"].startswith(
        "Copy-d16-d16 · sm_90a on the CPU: 3 schedules, 1 does not compile, 2 estimated"
    )
    assert "not so many" in left["text/html"] and "<script" not in left["text/html"]
    bars = [text for text in reply.history if "of 3 schedules tried" in text]
    assert bars and all("Copy: " in text for text in bars), "a bar in words beside it"


def test_a_table_of_schedules_is_the_value_of_a_cell(notebook: Kernel):
    reply = notebook.ran("copy(x, y); copy.schedules")
    assert reply.value is not None and reply.value.splitlines()[1].split()[:2] == ["block", "compiled"]
    assert reply.widgets == 0


def test_a_tilus_cell_names_the_schedule_that_was_chosen(notebook: Kernel):
    reply = notebook.ran("%%tilus\nfound = copy.tune(x, y)\ncopy(x, y)")
    assert reply.text.startswith("Copy(block=") or "\nCopy(block=" in reply.text
