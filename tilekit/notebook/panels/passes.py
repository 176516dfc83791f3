# SPDX-License-Identifier: Apache-2.0
"""The panel of passes: every step of a compile, and what each changed, in the viewer of traced runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import traitlets

from tilekit.notebook.panels.panel import EditPanel, bundle
from tilekit.notebook.panels.steps import Steps


class PassPanel(EditPanel):
    """Holds what is shown, as the fragment of a page's address says it; hands over the journal when it is asked for.

    `edit(seq, text)` is called with what a person made of the tile IR after a step, `revert()` to end all such edits,
    and `stop()` to hasten either; each in whatever thread ipykernel gives a message. The first two or what they start
    set `busy` to "" when all else is set.
    """

    _esm = bundle("passes.js")
    _css = bundle("passes.css")

    view = traitlets.Unicode().tag(sync=True)
    # the steps, by their numbers, of which the text may be edited
    editable = traitlets.List().tag(sync=True)

    def __init__(
        self,
        kernel: str,
        steps: Steps,
        *,
        edit: Callable[[int, str], object] | None = None,
        revert: Callable[[], object] | None = None,
        stop: Callable[[], object] | None = None,
    ) -> None:
        self._kernel = kernel
        self.steps = steps
        self._edit, self._revert, self._stop = edit, revert, stop
        super().__init__()
        self.on_msg(self._answer)

    def show_steps(self, steps: Steps) -> None:
        """Show these in place of those before."""
        self.steps = steps
        self._hand_over()

    def show_own(self) -> None:
        """Show what the first pass of a person's own has changed."""
        if (step := self.steps.own) is not None:
            self.view = f"p={step.index}"

    def plain(self) -> str:
        said = [*(f"{m['line']}:{m['column']}: {m['message']}" for m in self.markers), self.status, self.comparison]
        return "\n".join([self._kernel, self.steps.plain(), *filter(None, said)])

    def _hand_over(self) -> None:
        self.send({"kind": "journal", "goes_on": self.steps.can_go_on}, buffers=[self.steps.packed])

    def _answer(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        match content:
            case {"kind": "edit", "seq": int(seq), "text": str(text)} if self._edit is not None:
                self.work(lambda edit=self._edit: edit(seq, text))
            case {"kind": "revert"} if self._revert is not None:
                self.work(self._revert)
            case {"kind": "stop"} if self._stop is not None:
                self._stop()
            case {"kind": "machine code"}:
                # compilers run, and the front end goes on meanwhile
                threading.Thread(target=self._go_on, name="tilekit-machine-code", daemon=True).start()
            case _:
                self._hand_over()

    def _go_on(self) -> None:
        steps = self.steps
        whole = steps.to_the_end()
        whole.packed  # noqa: B018  # it is made here, and not where it is shown
        if self.steps is steps:  # an edit may have come in between
            self.show_steps(whole)
