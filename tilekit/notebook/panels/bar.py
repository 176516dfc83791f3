# SPDX-License-Identifier: Apache-2.0
"""The bar below a cell, which opens the panels of the kernels that the cell made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import traitlets

from tilekit.notebook.panels.panel import Panel, bundle


@dataclass(frozen=True)
class Entry:
    """A kernel as the bar's selector shows it."""

    name: str
    patched: bool = False
    # what went wrong with it, in a word or two
    report: str = ""


class PanelBar(Panel):
    """Holds which panel of which kernel is open; a panel is made when it is first opened, and kept.

    `make("passes", 2)` gives the panel of passes of the third kernel; it is called in whatever thread ipykernel gives a
    message.
    """

    _esm = bundle("bar.js")
    _css = bundle("bar.css")

    kernels = traitlets.List().tag(sync=True)
    kernel = traitlets.Int(0).tag(sync=True)
    shown = traitlets.Enum(["", "passes", "source"], default_value="").tag(sync=True)
    panels = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        kernels: Sequence[Entry],
        make: Callable[[str, int], Panel],
        *,
        kernel: int = 0,
        shown: str = "",
    ) -> None:
        self._make = make
        self._made: dict[str, Panel] = {}
        super().__init__(kernels=[asdict(entry) for entry in kernels], kernel=kernel)
        self.observe(self._make_shown, ["kernel", "shown"])
        self.shown = shown

    def panel(self, kind: str, kernel: int) -> Panel:
        """The panel of a kernel, made now if it was not opened before."""
        key = f"{kind}:{kernel}"
        if key not in self._made:
            self._made[key] = self._make(kind, kernel)
            self.panels = {key: f"anywidget:{panel.model_id}" for key, panel in self._made.items()}
        return self._made[key]

    def close(self) -> None:
        """End the bar and its panels, as when the cell runs again."""
        for panel in self._made.values():
            panel.close()
        super().close()

    def plain(self) -> str:
        return "\n".join(
            " · ".join(filter(None, [entry["name"], "PATCHED" if entry["patched"] else "", entry["report"]]))
            for entry in self.kernels
        )

    def _make_shown(self, _change: object) -> None:
        if self.shown:
            self.panel(self.shown, self.kernel)
