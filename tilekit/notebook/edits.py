# SPDX-License-Identifier: Apache-2.0
"""The edits of this notebook: kept in files, found again when a cell reruns or the kernel restarts, never lost.

While a trace is on that keeps sources where people edit them, its files and the notebook's editor are one: what is
typed in either is compiled. The notebook's own files remember what was typed in its editor for when there is none.
"""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from tilekit import config
from tilekit.events import Sink
from tilekit.jit import observer
from tilekit.jit.kernel import Kernel
from tilekit.jit.observer import Identity
from tilekit.tools.lower_trace import naming, settings
from tilekit.tools.lower_trace.apart import Apart
from tilekit.tools.lower_trace.edit_sink import EditSink
from tilekit.tools.lower_trace.edit_table import Tag
from tilekit.tools.lower_trace.edits import EditFolder, folder_name, safe_name
from tilekit.tools.lower_trace.merge import Merged


@dataclass(frozen=True)
class TileText:
    """What a tile pass of a kernel made, which is the `number`-th of them from 1."""

    number: int
    name: str
    text: str


class NotebookEdits:
    """The one edit store as a notebook uses it: a folder for each kernel that was ever edited."""

    def __init__(self) -> None:
        self._sinks: dict[Identity, EditSink] = {}
        self._apart = Apart(lambda kernel: os.path.isdir(_folder(kernel).path))

    def open(self) -> None:
        observer.listen(self.sink)

    def close(self) -> None:
        observer.unlisten(self.sink)

    def sink(self, kernel: Identity) -> Sink | None:
        """Who answers the generated source of this kernel with its edit; nobody, if it was never edited."""
        own, traced = self._folder(kernel), _traced_folder(kernel)
        self._sinks.pop(kernel, None)
        if not own.path.is_dir():
            return None
        if traced is not None:  # the trace answers, and says what is to be said
            traced.take_over(own)
            return None
        policy = settings.resolve().on_conflict
        has_tiles = any(tile.holds_edit() for tile in own.tiles())
        self._sinks[kernel] = EditSink(own, policy, traces=has_tiles, only_edited=True)
        return self._sinks[kernel]

    def store(self, kernel: Kernel, text: str, seen: str | None = None) -> tuple[str, ...]:
        """Keep what was typed; what to tell the person, a line each."""
        generated = kernel.generated
        assert generated is not None, "an edit was compiled, so there is generated source"
        told: list[str] = []
        for folder in self._folders(kernel.identity):
            folder.path.mkdir(parents=True, exist_ok=True)
            folder.decide(generated.source)
            told += folder.write_edit(text, seen)
        return tuple(told)

    def store_tile(self, kernel: Kernel, made: TileText, text: str, seen: str) -> tuple[str, ...]:
        """Keep what was typed in place of what a tile pass made; `seen` is what the editor was filled with."""
        tile_edits = importlib.import_module("tilekit.tools.lower_trace.tile_edits")  # it brings the compiler
        told: list[str] = []
        for parent in self._folders(kernel.identity):
            folder = tile_edits.folder_of(parent, made.number, made.name)
            folder.path.mkdir(parents=True, exist_ok=True)
            folder.decide(made.text)
            told += folder.write_edit(text, seen)
        return tuple(told)

    def revert(self, kernel: Kernel) -> tuple[str, ...]:
        """Put every edit of it away; they stay in `.bak` files."""
        folders = self._folders(kernel.identity)
        tiles = [tile for folder in folders for tile in folder.tiles() if tile.holds_edit()]
        sources = [folder for folder in folders if folder.latest.exists()]
        return tuple(line for folder in (*sources, *tiles) for line in folder.revert())

    def merged(self, kernel: Kernel) -> Merged | None:
        """The edit that gave way when this kernel was compiled, brought together with what was generated then."""
        if kernel.edit_state != Tag.CONFLICT.value:
            return None
        return (_traced_folder(kernel.identity) or self._folder(kernel.identity)).merged()

    def remarks(self, kernel: Kernel) -> tuple[str, ...]:
        """What became of the edit when this kernel was compiled."""
        sink = self._sinks.get(kernel.identity)
        return () if sink is None else tuple(sink.messages)

    def _folders(self, kernel: Identity) -> list[EditFolder]:
        traced = _traced_folder(kernel)
        return [self._folder(kernel), *([] if traced is None else [traced])]

    def _folder(self, kernel: Identity) -> EditFolder:
        return _folder(self._apart.known_as(kernel))


def _folder(kernel: Identity) -> EditFolder:
    return EditFolder(_root() / folder_name(kernel))


def _traced_folder(kernel: Identity) -> EditFolder | None:
    """Where a trace that is on keeps the source of this kernel to be edited."""
    # whose module was loaded by whoever switched it on
    module = sys.modules.get("tilekit.tools.lower_trace.session")
    session = None if module is None else module.active()
    return None if session is None else session.edit_folder(kernel)


def _root() -> Path:
    """Where this notebook's edits are; a notebook is known by its path, as far as the front end tells it."""
    return config.resolve().cache_dir / "edits" / safe_name(naming.notebook_path() or "notebook")
