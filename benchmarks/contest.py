# SPDX-License-Identifier: Apache-2.0
"""One contest: what several programs make of the same inputs. Right first, then the schedules, then the best in turn.

Whatever fails is a row with its error. What was found is kept after every step, so that a process which a fault has
ended can be started again: it leaves out the candidate that was running, and what is done already.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import rounds
from benchmarks.rounds import Launch, Timer

Row = dict[str, Any]

FINALISTS = 2
"""So many schedules of a peer go on to a case that follows another one."""


@dataclass(frozen=True)
class Candidate:
    """One program with one schedule; `build` compiles it and gives what launches it."""

    peer: str
    label: str
    build: Callable[[], Launch]

    @property
    def key(self) -> str:
        return f"{self.peer} {self.label}".strip()


@dataclass(frozen=True)
class Wanted:
    """What is asked of ours: a rate, or a part of a peer's."""

    rate: float | None = None
    peer: str | None = None
    part: float = 1.0

    def __str__(self) -> str:
        return f"{self.part:g} x {self.peer}" if self.rate is None else f"{self.rate:g}"


@dataclass(frozen=True)
class Case:
    """Inputs that all candidates share.

    `poison` spoils the output; `error` is the relative error of what a launch returned, or of the output if that is
    not a tensor. `work` is done in a call, counted in `unit`.
    """

    candidates: Sequence[Candidate]
    poison: Callable[[], object]
    error: Callable[[object], float]
    tolerance: float
    work: float
    unit: str
    wanted: Wanted | None = None
    # the case whose best schedules are tried here; all are where it is None
    follows: str | None = None


@dataclass(frozen=True)
class Plan:
    """A case by its name; the inputs are made when its turn comes."""

    name: str
    make: Callable[[], Case]
    # of the time
    weight: int = 1


class DeviceLost(Exception):
    """The GPU answers no more: nothing else can be measured in this process."""


