# SPDX-License-Identifier: Apache-2.0
"""The panel of passes: every step of a compile, and what each changed, in the viewer of traced runs."""

from __future__ import annotations

import traitlets

from tilekit.notebook.panels.panel import Panel, bundle
from tilekit.notebook.panels.steps import Steps


class PassPanel(Panel):
    """Holds what is shown, as the fragment of a page's address says it; hands over the journal when it is asked for."""

    _esm = bundle("passes.js")
    _css = bundle("passes.css")

    view = traitlets.Unicode().tag(sync=True)

    def __init__(self, kernel: str, steps: Steps) -> None:
        self._kernel = kernel
        self._steps = steps
        super().__init__()
        self.on_msg(self._answer)

    def show_own(self) -> None:
        """Show what the first pass of a person's own has changed."""
        if (step := self._steps.own) is not None:
            self.view = f"p={step.index}"

    def plain(self) -> str:
        return f"{self._kernel}\n{self._steps.plain()}"

    def _answer(self, _widget: object, _content: object, _buffers: object) -> None:
        self.send({"kind": "journal"}, buffers=[self._steps.packed])
