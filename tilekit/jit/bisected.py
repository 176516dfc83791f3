# SPDX-License-Identifier: Apache-2.0
"""What a bisection found, as text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tilekit import textdiff


class Outcome(StrEnum):
    """Whether a step of the compile is to blame."""

    GOOD = "all good"
    BAD = "all bad"
    FOUND = "found"


@dataclass(frozen=True)
class Judged:
    """A step of a compile and what is wrong with what it made: "" nothing, None if nobody looked."""

    phase: str
    name: str
    changed: bool
    fault: str | None

    @property
    def word(self) -> str:
        if self.fault:
            return "WRONG"
        return "not judged" if self.fault is None else "right" if self.changed else "no change"


@dataclass(frozen=True, repr=False)
class Bisection:
    """Which step of a compile makes a kernel wrong.

    Attributes
    ----------
    outcome
        "all good" if the compile ends well, "all bad" if the program is wrong before any step, else "found".
    culprit
        The name of the first step whose program is wrong; None if no step is to blame.
    fault
        What is wrong: an element that differs, a race, an error.
    steps
        The steps that were judged, in their order.
    before, after
        The texts before and after the culprit, "" where there is none; `diff` compares them.
    where
        The blocks that ran, and the seed.
    seconds
        How long it took.
    edits
        What a person edited on the way, which was judged as it is compiled; empty for what is generated alone.
    """

    kernel: str
    outcome: Outcome
    steps: tuple[Judged, ...]
    fault: str
    before: str
    after: str
    where: str
    seconds: float
    edits: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return self.outcome is Outcome.GOOD

    @property
    def culprit(self) -> str | None:
        return self.steps[-1].name if self.outcome is Outcome.FOUND else None

    def diff(self, context: int = 3) -> str:
        """What the culprit changed; nothing where it made nothing, or translated one language into another."""
        if self.culprit is None or not self.after or self.steps[-1].phase == "lower":
            return ""
        return "\n".join(textdiff.unified(self.before.splitlines(), self.after.splitlines(), context))

    @property
    def sentence(self) -> str:
        match self.outcome:
            case Outcome.GOOD:
                return f"all good: no step of the compile changes what {self.kernel} computes"
            case Outcome.BAD:
                return f"all bad: {self.kernel} is wrong before any step of the compile"
            case Outcome.FOUND:
                return f"{self.culprit} is the first step that makes {self.kernel} wrong"

    def __str__(self) -> str:
        judged = f"with the edit of {', '.join(self.edits)}" if self.edits else "as generated"
        lines = [f"{self.sentence} ({judged}, {self.where}, {self.seconds:.1f} s)"]
        lines += [f"    {line}" for line in self.fault.splitlines()]
        width = max((len(step.name) for step in self.steps), default=0)
        lines += [f"{step.phase:8}{step.name:{width}}  {step.word}" for step in self.steps]
        return "\n".join(filter(None, [*lines, self.diff()]))

    def __repr__(self) -> str:
        return str(self)

    def to_json(self) -> dict[str, object]:
        """The same as plain data."""
        steps = [{"phase": each.phase, "name": each.name, "verdict": each.word} for each in self.steps]
        return {
            "kernel": self.kernel,
            "outcome": self.outcome.value,
            "culprit": self.culprit,
            "fault": self.fault,
            "steps": steps,
            "diff": self.diff(),
            "where": self.where,
            "seconds": self.seconds,
            "edits": list(self.edits),
        }
