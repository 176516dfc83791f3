# SPDX-License-Identifier: Apache-2.0
"""The edits of this notebook: kept in files, found again when a cell reruns or the kernel restarts, never lost."""

from __future__ import annotations

import os
from pathlib import Path

from tilekit import config
from tilekit.events import Sink
from tilekit.jit import observer
from tilekit.jit.kernel import Kernel
from tilekit.jit.observer import Identity
from tilekit.tools.lower_trace import settings
from tilekit.tools.lower_trace.edit_sink import EditSink
from tilekit.tools.lower_trace.edit_table import Tag
from tilekit.tools.lower_trace.edits import Decision, EditFolder, folder_name, safe_name


class NotebookEdits:
    """The one edit store as a notebook uses it: a folder for each kernel that was ever edited."""

    def __init__(self) -> None:
        self._sinks: dict[Identity, EditSink] = {}

    def open(self) -> None:
        observer.listen(self.sink)

    def close(self) -> None:
        observer.unlisten(self.sink)

    def sink(self, kernel: Identity) -> Sink | None:
        """Who answers the generated source of this kernel with its edit; nobody, if it was never edited."""
        folder = self._folder(kernel)
        if not folder.path.is_dir():
            return None
        self._sinks[kernel] = EditSink(
            folder, settings.resolve().on_conflict, traces=folder.has_tiles, only_edited=True
        )
        return self._sinks[kernel]

    def store(self, kernel: Kernel, text: str, seen: str | None = None) -> tuple[str, ...]:
        """Keep what was typed; what to tell the person, a line each."""
        generated = kernel.generated
        assert generated is not None, "an edit was compiled, so there is generated source"
        folder = self._folder(kernel.identity)
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.decide(generated.source)
        return folder.write_edit(text, seen)

    def revert(self, kernel: Kernel) -> tuple[str, ...]:
        """Put the edit away; it stays in a `.bak` file."""
        folder = self._folder(kernel.identity)
        return folder.revert() if folder.path.is_dir() else ()

    def remarks(self, kernel: Kernel) -> tuple[str, ...]:
        """What became of the edit when this kernel was compiled."""
        decision = self.decision(kernel)
        return () if decision is None else decision.messages

    def decision(self, kernel: Kernel) -> Decision | None:
        sink = self._sinks.get(kernel.identity)
        return None if sink is None else sink.decision

    def state(self, kernel: Kernel) -> str:
        """`clean`, or the tag of the last decision about an edit of this kernel."""
        decision = self.decision(kernel)
        return "clean" if decision is None or decision.tag is Tag.NONE else decision.tag.value

    def _folder(self, kernel: Identity) -> EditFolder:
        return EditFolder(_root() / folder_name(kernel))


def _root() -> Path:
    """Where this notebook's edits are; a notebook is known by its path, as far as the front end tells it."""
    name = os.environ.get("JPY_SESSION_NAME") or "notebook"
    return config.resolve().cache_dir / "edits" / safe_name(name)
