# SPDX-License-Identifier: Apache-2.0
"""The panels of a cell's kernels, and the source panel at work: what it asks for is done to the kernel, and told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import asdict
from typing import Any, cast

from tilekit.diag import KernelError, TilekitError, ToolchainError
from tilekit.jit.kernel import Kernel
from tilekit.jit.observer import Identity
from tilekit.notebook.edits import NotebookEdits
from tilekit.notebook.panels.at_work import RUNS_EDIT, AtWork
from tilekit.notebook.panels.bar import Entry, PanelBar
from tilekit.notebook.panels.panel import Panel
from tilekit.notebook.panels.pass_desk import PassDesk
from tilekit.notebook.panels.passes import PassPanel
from tilekit.notebook.panels.source import SourcePanel
from tilekit.toolchain.messages import Severity

# what the editor calls them
_SEVERITIES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "info"}

_DRAFT = "this is what you typed before the cell ran again: it is not compiled"

_BOTH = "the edit and the generated source have both changed these lines: keep what is right, without the marks"


class Desk:
    """The bar of one cell and the panels that it opens."""

    def __init__(self, kernels: Sequence[Kernel], edits: NotebookEdits) -> None:
        self.kernels = tuple(kernels)
        self.names = names(kernels)
        self.edits = edits
        self._sources: list[SourceDesk] = []
        self._passes: list[PassDesk] = []
        self._drafts: dict[Identity, str] = {}
        self.bar = PanelBar([], self._make)
        self.refresh()

    def take_over(self, before: Desk) -> None:
        """Open what was open in the panels of the cell's last run, with what was typed there, and end those."""
        self._drafts = before.drafts()
        shown, index = before.bar.shown, before.bar.kernel
        before.bar.close()
        self.bar.kernel = index if index < len(self.kernels) else 0
        self.bar.shown = shown

    def show_own_passes(self) -> None:
        """Open the passes of the first kernel that a person's own has compiled, at what that changed."""
        for index, kernel in enumerate(self.kernels):
            if kernel.machine.pipeline is not None:
                self.bar.kernel = index
                self.bar.shown = "passes"
                cast("PassPanel", self.bar.panel("passes", index)).show_own()
                return

    def drafts(self) -> dict[Identity, str]:
        """What was typed and not compiled, of each kernel; also of those that this run of the cell did not make."""
        opened = {source.kernel.identity: source.panel.text for source in self._sources if source.is_draft}
        settled = {source.kernel.identity for source in self._sources}
        return {**{kernel: text for kernel, text in self._drafts.items() if kernel not in settled}, **opened}

    def refresh(self) -> None:
        """Say again which kernels there are, which of them run an edit, and what was found wrong with them."""
        named = zip(self.names, self.kernels, strict=True)
        self.bar.kernels = [asdict(Entry(name, kernel.patched, _headline(kernel.report))) for name, kernel in named]
        for source in self._sources:
            source.take_report()

    def settled(self) -> None:
        """Something was done to a kernel: its panels say what holds now."""
        for source in self._sources:
            source.take_generated()
        for passes in self._passes:
            passes.take_passes()
        self.refresh()

    def _make(self, kind: str, index: int) -> Panel:
        kernel, name = self.kernels[index], self.names[index]
        if kind == "passes":
            self._passes.append(PassDesk(kernel, name, self.edits, self.settled))
            return self._passes[-1].panel
        source = SourceDesk(kernel, name, self, self._drafts.get(kernel.identity))
        self._sources.append(source)
        return source.panel


