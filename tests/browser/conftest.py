# SPDX-License-Identifier: Apache-2.0
"""One JupyterLab and one Chromium for all browser tests; a notebook with its kernel for each test, or for a module."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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


@pytest.fixture(scope="session")
def desk(lab_server: lab.LabServer, chromium: BrowserContext) -> lab.Desk:
    return lab.Desk(lab_server, chromium)


@pytest.fixture
def look_back(
    lab_server: lab.LabServer, artifact: Callable[[str], pathlib.Path], request: pytest.FixtureRequest
) -> Callable[[list[lab.Notebook]], None]:
    """For the end of a test: nothing may have asked for anything outside this machine and no error may have reached the
    page. A failing test leaves a screenshot and the console.
    """

    def look(notebooks: list[lab.Notebook]):
        failed = any(report.failed for report in request.node.stash[REPORTS].values())
        for notebook in notebooks:
            notebook.is_spoiled = failed or bool(notebook.outside or notebook.errors)
            if notebook.is_spoiled:
                notebook.screenshot(artifact("failed.png"))
                artifact("failed.txt").write_text(notebook.report() + "== server\n" + lab_server.log.read_text())
        for notebook in notebooks:
            assert not notebook.outside and not notebook.errors, notebook.report()

    return look


@pytest.fixture
def open_notebook(desk: lab.Desk, look_back: Callable[[list[lab.Notebook]], None]) -> Iterator[OpenNotebook]:
    """Open a notebook file (a copy of it), or a notebook made of these cells, with a fresh kernel."""
    opened: list[lab.Notebook] = []

    def open_(what: pathlib.Path | list[str]) -> lab.Notebook:
        opened.append(desk.open(what))
        return opened[-1]

    yield open_
    try:
        look_back(opened)
    finally:
        for notebook in opened:
            desk.close(notebook)


@dataclass
class Shared:
    """The notebook that the tests of a module share, once one of them has opened it."""

    notebook: lab.Notebook | None = None


@pytest.fixture(scope="module")
def shared(desk: lab.Desk) -> Iterator[Shared]:
    shared = Shared()
    yield shared
    if shared.notebook is not None:
        desk.close(shared.notebook)


@pytest.fixture
def share_notebook(
    desk: lab.Desk, shared: Shared, look_back: Callable[[list[lab.Notebook]], None]
) -> Iterator[Callable[[list[str]], lab.Notebook]]:
    """Put these cells into the notebook of this module in place of those that are there; its kernel goes on.

    Where a test failed, the next one has another notebook.
    """
    taken: list[lab.Notebook] = []

    def share(cells: list[str]) -> lab.Notebook:
        if shared.notebook is None:
            shared.notebook = desk.open(cells)
        else:
            shared.notebook.replace_cells(cells)
        taken.append(shared.notebook)
        return shared.notebook

    yield share
    try:
        look_back(taken)
    finally:
        for notebook in taken:
            if notebook.is_spoiled:
                desk.close(notebook)
                shared.notebook = None
            else:
                notebook.set_theme(lab.LIGHT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    report: pytest.TestReport = yield
    item.stash.setdefault(REPORTS, {})[report.when] = report
    return report
