# SPDX-License-Identifier: Apache-2.0
"""The panel of passes: every step of a compile, and what each changed, side by side."""

from __future__ import annotations

from typing import Any

import traitlets

from tilekit.notebook.panels.panel import Panel, bundle
from tilekit.notebook.panels.steps import Steps


class PassPanel(Panel):
    """Holds the list of steps and which one is shown; sends the texts of one when the front end asks for them."""

    _esm = bundle("passes.js")
    _css = bundle("passes.css")

    kernel = traitlets.Unicode().tag(sync=True)
    passes = traitlets.List().tag(sync=True)
    index = traitlets.Int(0).tag(sync=True)

    def __init__(self, kernel: str, steps: Steps) -> None:
        self._steps = steps
        overview = steps.overview()
        changed = [index for index, entry in enumerate(overview) if entry["status"] in ("failed", "changed")]
        super().__init__(kernel=kernel, passes=overview, index=next(iter(changed), 0))
        self.on_msg(self._answer)

    def plain(self) -> str:
        return f"{self.kernel}\n{self._steps.plain()}"

    def _answer(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        self.send(self._steps.message(content["index"]))
