# SPDX-License-Identifier: Apache-2.0
"""The panels of a cell's kernels, at work: what the source panel asks for is done to the kernel, and told back.

A front end's message may arrive in any thread, also beside a running cell, so callbacks only hand over; one thread of
this module does the work, one request after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tilekit.diag import TilekitError, ToolchainError
from tilekit.jit.compare import Comparison
from tilekit.jit.kernel import Kernel, seconds
from tilekit.notebook.edits import NotebookEdits
from tilekit.notebook.panels.bar import Entry, PanelBar
from tilekit.notebook.panels.panel import Panel
from tilekit.notebook.panels.passes import PassPanel
from tilekit.notebook.panels.source import SourcePanel
from tilekit.notebook.panels.steps import Steps
from tilekit.toolchain.messages import Severity

# what the editor calls them
_SEVERITIES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "info"}

_worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tilekit-panels")


class Desk:
    """The bar of one cell and the panels that it opens."""

    def __init__(self, kernels: Sequence[Kernel], edits: NotebookEdits) -> None:
        self.kernels = tuple(kernels)
        self.edits = edits
        self.bar = PanelBar([], self._make)
        self.refresh()

    def take_over(self, before: Desk) -> None:
        """Open what was open in the panels of the cell's last run, and end those."""
        shown, index = before.bar.shown, before.bar.kernel
        before.bar.close()
        self.bar.kernel = index if index < len(self.kernels) else 0
        self.bar.shown = shown

    def refresh(self) -> None:
        """Say again which kernels there are, and which of them run an edit."""
        self.bar.kernels = [{"name": entry.name, "patched": entry.patched} for entry in map(_entry, self.kernels)]

    def _make(self, kind: str, index: int) -> Panel:
        kernel = self.kernels[index]
        if kind == "passes":
            return PassPanel(_entry(kernel).name, Steps(kernel.trace))
        return SourceDesk(kernel, self).panel


class SourceDesk:
    """The source panel of one kernel."""

    def __init__(self, kernel: Kernel, desk: Desk) -> None:
        self.kernel = kernel
        self.desk = desk
        generated = kernel.generated
        self.panel = SourcePanel(
            _entry(kernel).name,
            kernel.source if generated is None else generated.source,
            text=kernel.source,
            recompile=self.recompile,
            revert=self.revert,
            status=" · ".join(desk.edits.remarks(kernel)),
        )

    def recompile(self, text: str) -> Future[None]:
        """Compile the text in place, then run it beside the generated kernel."""
        return _worker.submit(self._settle, lambda: self._recompile(text))

    def revert(self) -> Future[None]:
        """Go back to the generated source."""
        return _worker.submit(self._settle, self._revert)

    def _settle(self, work: Any) -> None:
        panel = self.panel
        try:
            work()
        except TilekitError as error:
            panel.set_trait("markers", _markers(error))
            panel.set_trait("status", f"{error.message}: the last good build stays in place")
            panel.set_trait("comparison", "")
            panel.set_trait("verdict", "failed")
        finally:
            self.desk.refresh()
            panel.set_trait("busy", False)

    def _recompile(self, text: str) -> None:
        panel, seen = self.panel, self.kernel.source
        self.kernel.recompile(text)
        told = self.desk.edits.store(self.kernel, text, seen)
        panel.set_trait("text", text)
        panel.set_trait("markers", [])
        if not self.kernel.patched:
            self._plain("this is the generated source")
            return
        panel.set_trait("status", " · ".join(["PATCHED: every call of this kernel runs the edit", *told]))
        try:
            found = self.kernel.compare()
        except TilekitError as error:
            # the edit is compiled and stays; what it does wrong is for the person to mend or revert
            panel.set_trait("comparison", error.message)
            panel.set_trait("verdict", "failed")
            return
        panel.set_trait("comparison", f"{found} · {_times(found)}")
        panel.set_trait("verdict", "same" if found.same else "differs")

    def _revert(self) -> None:
        self.kernel.revert()
        told = self.desk.edits.revert(self.kernel)
        self.panel.set_trait("text", self.kernel.source)
        self.panel.set_trait("markers", [])
        self._plain(" · ".join(["reverted to the generated source", *told]))

    def _plain(self, status: str) -> None:
        self.panel.set_trait("status", status)
        self.panel.set_trait("comparison", "")
        self.panel.set_trait("verdict", "")


def _entry(kernel: Kernel) -> Entry:
    chosen = ", ".join(f"{key}={value}" for key, value in kernel.schedule.items())
    return Entry(f"{kernel.script}({chosen})" if chosen else kernel.script, kernel.patched)


def _markers(error: TilekitError) -> list[dict[str, Any]]:
    if not isinstance(error, ToolchainError):
        return []
    messages: Any = error.data.get("messages", ())
    return [{"line": m.line, "column": m.col, "severity": _SEVERITIES[m.severity], "message": m.text} for m in messages]


def _times(found: Comparison) -> str:
    return f"generated {seconds(found.generated_seconds)}, edited {seconds(found.edited_seconds)}"
