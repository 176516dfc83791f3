# SPDX-License-Identifier: Apache-2.0
"""What a journal says as plain data, in the form that `docs/trace.md` describes, and each step in words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tilekit import textdiff
from tilekit.tools.lower_trace import queries
from tilekit.tools.lower_trace.journal import Compile, Run, Status, Step
from tilekit.tools.lower_trace.queries import Found, Pair

SCHEMA = 1

LANGUAGES = {"tile": "Tile IR", "hidet": "Hidet IR", "cuda": "CUDA C", "ptx": "PTX", "sass": "SASS"}
# what becomes machine code is no text
_ASSEMBLED = ("ptxas", "host")


def lines_made(run: Run, step: Step) -> list[str]:
    """The text that a step left behind."""
    text_id = queries.result_of(step)
    return [] if text_id is None else run.lines(text_id)


@dataclass(frozen=True)
class Beside:
    """A compile of each of two runs, or one that only one run has."""

    runs: tuple[Run, Run]
    a: Compile | None
    b: Compile | None

    @cached_property
    def steps(self) -> list[Pair]:
        return [] if self.a is None or self.b is None else queries.beside(self.a, self.b)

    @property
    def parted(self) -> Pair | None:
        """Where they part."""
        return queries.first_difference(self.steps)

    @property
    def is_same(self) -> bool:
        return self.a is not None and self.b is not None and self.parted is None

    def diff(self, context: int) -> list[str]:
        """What is different where they part."""
        parted = self.parted
        if parted is None:
            return []
        sides = zip(self.runs, (parted.a, parted.b), strict=True)
        before, after = ([] if step is None else lines_made(run, step) for run, step in sides)
        return textdiff.unified(before, after, context)


def short(step: Step | None) -> str:
    """The number and the name of a step, if there is one."""
    return "" if step is None else f"{step.index:02d} {step.title}"


def line_of(step: Step) -> str:
    """A step in a line of a list."""
    time = "" if step.ns is None else f"  {step.ns / 1e6:.2f} ms"
    return f"{'  ' * step.depth}{step.index:02d} {step.phase}/{step.title}  {words_of(step)}{time}"


def translates(step: Step) -> bool:
    """Whether it makes a text of another language, or machine code, so that there is nothing to compare."""
    return step.is_translation or step.base_phase in _ASSEMBLED


def words_of(step: Step) -> str:
    """What became of a step; `widgets/src/trace/journal.ts` says it so in the page."""
    if step.status is not Status.DONE:
        return "did not finish (process ended)" if step.status is Status.UNFINISHED else step.status.value
    if translates(step):
        return "into machine code" if step.base_phase in _ASSEMBLED else f"into {LANGUAGES[step.language]}"
    if not step.changed:
        return "rebuilt, no textual change" if step.rebuilt else "no change"
    return "changed" if step.added is None else f"changed +{step.added} -{step.removed}"


def of_run(run: Run) -> dict[str, Any]:
    head = run.head
    return {"script": head.script, "started": head.started, "pid": head.pid, "rank": head.rank, "version": head.version}


def of_compile(compile: Compile) -> dict[str, Any]:
    return {**_name(compile), "steps": [of_step(step) for step in compile.steps]}


def _name(compile: Compile) -> dict[str, Any]:
    names = ("c", "kernel", "script", "specialization", "target", "device")
    return {**{name: getattr(compile, name) for name in names}, "status": compile.status.value}


def of_step(step: Step) -> dict[str, Any]:
    return {
        "c": step.c,
        "index": step.index,
        "phase": step.phase,
        "name": step.name,
        "occurrence": step.occurrence,
        "status": step.status.value,
        "changed": step.changed,
        "added": step.added,
        "removed": step.removed,
        "ms": None if step.ns is None else step.ns / 1e6,
    }


def of_pair(pair: Beside, context: int) -> dict[str, Any]:
    return {
        "a": None if pair.a is None else _name(pair.a),
        "b": None if pair.b is None else _name(pair.b),
        "same": pair.is_same,
        "first_difference": None if pair.parted is None else queries.key_of(pair.parted.step),
        "diff": pair.diff(context),
        "steps": [
            {
                "step": queries.key_of(each.step),
                "a": None if each.a is None else each.a.index,
                "b": None if each.b is None else each.b.index,
                "same": each.is_same,
            }
            for each in pair.steps
        ],
    }


def of_found(found: Found) -> dict[str, Any]:
    def step(each: Step | None) -> dict[str, Any] | None:
        return None if each is None else of_step(each)

    return {
        **_name(found.compile),
        "original": found.is_original,
        "first": step(found.first),
        "last": step(found.last),
        "gone": step(found.gone),
        "steps": [each.index for each in found.holders],
    }
