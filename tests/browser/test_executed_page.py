# SPDX-License-Identifier: Apache-2.0
"""The HTML file that `make hello` leaves is complete in itself."""

import pathlib
import subprocess
import sys

import pytest

from tests.browser import lab

pytestmark = pytest.mark.browser

SCRIPT = pathlib.Path(__file__).parents[2] / "notebooks" / "execute.py"


def test_the_executed_page_asks_nothing_of_the_network(chromium, tmp_path: pathlib.Path):
    source, page = tmp_path / "some.ipynb", tmp_path / "some.html"
    lab.write_notebook(source, ["from IPython.display import HTML\nHTML('<table id=passes><tr><td>before</table>')"])
    subprocess.run([sys.executable, SCRIPT, source, "--html", page], check=True)
    view = lab.Notebook(chromium.new_page())
    view.page.goto(page.as_uri(), wait_until="networkidle")
    assert view.page.inner_text("#passes") == "before"
    assert view.outside == [] and view.errors == []
    view.page.close()