class SourceDesk(AtWork):
    """The source panel of one kernel."""

    def __init__(self, kernel: Kernel, name: str, desk: Desk, draft: str | None = None) -> None:
        super().__init__(kernel, self._show_report)
        self.desk = desk
        generated = kernel.generated
        # the text whose lines markers mean: what the editor began with, or compiled last
        self._marked = kernel.source if draft is None else draft
        self._reported: KernelError | None = None
        self._panel = SourcePanel(
            name,
            kernel.source if generated is None else generated.source,
            text=self._marked,
            recompile=self.recompile,
            revert=self.revert,
            merge=self.merge,
            stop=self.stop,
            status=" · ".join([*desk.edits.remarks(kernel), *([] if draft is None else [_DRAFT])]),
            mergeable=desk.edits.merged(kernel) is not None,
        )
        self.take_report()

    @property
    def panel(self) -> SourcePanel:
        return self._panel

    @property
    def is_draft(self) -> bool:
        """Whether the panel has text that was typed and is not what runs."""
        return self.panel.text != self.kernel.source

    def take_report(self) -> None:
        """Mark the lines of what was last found wrong, and take the marks away when it no longer holds."""
        report = self.kernel.report
        if report is self._reported or self._marked != self.kernel.source:
            return
        self._reported = report
        self.panel.set_trait("markers", [] if report is None else _report_markers(report))

    def take_generated(self) -> None:
        """Show what the passes make now, unless somebody is typing."""
        generated, was_draft = self.kernel.generated, self._marked != self.panel.text
        if generated is None or generated.source == self.panel.generated:
            return
        self.panel.set_trait("generated", generated.source)
        if not was_draft:
            self._marked = self.kernel.source
            self.panel.set_trait("text", self._marked)
            self.panel.set_trait("markers", [])

    def recompile(self, text: str) -> Future[None]:
        """Compile the text in place, then run it beside the generated kernel."""
        return self.submit(lambda: self._recompile(text))

    def revert(self) -> Future[None]:
        """Go back to the generated source."""
        return self.submit(self._revert)

    def merge(self) -> Future[None]:
        """Bring the edit that gave way together with the generated source; where that leaves no doubt, compile it."""
        return self.submit(self._merge)

    def _show_report(self) -> None:
        self.take_report()
        self.desk.settled()

    def _recompile(self, text: str) -> None:
        panel, seen = self.panel, self.kernel.source
        self._marked, self._reported = text, None
        try:
            self.kernel.recompile(text)
        except TilekitError as error:
            self.refuse(error)
            return
        told = self._keep(text, seen)
        panel.set_trait("text", text)
        panel.set_trait("markers", [])
        panel.set_trait("mergeable", False)
        if not self.kernel.patched:
            self.say(" · ".join(["this is the generated source", *told]))
            return
        # whatever comes of the comparison, this much holds
        self.say(" · ".join([RUNS_EDIT, *told]))
        self.compare()

    def _merge(self) -> None:
        merged = self.desk.edits.merged(self.kernel)
        if merged is None:
            self.say("there is no edit that gave way")
            return
        self._marked = merged.text
        self.panel.set_trait("text", merged.text)
        if not merged.conflicts:
            self._recompile(merged.text)
            return
        lines = [n for n, line in enumerate(merged.text.split("\n"), 1) if line.startswith("<<<<<<<")]
        self.panel.set_trait("markers", [_marker(line, 0, "warning", _BOTH) for line in lines])
        places = "one place" if merged.conflicts == 1 else f"{merged.conflicts} places"
        self.say(f"the edit and the generated source differ at {places}: decide there, then recompile")

    def _keep(self, text: str, seen: str) -> tuple[str, ...]:
        try:
            return self.desk.edits.store(self.kernel, text, seen)
        except OSError as error:
            return (f"it runs, but could not be kept for a rerun of the cell: {error}",)

    def fail(self, error: Exception, status: str) -> None:
        super().fail(error, status)
        self.panel.set_trait("markers", self._markers(error))

    def _revert(self) -> None:
        self.kernel.revert()
        self._marked, self._reported = self.kernel.source, None
        told = self.desk.edits.revert(self.kernel)
        self.panel.set_trait("text", self.kernel.source)
        self.panel.set_trait("markers", [])
        self.panel.set_trait("mergeable", False)
        self.say(" · ".join(["reverted to the generated source", *told]))

    def _markers(self, error: Exception) -> list[dict[str, Any]]:
        """What the compiler said."""
        found: Any = error.data.get("messages", ()) if isinstance(error, ToolchainError) else ()
        return [_marker(m.line, m.col, _SEVERITIES[m.severity], m.text) for m in found]


def names(kernels: Sequence[Kernel]) -> tuple[str, ...]:
    """What to call each; those that would be called the same, by what they were specialized to."""
    count = Counter(kernel.name for kernel in kernels)
    full = [kernel.identity.specialization.removesuffix("()") for kernel in kernels]
    return tuple(k.name if count[k.name] == 1 else name for k, name in zip(kernels, full, strict=True))


def _headline(report: KernelError | None) -> str:
    """What was found, in as many words as fit on a bar."""
    if report is None:
        return ""
    line, kind = report.data.get("line"), report.kind.replace("_", " ")
    return f"{kind} at source.cu line {line}" if line else kind


def _report_markers(report: KernelError) -> list[dict[str, Any]]:
    """The sentence and what to do at the line that was found, and what the notes say at the lines that they mean."""
    words: dict[int, list[str]] = {}
    found = cast("int | None", report.data.get("line"))
    if found:
        words[found] = [report.message]
    for text, line in cast("Sequence[tuple[str, int | None]]", report.data.get("notes", ())):
        if line:
            words.setdefault(line, []).append(text)
    if found and report.data.get("hint"):
        words[found].append(str(report.data["hint"]))
    return [_marker(line, 0, "error", "\n".join(said)) for line, said in words.items()]


def _marker(line: int, column: int, severity: str, message: str) -> dict[str, Any]:
    return {"line": line, "column": column, "severity": severity, "message": message}
