# SPDX-License-Identifier: Apache-2.0
"""What all panels share: where their bundles lie, and that each also exists as plain text."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

STATIC = pathlib.Path(__file__).parents[2] / "static"


def bundle(name: str) -> str:
    """The text of a built file; not its path, which anywidget would watch and keep the widget alive for."""
    file = STATIC / name
    if not file.exists():
        raise ImportError(f"tilekit/static/{name} is missing: in a clone, run make widgets")
    return file.read_text("utf-8")


class Panel(anywidget.AnyWidget):
    """A panel shows itself where there is a front end, and its text everywhere else."""

    def plain(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        view = {"version_major": 2, "version_minor": 1, "model_id": self.model_id}
        return {"text/plain": self.plain(), "application/vnd.jupyter.widget-view+json": view}


class EditPanel(Panel):
    """A panel in which a person edits what is compiled in its place, then compared with what was generated."""

    # dicts of line and column (from 1; 0: unknown), severity (error, warning, info) and message
    markers = traitlets.List().tag(sync=True)
    status = traitlets.Unicode().tag(sync=True)
    comparison = traitlets.Unicode().tag(sync=True)
    verdict = traitlets.Enum(["", "same", "differs", "failed"], default_value="").tag(sync=True)
    # whoever does the work sets it to "" when all else is set
    busy = traitlets.Enum(["", "compiling", "comparing"], default_value="").tag(sync=True)

    def work(self, begin: Callable[[], object]) -> None:
        """Begin what a person asked for; nobody works on it where that fails."""
        self.busy = "compiling"
        try:
            begin()
        except BaseException:
            self.busy = ""
            raise
