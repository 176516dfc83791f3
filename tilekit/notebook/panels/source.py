# SPDX-License-Identifier: Apache-2.0
"""The panel of the source: the generated CUDA C in an editor that recompiles it in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import traitlets

from tilekit.notebook.panels.panel import EditPanel, bundle


class SourcePanel(EditPanel):
    """Holds the text, what the compiler said of it and how its result compares; tells who listens what a person asks.

    `recompile(text)`, `revert()`, `merge()` and `stop()` are called in whatever thread ipykernel gives a message, maybe
    beside a running cell. All but the last, or what they start, set `busy` to "" when all else is set; `stop` hastens
    that.
    """

    _esm = bundle("source.js")
    _css = bundle("source.css")

    kernel = traitlets.Unicode().tag(sync=True)
    text = traitlets.Unicode().tag(sync=True)
    generated = traitlets.Unicode().tag(sync=True)
    # whether there is an edit that gave way to another generated source, and can be brought together with it
    mergeable = traitlets.Bool().tag(sync=True)

    def __init__(
        self,
        kernel: str,
        generated: str,
        *,
        recompile: Callable[[str], object],
        revert: Callable[[], object],
        merge: Callable[[], object],
        stop: Callable[[], object],
        text: str | None = None,
        status: str = "",
        mergeable: bool = False,
    ) -> None:
        self._asked: dict[str, Callable[[dict[str, Any]], object]] = {
            "recompile": lambda content: recompile(content["text"]),
            "revert": lambda content: revert(),
            "merge": lambda content: merge(),
            "stop": lambda content: stop(),
        }
        shown = generated if text is None else text
        super().__init__(kernel=kernel, text=shown, generated=generated, status=status, mergeable=mergeable)
        self.on_msg(self._answer)

    def plain(self) -> str:
        problems = [f"{m['line']}:{m['column']}: {m['severity']}: {m['message']}" for m in self.markers]
        return "\n".join([self.text, *problems, *filter(None, [self.status, self.comparison])])

    def _answer(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        if content["kind"] == "stop":
            self._asked["stop"](content)
            return
        self.work(lambda: self._asked[content["kind"]](content))
