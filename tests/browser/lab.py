# SPDX-License-Identifier: Apache-2.0
"""JupyterLab on loopback, driven in headless Chromium.

No network, no configuration of the user's, nothing written to the checkout. Waiting is on what the page shows, never on
a clock: a slow machine takes longer, a fast one does not notice.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.caches import new_cache

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

CHROMIUM_FLAGS = [
    "--no-sandbox",  # Chromium refuses its sandbox to root
    "--disable-gpu",
    "--disable-dev-shm-usage",  # containers have 64 MB there
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--font-render-hinting=none",  # the same glyph widths on every machine
    "--force-color-profile=srgb",
    # Refuses what leaves this machine. Playwright's own way, routing, would switch the page's cache off.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]

LAB_OPTIONS = [
    "--no-browser",
    "--allow-root",
    "--ip=127.0.0.1",
    "--ServerApp.port_retries=0",
    "--IdentityProvider.token=",
    "--ServerApp.password=",
    "--ServerApp.disable_check_xsrf=True",
    "--ServerApp.terminals_enabled=False",
    "--LabApp.expose_app_in_browser=True",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.news_url=None",
    "--LabApp.extension_manager=readonly",
    "--MappingKernelManager.default_kernel_name=python3",
]

LAB_SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "apputils-extension/themes": {"theme": "JupyterLab Light"},
    "docmanager-extension/plugin": {"autosave": False},
    "notebook-extension/tracker": {
        "windowingMode": "none",
        "scrollPastEnd": False,
    },  # cells off screen stay in the page
}

LIGHT = "JupyterLab Light"
DARK = "JupyterLab Dark"

# a machine that runs other tests at the same time paints late: a time that is asserted is asserted times this
BUSY = 10


def find_chromium() -> str | None:
    """The browser to drive: $CHROMIUM, or the first one on the PATH."""
    names = ["chromium", "chromium-browser", "google-chrome"]
    return os.environ.get("CHROMIUM") or next((path for path in map(shutil.which, names) if path), None)


# --- the server -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabServer:
    url: str
    home: pathlib.Path

    @property
    def notebooks(self) -> pathlib.Path:
        return self.home / "notebooks"

    @property
    def log(self) -> pathlib.Path:
        return self.home / "lab.log"

    def request(self, method: str, path: str) -> bytes:
        with urllib.request.urlopen(urllib.request.Request(self.url + path, method=method), timeout=10) as answer:
            return answer.read()

    def end(self, notebook: str):
        """End the kernel of a notebook."""
        for session in json.loads(self.request("GET", "/api/sessions")):
            if session["path"] == notebook:
                self.request("DELETE", f"/api/sessions/{session['id']}")


@contextlib.contextmanager
def lab_server(home: pathlib.Path) -> Iterator[LabServer]:
    """Serve JupyterLab from the folder `home`, which holds everything that it and its kernels write."""
    server = LabServer(f"http://127.0.0.1:{free_port()}", home)
    server.notebooks.mkdir()
    write_settings(home / "settings")
    command = [sys.executable, "-m", "jupyter", "lab", *LAB_OPTIONS, f"--ServerApp.root_dir={server.notebooks}"]
    with server.log.open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--port={server.url.rpartition(':')[2]}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | own_folders(home),
            cwd=server.notebooks,
            start_new_session=True,
        )
    try:
        wait_until_up(server, process)
        yield server
    finally:
        stop(server, process)


def write_settings(folder: pathlib.Path):
    for plugin, settings in LAB_SETTINGS.items():
        file = folder / "@jupyterlab" / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings))


def own_folders(home: pathlib.Path) -> dict[str, str]:
    names = {
        "HOME": "user",
        "XDG_CACHE_HOME": "cache",
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "IPYTHONDIR": "ipython",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    }
    for folder in names.values():
        (home / folder).mkdir(exist_ok=True)
    new_cache(home / names["XDG_CACHE_HOME"] / "tilekit")
    return {variable: str(home / folder) for variable, folder in names.items()}


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until_up(server: LabServer, process: subprocess.Popen[bytes], timeout_s: float = 120):
    deadline = time.monotonic() + timeout_s
    while True:
        with contextlib.suppress(OSError):
            server.request("GET", "/api/status")
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("JupyterLab did not start:\n" + server.log.read_text()[-4000:])
        time.sleep(0.05)  # a server that is not up yet has nothing to wait on


def stop(server: LabServer, process: subprocess.Popen[bytes]):
    with contextlib.suppress(OSError):
        server.request("POST", "/api/shutdown")  # ends the kernels too
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


# --- the browser ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def chromium() -> Iterator[BrowserContext]:
    """A headless browser whose pages share their cache, so that JupyterLab's scripts are loaded once."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=CHROMIUM_FLAGS, headless=True)
        yield browser.new_context(
            viewport={"width": 1400, "height": 1000}, reduced_motion="reduce", service_workers="block"
        )
        browser.close()


