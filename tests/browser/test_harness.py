# SPDX-License-Identifier: Apache-2.0
"""The harness sees what a person sees: outputs, errors, themes."""

import random

import pytest

from tests.browser import lab

pytestmark = pytest.mark.browser


def test_run_all_gives_the_text_of_each_cell(open_notebook):
    a, b = random.sample(range(1000), 2)
    cells = open_notebook([f"x = {a}\nprint(x)", f"x * {b}", "import tilekit\ntilekit.__name__"]).run_all()
    assert [cell.text.strip() for cell in cells] == [str(a), str(a * b), "'tilekit'"]


def test_a_failed_cell_is_told_from_one_that_did_not_run(open_notebook):
    notebook = open_notebook(["1 / 0"])
    assert [(cell.ran, cell.failed) for cell in notebook.cells()] == [(False, False)]
    cells = notebook.run_all(may_fail=True)
    assert [(cell.ran, cell.failed) for cell in cells] == [(True, True)]
    assert "ZeroDivisionError" in cells[0].text


def test_a_failing_cell_is_a_failure_unless_allowed(open_notebook):
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        open_notebook(["1 / 0"]).run_all()


def test_each_notebook_has_a_kernel_of_its_own(open_notebook):
    cells = open_notebook(["'cells' in globals(), len(In)"]).run_all()
    assert cells[0].text.strip() == "(False, 2)"


def test_where_a_notebook_was_closed_the_next_one_finds_nothing_of_it(desk):
    first = desk.open(["left = 1"])
    first.run_all()
    first.set_theme(lab.DARK)
    desk.close(first)
    second = desk.open(["'left' in globals()"])
    assert second.page is first.page
    assert second.page.evaluate("() => document.body.dataset.jpThemeName") == lab.LIGHT
    assert [cell.text.strip() for cell in second.run_all()] == ["False"]
    desk.close(second)


def test_cells_in_the_place_of_others_have_run_nowhere_and_know_what_those_left(share_notebook):
    number = random.randrange(1000)
    share_notebook([f"left = {number}", "1"]).run_all()
    notebook = share_notebook(["left"])
    assert [(cell.source, cell.ran) for cell in notebook.cells()] == [("left", False)]
    assert [cell.text.strip() for cell in notebook.run_all()] == [str(number)]


def test_the_dark_theme_is_darker(open_notebook):
    notebook = open_notebook(["1"])
    notebook.run_all()

    def brightness() -> int:
        rgb = notebook.page.evaluate("() => getComputedStyle(document.querySelector('.jp-Notebook')).backgroundColor")
        return sum(int(part) for part in rgb.removeprefix("rgb(").removesuffix(")").split(","))

    light = brightness()
    notebook.set_theme(lab.DARK)
    assert brightness() < light


@pytest.mark.parametrize("url", ["http://outside.invalid/x", "http://192.0.2.1/x"])
def test_a_request_to_the_outside_is_refused_and_seen(open_notebook, url):
    notebook = open_notebook(["1"])
    fetch = "url => fetch(url, {mode: 'no-cors'}).then(() => 'answered', () => 'refused')"
    assert notebook.page.evaluate(fetch, url) == "refused"
    assert notebook.outside == [url]
    assert "ERR_NAME_NOT_RESOLVED" in notebook.report()
    notebook.outside.clear()
