# SPDX-License-Identifier: Apache-2.0
"""`%%tilus --bench`, and how a measurement looks below a cell; no test looks at a clock."""

import pytest

from tests.notebook.cells import CALL, VECTOR_ADD, Notebook
from tilekit.diag import ArgumentError, KernelError, LanguageError
from tilekit.jit import progress
from tilekit.jit.benched import Bench
from tilekit.notebook import running
from tilekit.runtime import benchmark

MIME = "application/vnd.plotly.v1+json"
DEFINE = VECTOR_ADD + "\nn = 1000\nx, y, z = torch.randn(n), torch.randn(n), torch.empty(n)\nadd = VectorAdd()\n"


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr(benchmark, "_MOST_CALLS", 1)


@pytest.fixture
def defined(notebook: Notebook) -> Notebook:
    notebook.ran("%%tilus\n" + DEFINE)
    return notebook


def test_the_kernel_that_a_cell_launched_last_is_measured_and_shown_below_its_line(notebook: Notebook):
    ran = notebook.ran(f"%%tilus --bench\n{VECTOR_ADD}{CALL}torch.equal(z, x + y)")
    assert ran.value is True
    line, table = ran.shown
    assert line.data["text/plain"].startswith("VectorAdd · sm_90a · CPU simulator · ")
    title, head, row, *remarks = table.data["text/plain"].splitlines()
    assert title == "VectorAdd · sm_90a · CPU simulator" and head.split() == ["program", "median", "rounds", "GB/s"]
    assert row.startswith("VectorAdd  ")
    assert "results compared with nothing" in remarks
    assert 'class="tk-bench"' in table.data["text/html"] and MIME not in table.data


def test_peers_and_work_are_what_the_cell_says(defined: Notebook):
    ran = defined.ran(
        "%%tilus --bench\nagainst = {'torch': lambda x, y: x + y}\ndef flops(x, y):\n    return len(x)\nadd(n, x, y, z)"
    )
    assert "TFLOP/s" in ran.text and "\ntorch " in ran.text and "compared with torch in float64" in ran.text


def test_what_an_earlier_cell_said_does_not_count(defined: Notebook):
    defined.ran("against = {'torch': 1}")
    assert "compared with nothing" in defined.ran("%%tilus --bench\nadd(n, x, y, z)").text


def test_without_the_option_nothing_is_measured(defined: Notebook):
    ran = defined.ran("%%tilus\nagainst = {'torch': torch.add}\nadd(n, x, y, z)")
    assert len(ran.shown) == 1 and "tk-bench" not in ran.html


def test_a_kernel_that_only_ran_in_check_mode_is_measured_all_the_same(defined: Notebook):
    ran = defined.ran("%%tilus --check --bench\nagainst = {'torch': lambda x, y: x + y}\nadd(n, x, y, z)")
    assert "checked all" in ran.text and "\ntorch " in ran.text and "compared with torch in float64" in ran.text


def test_a_cell_that_launches_nothing_is_told_so(defined: Notebook):
    ran = defined.run("%%tilus --check --bench\nn")
    assert isinstance(ran.error, LanguageError) and ran.error.code == "TK802"
    assert "--bench measures the kernel that the cell launches, and this cell launches none" in ran.stdout
    line, marks = ran.stdout.splitlines()[1:3]
    at = line.index("--bench")
    assert marks[at:].strip() == "^" * len("--bench") and marks.index("^") == at


def test_arguments_that_are_gone_are_told_of_at_the_option(defined: Notebook):
    ran = defined.run("%%tilus --bench\nadd(n, x, y, torch.empty(n))")
    assert isinstance(ran.error, ArgumentError) and ran.error.code == "TK634"
    assert "%%tilus --bench" in ran.stdout


def test_a_wrong_kernel_fails_its_cell_and_still_has_its_line(defined: Notebook):
    ran = defined.run("%%tilus --bench\nagainst = {'torch': torch.sub}\nadd(n, x, y, z)")
    assert isinstance(ran.error, KernelError) and "VectorAdd differs from torch in float64" in ran.stdout
    assert ran.text.startswith("VectorAdd · ")


def test_a_terminal_prints_the_table(defined: Notebook):
    with defined.as_terminal():
        ran = defined.ran("%%tilus --bench\nadd(n, x, y, z)")
    assert "VectorAdd  " in ran.stdout and "say nothing about a GPU" in ran.stdout


SIZES = "add.bench(sizes=[256, 1024], make=lambda n: (n, torch.randn(n), torch.randn(n), torch.empty(n)), rounds=1)"


def test_over_sizes_a_plot_follows_the_table(defined: Notebook):
    ran = defined.ran(SIZES)
    table, plot = ran.shown
    assert isinstance(ran.value, Bench) and "tk-bench" in table.data["text/html"]
    assert [list(line["x"]) for line in plot.data[MIME]["data"]] == [[256, 1024]]
    assert plot.data["text/plain"] == "the same over the sizes, as a plot"


def test_a_long_measurement_shows_how_far_it_is_in_any_cell(defined: Notebook, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(progress, "LONG_S", 1e9)
    shown: list[str] = []
    publish = defined.publisher.publish

    def record(data, *args, **kwargs):
        shown.append(data["text/plain"])
        publish(data, *args, **kwargs)

    monkeypatch.setattr(defined.publisher, "publish", record)
    defined.ran(SIZES)
    assert any("VectorAdd: measuring at 1024" in text for text in shown)
    shown.clear()
    monkeypatch.setattr(running, "TICK_S", 0.0)
    defined.ran("%%tilus --bench\nadd(n, x, y, z)")
    assert any("VectorAdd: measuring" in text for text in shown) and "measuring" not in shown[-1]


def test_an_unloaded_extension_shows_it_no_more(defined: Notebook):
    defined.ran("%unload_ext tilekit")
    try:
        assert defined.ran(SIZES).shown == []
    finally:
        defined.ran("%load_ext tilekit")
