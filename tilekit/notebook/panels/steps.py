# SPDX-License-Identifier: Apache-2.0
"""The steps of a compile as the panel of passes receives them: a list of them all, the texts of one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilekit import textdiff
from tilekit.events import Stage

if TYPE_CHECKING:  # in earnest it would bring the compiler
    from tilekit.transforms.recorder import Recorder, Step

# what the result of a stage is written in
_LANGUAGES = {
    Stage.VERIFY: "Tile IR",
    Stage.TILE: "Tile IR",
    Stage.LOWER: "Hidet IR",
    Stage.HIDET: "Hidet IR",
    Stage.CODEGEN: "CUDA C",
    Stage.HOST: "machine code",
    Stage.PTX: "PTX",
    Stage.PTXAS: "machine code",
    Stage.SASS: "SASS",
}
# where the result is written in another language there is nothing to compare
_TRANSLATIONS = {Stage.LOWER, Stage.CODEGEN, Stage.HOST, Stage.PTX, Stage.PTXAS, Stage.SASS}


class Steps:
    """Texts are printed and compared when they are asked for, and once: what a pass made is what the next one took."""

    def __init__(self, recorder: Recorder) -> None:
        self._steps = tuple(recorder.steps)
        self._lines: dict[int, list[str]] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def overview(self) -> list[dict[str, Any]]:
        """What the list at the side shows of each step."""
        return [self._entry(step) for step in self._steps]

    def message(self, index: int) -> dict[str, Any]:
        """One step's text: the new one in full, of the old one what differs."""
        step = self._steps[index]
        before, after = self._sides_of(step)
        if step.stage in _TRANSLATIONS:
            runs = [textdiff.Run(textdiff.Kind.REMOVED, 0, 0, len(before))]
        else:
            runs = textdiff.align(before, after)
        return {
            "kind": "pass",
            "index": index,
            "runs": [(int(run.kind), run.left, run.right, run.count) for run in runs],
            "old": [line for run in runs if run.kind in _OLD for line in before[run.left : run.left + run.count]],
            "after": "\n".join(after),
        }

    def plain(self) -> str:
        """All steps as plain text, a line each."""
        return "\n".join(_line(entry) for entry in self.overview())

    def _entry(self, step: Step) -> dict[str, Any]:
        status, added, removed = self._status(step)
        return {
            "name": step.name,
            "language": _LANGUAGES[step.stage],
            "status": status,
            "added": added,
            "removed": removed,
            "ms": 1e3 * step.seconds,
            "error": "" if step.error is None else f"{type(step.error).__name__}: {step.error}",
        }

    def _status(self, step: Step) -> tuple[str, int, int]:
        if step.error is not None:
            return "failed", 0, 0
        if step.stage in _TRANSLATIONS:
            return "translated", 0, 0
        if not step.changed:
            return "same", 0, 0
        return "changed", *textdiff.counts(*self._sides_of(step))

    def sides(self, index: int) -> tuple[list[str], list[str]]:
        """The lines of one step before and after."""
        return self._sides_of(self._steps[index])

    def _sides_of(self, step: Step) -> tuple[list[str], list[str]]:
        # the steps keep the objects alive, so that their ids stay theirs
        if id(step.before) not in self._lines:
            self._lines[id(step.before)] = step.before_text.splitlines()
        if id(step.after) not in self._lines:
            self._lines[id(step.after)] = step.after_text.splitlines()
        return self._lines[id(step.before)], self._lines[id(step.after)]


_OLD = {textdiff.Kind.EDITED, textdiff.Kind.REMOVED, textdiff.Kind.REPLACED}


def _line(entry: dict[str, Any]) -> str:
    what = {
        "changed": f"+{entry['added']} -{entry['removed']}",
        "same": "no change",
        "translated": f"into {entry['language']}",
        "failed": entry["error"],
    }
    return f"{entry['language']:8} {entry['name']:24} {what[entry['status']]:>12} {entry['ms']:9.2f} ms"
