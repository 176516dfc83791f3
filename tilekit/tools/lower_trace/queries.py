# SPDX-License-Identifier: Apache-2.0
"""Questions about all steps of a compile at once: where a text appears, who made each line, where two compiles part.

`widgets/src/trace/queries.ts` answers the same ones in the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from tilekit import textdiff
from tilekit.tools.lower_trace.journal import Compile, Run, Status, Step
from tilekit.tools.lower_trace.settings import matches

_T = TypeVar("_T")


@dataclass(frozen=True)
class Place:
    """A run, and compiles of it."""

    run: Run
    compiles: Sequence[Compile]

    @property
    def steps(self) -> list[Step]:
        return [step for compile in self.compiles for step in compile.steps]

    def matching(self, pattern: str | None) -> Place:
        """Those of kernels whose name, class or specialization matches a pattern such as `matmul*`."""
        if pattern is None:
            return self
        names = [(compile, (compile.kernel, compile.script, compile.specialization)) for compile in self.compiles]
        return Place(self.run, [each for each, known in names if any(matches(name, pattern) for name in known)])

    def steps_named(self, wanted: str) -> list[Step]:
        """The steps that a person means: `17` by the number of the run, or `name`, `name#2`, `phase/name`."""
        if wanted.isdecimal():
            return [step for step in self.steps if step.index == int(wanted)]
        return [step for step in self.steps if wanted in (step.title, key_of(step), f"{step.phase}/{step.title}")]


def key_of(step: Step) -> str:
    """What steps of two compiles are told apart by."""
    return f"{step.base_phase}/{step.title}"


def result_of(step: Step) -> str | None:
    """The text that a step left behind, or what it was given where it left none."""
    return step.after if step.after is not None else step.before


# ------------------------------------------------------------------------------------------------------------- find


@dataclass(frozen=True)
class Found:
    """Where a text is in the results of the steps of a compile.

    `gone` is the step that removed it for good; `is_original` says that the program had it before any step.
    """

    compile: Compile
    holders: Sequence[Step]
    gone: Step | None
    is_original: bool

    @property
    def first(self) -> Step | None:
        return self.holders[0] if self.holders else None

    @property
    def last(self) -> Step | None:
        return self.holders[-1] if self.holders else None

    def __bool__(self) -> bool:
        return self.is_original or bool(self.holders)


def find(run: Run, compile: Compile, text: str) -> Found:
    """The steps whose result has a text in one of its lines, in capital letters or not."""
    wanted, known = text.lower(), dict[str | None, bool]()

    def has(text_id: str | None) -> bool:
        if text_id not in known:
            known[text_id] = text_id is not None and any(wanted in line.lower() for line in run.lines(text_id))
        return known[text_id]

    ended = [step for step in compile.steps if step.after is not None]
    holders = [step for step in ended if has(step.after)]
    is_original = bool(compile.steps) and has(compile.steps[0].before)
    rest = ended[ended.index(holders[-1]) + 1 :] if holders else ended if is_original else []
    return Found(compile, holders, rest[0] if rest else None, is_original)


# ------------------------------------------------------------------------------------------------------------ blame


class Blame:
    """For each line of what a step made, the step that last changed it; None where it is as it was written.

    Steps count in the order in which they ended, so what a step in a step changed is its own. Where a step translates,
    every line is its own.
    """

    def __init__(self, run: Run, compile: Compile) -> None:
        self._run = run
        self._compile = compile

    def of(self, step: Step) -> list[Step | None]:
        return self._origins[id(step)]

    @cached_property
    def _origins(self) -> dict[int, list[Step | None]]:
        found: dict[int, list[Step | None]] = {}
        before: str | None = None
        origins: list[Step | None] = []
        for step in (each for each in in_order_of_ends(self._compile.steps) if each.after is not None):
            if not found:
                before = step.before
                origins = [None] * len(self._lines(before))
            origins = self._passed_on(origins, before, step)
            found[id(step)], before = origins, step.after
        return found

    def _passed_on(self, origins: list[Step | None], before: str | None, step: Step) -> list[Step | None]:
        if step.after == before:
            return origins
        lines = self._lines(step.after)
        if step.is_translation:
            return [step] * len(lines)
        made: list[Step | None] = []
        at = 0
        for hunk in textdiff.hunks(self._lines(before), lines):
            made += [*origins[at : hunk.removed.start], *([step] * len(hunk.added))]
            at = hunk.removed.stop
        return made + origins[at:]

    def _lines(self, text_id: str | None) -> list[str]:
        return [] if text_id is None else self._run.lines(text_id)


def in_order_of_ends(steps: Sequence[Step]) -> list[Step]:
    """Those in a step before the step itself."""
    ended: list[Step] = []
    open_: list[Step] = []
    for step in steps:
        while len(open_) > step.depth:
            ended.append(open_.pop())
        open_.append(step)
    return [*ended, *reversed(open_)]


# ------------------------------------------------------------------------------------------------- two compiles or runs


@dataclass(frozen=True)
class Pair:
    """The same step of two compiles, or one that only one of them has."""

    a: Step | None
    b: Step | None

    @property
    def is_same(self) -> bool:
        if self.a is None or self.b is None:
            return False
        return result_of(self.a) == result_of(self.b) and _is_broken(self.a) == _is_broken(self.b)

    @property
    def step(self) -> Step:
        step = self.a or self.b
        assert step is not None
        return step


def _is_broken(step: Step) -> bool:
    return step.status is not Status.DONE


def beside(a: Compile, b: Compile) -> list[Pair]:
    """The steps of two compiles, paired by phase, name and occurrence, in the order of both."""
    return [Pair(*pair) for pair in _paired(a.steps, b.steps, key_of)]


def compiles_beside(a: Sequence[Compile], b: Sequence[Compile]) -> list[tuple[Compile | None, Compile | None]]:
    """The compiles of two runs, paired by kernel, specialization, target and device, in the order of both."""
    return _paired(a, b, lambda each: repr((each.kernel, each.specialization, each.target, each.device)))


def _paired(a: Sequence[_T], b: Sequence[_T], name: Callable[[_T], str]) -> list[tuple[_T | None, _T | None]]:
    pairs: list[tuple[_T | None, _T | None]] = []
    left = right = 0
    end = textdiff.Hunk(range(len(a), len(a)), range(len(b), len(b)))
    for hunk in (*textdiff.hunks(list(map(name, a)), list(map(name, b))), end):
        pairs += zip(a[left : hunk.removed.start], b[right : hunk.added.start], strict=True)
        pairs += [(a[i], None) for i in hunk.removed]
        pairs += [(None, b[j]) for j in hunk.added]
        left, right = hunk.removed.stop, hunk.added.stop
    return pairs


def first_difference(pairs: Sequence[Pair]) -> Pair | None:
    """Where two compiles part."""
    return next((pair for pair in pairs if not pair.is_same), None)


# ------------------------------------------------------------------------------------------------------- the beginning


def opening(steps: Sequence[Step]) -> Step | None:
    """Where to begin: at the first failure, else at the last change before the source, else at the first step."""
    failed = (Status.FAILED, Status.INTERRUPTED)
    culprits = [step for step in steps if step.status in failed] or [
        step for step in reversed(steps) if step.status is Status.UNFINISHED
    ]
    source = next((at for at, step in enumerate(steps) if step.base_phase == "codegen"), len(steps))
    changed = [step for step in steps[:source] if step.changed and not step.is_translation]
    return next(iter([*culprits[:1], *changed[-1:], *steps[:1]]), None)
