# SPDX-License-Identifier: Apache-2.0
"""The script behind `make hello`."""

import pathlib
import random
import subprocess
import sys

from tests.browser import lab

SCRIPT = pathlib.Path(__file__).parents[2] / "notebooks" / "execute.py"


def execute(tmp_path: pathlib.Path, cells: list[str]) -> tuple[subprocess.CompletedProcess[str], str]:
    notebook, page = tmp_path / "some.ipynb", tmp_path / "out" / "some.html"
    lab.write_notebook(notebook, cells)
    command = [sys.executable, str(SCRIPT), str(notebook), "--html", str(page)]
    return subprocess.run(command, capture_output=True, text=True), page.read_text()


def test_what_each_cell_says_is_printed_and_kept(tmp_path: pathlib.Path):
    a, b = random.sample(range(10**6, 10**7), 2)
    done, page = execute(tmp_path, [f"print({a})", "quiet = 1", f"{b - 1} + quiet"])
    assert done.returncode == 0, done.stderr
    first, third, last = done.stdout.rstrip().split("In[1]\n")[1].partition("In[3]\n")[0], f"  {b}\n", done.stdout
    assert first == f"  {a}\n"
    assert f"In[3]\n{third}" in last and "In[2]" not in last
    assert last.rstrip().endswith(str(tmp_path / "out" / "some.html"))
    assert str(a) in page and str(b) in page


def test_a_failing_cell_fails_the_run_and_is_shown(tmp_path: pathlib.Path):
    done, page = execute(tmp_path, ["1 / 0", "print('not ' + 'reached')"])
    assert done.returncode == 1
    assert "ZeroDivisionError: division by zero" in done.stdout and "ZeroDivisionError" in page
    assert "not reached" not in done.stdout
