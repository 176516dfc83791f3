# SPDX-License-Identifier: Apache-2.0
"""One compile, and what a person made of what it generates: the source, and the tile IR after any of its passes."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable

from tilekit.diag import TilekitError
from tilekit.events import CLEAN, Edited, Null, Stage
from tilekit.tools.lower_trace.edit_table import Policy, Tag
from tilekit.tools.lower_trace.edits import Decision, EditFolder


def say_nothing(line: str) -> None:
    """Tell nobody."""


def keep_nothing(generated: str, decision: Decision) -> None:
    """Take no note."""


class EditSink(Null):
    """Listens to one compile and answers what it generates with the edited text, if there is one.

    Parameters
    ----------
    folder
        The files of the kernel; those of its tile passes lie in `ir/` in it.
    policy
        What to do when both texts have changed.
    traces
        Whether the passes run also for a kernel from the cache.
    only_edited
        Whether just those tile passes have files for which somebody has made one.
    say
        Told what there is to say of an edit, a line at a time.
    on_source
        Told the generated source and what was decided about it.
    """

    def __init__(
        self,
        folder: EditFolder,
        policy: Policy = Policy.REGENERATE,
        *,
        traces: bool = True,
        only_edited: bool = False,
        say: Callable[[str], None] = say_nothing,
        on_source: Callable[[str, Decision], None] = keep_nothing,
    ) -> None:
        self.folder = folder
        self.policy = policy
        self.traces = traces
        self.only_edited = only_edited
        self.decision: Decision | None = None
        self.tiles: dict[str, Decision] = {}  # by file, of the passes that have one
        self.messages: list[str] = []  # all there is to say of this compile, a line each
        self._reasons = set[str]()
        self._say = say
        self._on_source = on_source
        self._passes = 0
        self._before: object = None  # what the last tile pass was given
        self._edited: EditFolder | None = None

    def end(self, stage: Stage, name: str, before: object, after: object, seconds: float) -> None:
        if stage is Stage.TILE:
            self._before = before

    def tile(self, name: str, prog: object) -> object | None:
        # who compiles has loaded the compiler already
        tile_edits = importlib.import_module("tilekit.tools.lower_trace.tile_edits")
        self._passes += 1
        folder = tile_edits.folder_of(self.folder, self._passes, name)
        if (self.only_edited or prog is self._before) and not os.path.exists(folder.working):
            return None  # of what a pass hands on as it is, nobody looks for a file
        folder.is_waited_for = self.folder.is_waited_for
        decision = folder.decide(str(prog), self.policy)
        self.folder.is_waited_for = folder.is_waited_for
        self.tiles[folder.working.name] = decision
        self._tell(_of_tile(decision), str(folder.path))
        if not decision.edited:
            return None
        self._edited = folder
        return importlib.import_module("tilekit.transforms.edits").edited_program(decision.text, prog)

    def fail(self, stage: Stage, name: str, error: BaseException) -> None:
        """An edited program that breaks a rule of the IR is found by the verifier, which knows no files."""
        edited, self._edited = self._edited, None
        if edited is not None and stage is Stage.TILE and isinstance(error, TilekitError):
            error.noted(f"this is the edited text {edited.working}: delete the file to go back to what the pass made")

    def codegen(self, text: str) -> Edited | None:
        decision = self.decision = self.folder.decide(text, self.policy)
        self._tell(_of_source(decision))
        self._on_source(text, decision)
        states = [decision.state, *(each.state for each in self.tiles.values())]
        state = next((each for each in states if each != CLEAN), CLEAN)
        return None if state == CLEAN else Edited(decision.text, str(self.folder.working), state)

    def _tell(self, lines: Iterable[str], folder: str | None = None) -> None:
        """Say these lines; why a folder cannot be written is said of the first of its files only."""
        for line in lines:
            tag, _, why = line.partition(": ")
            if tag.startswith(Tag.CANNOT_UPDATE.value) and folder is not None and folder in why:
                if why in self._reasons:
                    continue
                self._reasons.add(why)
            self.messages.append(line)
            self._say(line)


def _of_source(decision: Decision) -> tuple[str, ...]:
    """What happened to an edit; that there is a source to edit, who asked for it says with the compile."""
    return () if decision.tag is Tag.INIT else decision.messages


def _of_tile(decision: Decision) -> tuple[str, ...]:
    """The same of a tile pass; that its files follow a changed program is said of the source."""
    return () if decision.state == CLEAN else decision.messages
