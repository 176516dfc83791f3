# SPDX-License-Identifier: Apache-2.0
"""The panel of passes of one kernel, at work: the tile IR after a pass is edited, and compiled on from there."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from tilekit.diag import TilekitError
from tilekit.events import EDIT_OF
from tilekit.jit.kernel import Kernel
from tilekit.notebook.edits import NotebookEdits, TileText
from tilekit.notebook.panels.at_work import RUNS_EDIT, AtWork
from tilekit.notebook.panels.passes import PassPanel
from tilekit.notebook.panels.steps import Steps

if TYPE_CHECKING:
    from tilekit.tools.lower_trace.journal import Step


class PassDesk(AtWork):
    """Does what is asked for in a panel of passes, and shows the passes as they are then."""

    def __init__(self, kernel: Kernel, name: str, edits: NotebookEdits, settled: Callable[[], None]) -> None:
        super().__init__(kernel, settled)
        self._name = name
        self._edits = edits
        self._panel = PassPanel(name, Steps.of(kernel, name), edit=self.edit, revert=self.revert, stop=self.stop)
        self._shown = self._running
        self._show(self._panel.steps)

    @property
    def panel(self) -> PassPanel:
        return self._panel

    @property
    def _running(self) -> str | None:
        """The key of what runs, which holds every edit."""
        return None if self.kernel.compiled is None else self.kernel.compiled.entry.key

    def take_passes(self) -> None:
        """Show the passes as they are now, if something else has edited the kernel."""
        if self._running != self._shown:
            self._show_anew()

    def fail(self, error: Exception, status: str) -> None:
        super().fail(error, status)
        said = error.data if isinstance(error, TilekitError) else {}
        found = [{**said, "severity": "error"}] if isinstance(said.get("line"), int) else []
        self._panel.set_trait("markers", found)

    def edit(self, seq: int, text: str) -> Future[None]:
        """Go on compiling from this text in place of what a step made, then run it beside the generated kernel."""
        return self.submit(lambda: self._edit(seq, text))

    def revert(self) -> Future[None]:
        """Go back to what the compiler makes of the script."""
        return self.submit(self._revert)

    def _edit(self, seq: int, text: str) -> None:
        # the compiler is there: it made what is edited
        edits = importlib.import_module("tilekit.transforms.edits")
        made, seen = self._made(seq)
        try:
            self.kernel.recompile_after(edits.tile_file(made.number, made.name), text)
        except TilekitError as error:
            self.refuse(error)
            return
        told = self._edits.store_tile(self.kernel, made, text, seen)
        steps = self._show_anew()
        edited = next((step for step in steps.steps if step.name == f"{EDIT_OF}{made.name}"), None)
        if edited is not None:
            self._panel.view = f"p={edited.index}"
        state = RUNS_EDIT if self.kernel.patched else "nothing is edited"
        self.say(" · ".join([state, *told]))
        if self.kernel.patched:
            self.compare()

    def _revert(self) -> None:
        self.kernel.revert()
        told = self._edits.revert(self.kernel)
        self._show_anew()
        self.say(" · ".join(["reverted to what the compiler makes of it", *told]))

    def _show_anew(self) -> Steps:
        steps = Steps.of(self.kernel, self._name)
        self._shown = self._running
        self._panel.set_trait("markers", [])
        self._panel.show_steps(steps)
        self._show(steps)
        return steps

    def _show(self, steps: Steps) -> None:
        self._panel.editable = [step.seq for step in steps.steps if self._is_editable(step)]

    def _is_editable(self, step: Step) -> bool:
        """Whether it is a tile pass, and not one that another pass calls."""
        is_tile = step.base_phase == "tile" and step.name != "verify" and step.depth == 0
        return self.kernel.compiled is not None and is_tile and step.after is not None

    def _made(self, seq: int) -> tuple[TileText, str]:
        """What a tile pass made, and the text that stood there when a person began to edit it."""
        steps = self._panel.steps
        tiles = [step for step in steps.steps if self._is_editable(step)]
        passes = [step for step in tiles if not step.name.startswith(EDIT_OF)]
        made = max((step for step in passes if step.seq <= seq), key=lambda step: step.seq)
        behind = tiles[tiles.index(made) + 1 :][:1]
        seen = next((step for step in behind if step.name == f"{EDIT_OF}{made.name}"), made)
        text, shown = ("\n".join(steps.sides(step)[1]) for step in (made, seen))
        return TileText(1 + passes.index(made), made.name, text), shown
