# SPDX-License-Identifier: Apache-2.0
"""One JupyterLab and one Chromium for all browser tests; one page and one kernel for each test."""

from __future__ import annotations

import pathlib
import re
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser import lab

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

ARTIFACTS = pathlib.Path(__file__).parent / "artifacts"
REPORTS = pytest.StashKey[dict[str, pytest.TestReport]]()

OpenNotebook = Callable[[pathlib.Path | list[str]], lab.Notebook]


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lab.LabServer]:
    with lab.lab_server(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="session")
def chromium() -> Iterator[BrowserContext]:
    with lab.chromium() as context:
        yield context


@pytest.fixture
def artifact(request: pytest.FixtureRequest) -> Callable[[str], pathlib.Path]:
    """Where a test leaves a picture for people: `artifact("dark.png")`."""
    name = re.sub(r"\W+", "-", request.node.name)
    return lambda suffix: ARTIFACTS / f"{name}-{suffix}"


@pytest.fixture
def open_notebook(
    lab_server: lab.LabServer,
    chromium: BrowserContext,
    artifact: Callable[[str], pathlib.Path],
    request: pytest.FixtureRequest,
) -> Iterator[OpenNotebook]:
    """Open a notebook file (a copy of it), or a notebook made of these cells, with a fresh kernel.

    When the test ends, nothing may have asked for anything outside this machine and no error may have reached the
    page. A failing test leaves a screenshot and the console.
    """
    notebook = lab.Notebook(chromium.new_page())

    def open_(what: pathlib.Path | list[str]) -> lab.Notebook:
        if isinstance(what, list):
            name = "cells.ipynb"
            lab.write_notebook(lab_server.notebooks / name, what)
        else:
            name = what.name
            shutil.copy(what, lab_server.notebooks / name)
        notebook.open(lab_server, name)
        return notebook

    yield open_
    is_clean = not notebook.outside and not notebook.errors
    if not is_clean or any(report.failed for report in request.node.stash[REPORTS].values()):
        notebook.screenshot(artifact("failed.png"))
        artifact("failed.txt").write_text(notebook.report() + "== server\n" + lab_server.log.read_text())
    notebook.page.close()
    lab_server.reset()
    assert is_clean, notebook.report()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    report: pytest.TestReport = yield
    item.stash.setdefault(REPORTS, {})[report.when] = report
    return report