class State:
    """What is known so far, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        self.cases: dict[str, dict[str, Any]] = found.get("cases", {})
        self.running: list[str] | None = found.get("running")
        self.lost: list[list[str]] = found.get("lost", [])

    def keep(self) -> None:
        text = json.dumps({"cases": self.cases, "running": self.running, "lost": self.lost}, indent=1)
        self.path.with_suffix(".new").write_text(text)
        self.path.with_suffix(".new").replace(self.path)

    def run(self, case: str, key: str) -> None:
        self.running = [case, key]
        self.keep()


def hold(plans: Sequence[Plan], state: State, timer: Timer, seconds: float, clock: Callable[[], float]) -> None:
    """Measure every case that is not done; a case gets its share of the seconds, and what others left of theirs."""
    end = clock() + seconds
    todo = [plan for plan in plans if not state.cases.get(plan.name, {}).get("done")]
    for place, plan in enumerate(todo):
        share = clock() + (end - clock()) * plan.weight / sum(later.weight for later in todo[place:])
        state.run(plan.name, "")
        try:
            case = plan.make()
        except Exception as error:
            state.cases[plan.name] = {"rows": {}, "failed": describe(error), "done": True}
        else:
            measure(plan.name, case, state, timer, share, clock)
        state.running = None
        state.keep()


def measure(
    name: str, case: Case, state: State, timer: Timer, deadline: float, clock: Callable[[], float] = time.monotonic
) -> None:
    """Fill in the rows of one case."""
    rows: dict[str, Row] = {}
    state.cases[name] = {"rows": rows, "unit": case.unit, "wanted": str(case.wanted or ""), "done": False}
    launches: dict[str, Launch] = {}
    chosen = _chosen(case, state)
    for candidate in case.candidates:
        if chosen is not None and candidate.key not in chosen:
            continue
        row = rows[candidate.key] = {"peer": candidate.peer, "schedule": candidate.label}
        if [name, candidate.key] in state.lost:
            row["failed"] = "the process ended, or ran out of time, while this ran"
        elif clock() > deadline:
            row["failed"] = "not tried: the time was up"
        else:
            state.run(name, candidate.key)
            launch = _tried(candidate, case, row, timer)
            if launch is not None:
                launches[candidate.key] = launch
    best = best_of(rows)
    state.run(name, " and ".join(best.values()))
    for key, reading in rounds.in_turn({key: launches[key] for key in best.values()}, timer).items():
        row = rows[key]
        row |= reading.as_dict()
        row["rate"] = round(case.work / reading.ms * (1e-9 if case.unit == "TFLOP/s" else 1e-6), 1)
    if case.wanted is not None:
        state.cases[name]["reached"] = reached(case.wanted, rows, best)
    state.cases[name]["done"] = True


def _chosen(case: Case, state: State) -> set[str] | None:
    """The candidates that an earlier case has left over."""
    before = state.cases.get(case.follows or "", {}).get("rows")
    if not before:
        return None
    chosen: set[str] = set()
    for peer in dict.fromkeys(row["peer"] for row in before.values()):
        timed = [key for key, row in before.items() if row["peer"] == peer and "glance_ms" in row]
        chosen |= set(sorted(timed, key=lambda key: before[key]["glance_ms"])[:FINALISTS])
    return chosen


def _tried(candidate: Candidate, case: Case, row: Row, timer: Timer) -> Launch | None:
    """Build and check a candidate, and look how fast it is; None, and an error in its row, if anything is wrong."""
    try:
        case.poison()
        launch = candidate.build()
        result = launch()
        timer.wait()
        error = case.error(result)
        row["relative_error"] = float(f"{error:.3g}") if error == error else None  # JSON has no nan
        if not error <= case.tolerance:
            row["failed"] = f"wrong: its relative error is {error:.2g}"
            return None
        row["glance_ms"] = round(1e3 * rounds.glance(launch, timer), 5)
    except Exception as error:
        row["failed"] = describe(error)
        try:
            timer.wait()
        except Exception as lost:
            raise DeviceLost(candidate.key) from lost
        return None
    return launch


def describe(error: BaseException) -> str:
    """The first lines of what went wrong, in one; of a file its name, for where it lies differs between machines."""
    text = re.sub(r'"/[^"\n]*/([^"/\n]+)"', r'"\1"', str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {' / '.join(lines[:3])}"[:300]


def best_of(rows: Mapping[str, Row]) -> dict[str, str]:
    """For each peer the candidate that looked fastest."""
    best: dict[str, str] = {}
    for key, row in rows.items():
        if "glance_ms" in row and row["glance_ms"] < rows.get(best.get(row["peer"], ""), {}).get("glance_ms", 1e30):
            best[row["peer"]] = key
    return best


def reached(wanted: Wanted, rows: Mapping[str, Row], best: Mapping[str, str]) -> bool | None:
    """Whether ours does what is asked of it; None if one of the two was not measured."""
    ours = rows[best["tilekit"]] if "tilekit" in best else None
    if ours is None:
        return None
    if wanted.rate is not None:
        return ours["rate"] >= wanted.rate
    theirs = rows[best[wanted.peer]] if wanted.peer in best else None
    return None if theirs is None else ours["rate"] >= wanted.part * theirs["rate"]


def table(name: str, case: Mapping[str, Any]) -> str:
    """The finalists of a case, and how many candidates failed for what reasons."""
    rows: dict[str, Row] = case["rows"]
    if "failed" in case:
        seen = (f"{key} {rows[key]['glance_ms']} ms" for key in best_of(rows).values())
        return f"{name}: {case['failed']}; at a glance: {', '.join(seen)}"
    timed = {key: row for key, row in rows.items() if "rate" in row}
    if not timed:
        seen = (f"{key} {rows[key]['glance_ms']} ms" for key in best_of(rows).values())
        return f"{name}: the time was up before the best were timed in turn; at a glance: {', '.join(seen)}"
    others = [row["ms"] for row in timed.values() if row["peer"] != "tilekit"]
    asked = f"   wanted: {case['wanted']} -> {case.get('reached')}" if case["wanted"] else ""
    lines = [f"{name}{asked}"]
    for key, row in sorted(timed.items(), key=lambda pair: pair[1]["ms"]):
        ratio = f"{min(others) / row['ms']:.3f} of the best peer" if others else ""
        spread = f"({row['low']:.4f}..{row['high']:.4f})"
        lines.append(f"  {key:56.56} {row['ms']:9.4f} ms {spread:20} {row['rate']:8.1f} {case['unit']}  {ratio}")
    failures: dict[str, list[str]] = {}
    for key, row in rows.items():
        if "failed" in row:
            failures.setdefault(row["failed"], []).append(key)
    lines += [f"  failed ({len(keys)}): {keys[0]:.60}: {text:.160}" for text, keys in failures.items()]
    return "\n".join(lines)