@dataclass(frozen=True)
class Cell:
    """A code cell as the page shows it."""

    source: str
    text: str
    ran: bool
    failed: bool


class Notebook:
    """An open notebook: its page, what it asked of the network, and what went wrong in it."""

    def __init__(self, page: Page):
        self.page = page
        self.name = ""
        self.is_spoiled = False
        self.outside: list[str] = []
        self.errors: list[str] = []
        self.console: list[str] = []
        page.set_default_timeout(60_000)
        page.on("request", lambda request: self._note(request.url))
        page.on("websocket", lambda socket: self._note(socket.url))
        page.on("pageerror", lambda error: self.errors.append(f"{error.name}: {error.message}\n{error.stack}"))
        page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))

    def _note(self, url: str):
        if not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "file:", "blob:", "data:")):
            self.outside.append(url)

    def open(self, server: LabServer, name: str):
        """Load JupyterLab with a notebook, or open the notebook where JupyterLab is loaded."""
        self.name = name
        if self.page.url.startswith(server.url):
            open_ = "path => jupyterapp.commands.execute('docmanager:open', { path }).then(() => {})"
            self.page.evaluate(open_, name)
        else:
            self.page.goto(f"{server.url}/doc/tree/{name}?reset", wait_until="domcontentloaded")
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
        self.page.wait_for_function(
            """() => {
                const panel = window.jupyterapp?.shell.currentWidget;
                return panel?.context?.isReady && panel.sessionContext.session?.kernel?.status === 'idle';
            }"""
        )

    def close(self):
        """Take the notebook off the page, whatever was not saved."""
        self.set_theme(LIGHT)
        self.page.evaluate("() => jupyterapp.shell.currentWidget.dispose()")
        self.page.wait_for_selector(".jp-NotebookPanel", state="detached")
        # JupyterLab complains where it is closed while it still asks something of its kernel
        self.errors.clear()
        self.console.clear()

    def replace_cells(self, sources: list[str]):
        """Take the cells out, and put in others."""
        self.page.evaluate(
            """sources => {
                const model = jupyterapp.shell.currentWidget.content.model.sharedModel;
                model.transact(() => {
                    model.deleteCellRange(0, model.cells.length);
                    model.insertCells(0, sources.map(source => ({ cell_type: 'code', source })));
                });
                jupyterapp.shell.currentWidget.content.activeCellIndex = 0;
            }""",
            sources,
        )

    def run_all(self, *, may_fail: bool = False) -> list[Cell]:
        """Run all cells as the menu does, wait until every output is painted, and read the code cells."""
        self.page.evaluate(
            """() => {
                window.runAll = 'running';
                const settle = outcome => () => { window.runAll = outcome; };
                window.jupyterapp.commands.execute('notebook:run-all-cells').then(settle('done'), settle('refused'));
            }"""
        )
        self.page.wait_for_function("() => window.runAll !== 'running'")
        self.page.wait_for_function(
            """() => window.jupyterapp.shell.currentWidget.content.widgets
                .filter(cell => cell.model.type === 'code')
                .every(cell => {
                    const painted = [...cell.outputArea.node.querySelectorAll('.jp-OutputArea-output')];
                    return painted.length >= cell.outputArea.model.length
                        && painted.every(output => output.childNodes.length > 0);
                })"""
        )
        cells = self.cells()
        if not may_fail and (bad := [cell for cell in cells if cell.failed or not cell.ran]):
            raise AssertionError(f"this cell failed:\n{bad[0].source}\n---\n{bad[0].text}")
        return cells

    def tell(self, code: str):
        """Run something in the kernel that is in no cell."""
        answer = self.page.evaluate(
            """async code => {
                const { kernel } = jupyterapp.shell.currentWidget.sessionContext.session;
                return (await kernel.requestExecute({ code }).done).content;
            }""",
            code,
        )
        assert answer["status"] == "ok", answer

    def cells(self) -> list[Cell]:
        read = self.page.evaluate(
            """() => window.jupyterapp.shell.currentWidget.content.widgets
                .filter(cell => cell.model.type === 'code')
                .map(cell => ({
                    source: cell.model.sharedModel.getSource(),
                    text: [...cell.outputArea.node.querySelectorAll('.jp-OutputArea-output')]
                        .map(output => output.innerText).join('\\n'),
                    ran: cell.model.executionCount !== null,
                    failed: cell.model.sharedModel.getOutputs().some(output => output.output_type === 'error'),
                }))"""
        )
        return [Cell(**cell) for cell in read]

    def set_theme(self, name: str):
        """Switch to LIGHT or DARK without a reload."""
        if self.page.evaluate("() => document.body.dataset.jpThemeName") == name:
            return
        self.page.evaluate("name => window.jupyterapp.commands.execute('apputils:change-theme', {theme: name})", name)
        self.page.wait_for_function("name => document.body.dataset.jpThemeName === name", arg=name)
        # JupyterLab cannot bear another change while its splash fades
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    def screenshot(self, file: pathlib.Path):
        """Paint the whole notebook, from its first cell to its last, into a PNG file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        before = self.page.viewport_size
        assert before is not None
        hidden = self.page.evaluate(
            """() => {
                const scroller = document.querySelector('.jp-WindowedPanel-outer');
                return scroller ? scroller.scrollHeight - scroller.clientHeight : 0;
            }"""
        )
        self.page.set_viewport_size({"width": before["width"], "height": before["height"] + hidden})
        self.page.screenshot(path=file)
        self.page.set_viewport_size(before)

    def report(self) -> str:
        parts = {"page errors": self.errors, "requests to the outside": self.outside, "console": self.console}
        return "\n".join(f"== {title}\n" + "\n".join(lines) + "\n" for title, lines in parts.items())


class Desk:
    """JupyterLab in the browser, where notebooks are opened and closed.

    It takes seconds to load. So a page from which a notebook was closed is where the next one is opened, unless
    something went wrong there.
    """

    def __init__(self, server: LabServer, browser: BrowserContext):
        self._server = server
        self._browser = browser
        self._free: list[Notebook] = []
        self._numbers = itertools.count(1)

    def open(self, what: pathlib.Path | list[str]) -> Notebook:
        """Open a copy of a notebook file, or a notebook made of these cells, with a folder and a kernel of its own."""
        folder = self._server.notebooks / str(next(self._numbers))
        folder.mkdir()
        if isinstance(what, list):
            file = folder / "cells.ipynb"
            write_notebook(file, what)
        else:
            file = pathlib.Path(shutil.copy(what, folder))
        notebook = self._free.pop() if self._free else Notebook(self._browser.new_page())
        notebook.open(self._server, str(file.relative_to(self._server.notebooks)))
        return notebook

    def close(self, notebook: Notebook):
        if notebook.is_spoiled:
            notebook.page.close()
            write_settings(self._server.home / "settings")  # the page may have changed the theme
        else:
            notebook.close()
            self._free.append(notebook)
        self._server.end(notebook.name)


def write_notebook(file: pathlib.Path, cells: list[str]):
    """Write a notebook with these code cells."""
    blank = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    notebook = {
        # without a kernel's name JupyterLab asks the person which one to start
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
        "cells": [blank | {"id": f"cell-{number}", "source": source} for number, source in enumerate(cells)],
    }
    file.write_text(json.dumps(notebook))
