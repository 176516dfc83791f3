# SPDX-License-Identifier: Apache-2.0
"""The schedules of a kernel as people see them: a list of them, which shows as a table of what is known of each."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilekit.diag.errors import TilekitError
from tilekit.jit import summary, tables
from tilekit.jit.data_frame import load_pandas
from tilekit.jit.tuning import table
from tilekit.jit.tuning.space import Candidate, Measurement, Space, State
from tilekit.jit.tuning.table import Key

if TYPE_CHECKING:
    import pandas
    import plotly.graph_objects

# rows that are shown; `to_pandas` has them all
MAX_ROWS = 40
_ESTIMATED = "an estimate by the simulator's counters: a GPU may rank them otherwise"

_BAR = "background:var(--jp-brand-color1,#1976d2)"


@dataclass(frozen=True)
class Row:
    """What is known of one schedule.

    Attributes
    ----------
    schedule
        The arguments of the script's `__init__`.
    state
        What became of it.
    compile_seconds
        None while it is not compiled; 0 if the cache had it.
    registers, spill_bytes
        Of a thread; None on the CPU.
    shared_bytes
        Of a block.
    median, spread
        Seconds of a run on a GPU, and how far half of the runs lie from that at most, as a share.
    estimate
        Cycles, on the CPU.
    error, where
        In words, and the line that it is about.
    """

    number: int
    schedule: Mapping[str, Any]
    state: State
    compile_seconds: float | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None
    median: float | None = None
    spread: float | None = None
    estimate: float | None = None
    error: str | None = None
    where: str | None = None
    is_best: bool = False

    @property
    def cost(self) -> float | None:
        return self.estimate if self.median is None else self.median


class Schedules(list[Mapping[str, Any]]):
    """Every schedule of a script, in the order of its space; as text and HTML, a table with the best first.

    Attributes
    ----------
    rows
        What is known of each, in the same order.
    title
        Of which kernel, where, and for which arguments.
    """

    def __init__(self, rows: Sequence[Row], title: str, unit: str, names: Sequence[str]) -> None:
        super().__init__(row.schedule for row in rows)
        self.rows = tuple(rows)
        self.title = title
        self.unit = unit
        self.names = tuple(names)  # of the values that differ

    @property
    def best(self) -> Row | None:
        """The row of the best schedule, if any was measured."""
        return next((row for row in self.rows if row.is_best), None)

    @property
    def is_estimate(self) -> bool:
        """Whether the simulator's counters rank them, and no clock."""
        return any(row.estimate is not None for row in self.rows)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with a row for each schedule.

        Returns
        -------
        pandas.DataFrame
            The schedule's values under their names, then what `Row` has; indexed by the number of the schedule.

        Raises
        ------
        ArgumentError
            TK638 where pandas is not installed.
        """
        facts = ("compile_seconds", "registers", "shared_bytes", "spill_bytes", "median", "spread", "estimate")
        records = [
            {
                **row.schedule,
                "state": row.state.value,
                **{name: getattr(row, name) for name in facts},
                "error": row.error,
                "where": row.where,
            }
            for row in self.rows
        ]
        pandas = load_pandas()
        return pandas.DataFrame(records, index=pandas.Index([row.number for row in self.rows], name="number"))

    def figure(self) -> plotly.graph_objects.Figure:
        """A bar for each schedule that ran, the fastest above, with the spread of its runs.

        Returns
        -------
        plotly.graph_objects.Figure
            It follows the page's colors; a table with the same numbers is `print(schedules)`.
        """
        return importlib.import_module("tilekit.jit.tuning.figure").figure(self)

    # -------------------------------------------------------------------------------------------------------- shown

    @property
    def ranked(self) -> list[Row]:
        """The rows, best first, and then those that did not run."""
        order = {
            state: place for place, state in enumerate((State.COMPILED, State.WAITING, State.BROKEN, State.FAILED))
        }
        return sorted(
            self.rows, key=lambda row: (row.cost is None, row.cost or 0.0, order.get(row.state, 0), row.number)
        )

    @property
    def summary(self) -> str:
        """How many there are, and what became of them."""
        counts = {state: sum(row.state is state for row in self.rows) for state in State}
        told = [f"{count} {state.value}" for state, count in counts.items() if count]
        return ", ".join([f"{len(self)} schedule{'' if len(self) == 1 else 's'}", *told])

    @property
    def remarks(self) -> list[str]:
        estimated = [_ESTIMATED] if self.is_estimate else []
        left_out = len(self.rows) - MAX_ROWS
        return [*estimated, *([f"and {left_out} more: to_pandas() has them all"] if left_out > 0 else [])]

    def __repr__(self) -> str:
        header, aligns = self._header()
        lines = tables.text_lines([header, *map(self._cells, self._shown())], aligns)
        return "\n".join([f"{self.title}: {self.summary}", *lines, *self.remarks])

    def _repr_html_(self) -> str:
        header, aligns = self._header()
        table = tables.table(
            tables.head_cells([*header, ""], [*aligns, "left"]), "".join(map(self._html_row, self._shown()))
        )
        about = tables.titled(self.title, self.summary)
        return tables.framed("schedules", f"{about}{table}{tables.remarks(self.remarks)}")

    def _html_row(self, row: Row) -> str:
        weight = "font-weight:600" if row.is_best else ""
        is_bad = row.state in (State.FAILED, State.BROKEN)
        color = tables.ALARM if is_bad else tables.MUTED if row.cost is None else ""
        cells = tables.cells(self._cells(row), self._header()[1], f"{weight};{color}")
        best = self.best
        share = 0.0 if row.cost is None or best is None or not row.cost else (best.cost or 0.0) / row.cost
        bar = tables.bar(90 * share, f"{_BAR};opacity:{1 if row.is_best else 0.35}")
        return f'<tr style="background:none">{cells}<td style="{tables.CELL}">{bar}</td></tr>'

    def _shown(self) -> list[Row]:
        return self.ranked[:MAX_ROWS]

    def _header(self) -> tuple[list[str], list[str]]:
        """The title of each column, and how its cells are aligned."""
        cost = "estimate" if self.is_estimate else "median"
        titles = [*self.names, "compiled in", "registers", "shared", "spills", cost, "spread", "state"]
        return titles, ["right"] * (len(titles) - 1) + ["left"]

    def _cells(self, row: Row) -> list[str]:
        return [
            *(str(row.schedule[name]) for name in self.names),
            "" if row.compile_seconds is None else f"{row.compile_seconds:.2f} s" if row.compile_seconds else "cached",
            *("" if value is None else f"{value:,}" for value in (row.registers, row.shared_bytes, row.spill_bytes)),
            "" if row.cost is None else table.cost_words(row.cost, self.unit),
            "" if row.spread is None else f"±{row.spread:.1%}",
            self._state(row),
        ]

    def _state(self, row: Row) -> str:
        if row.is_best:
            return "best"
        if row.error is None:
            return row.state.value
        return ": ".join(part for part in (row.state.value, row.where, row.error) if part is not None)


def of_space(space: Space, key: Key | None = None) -> Schedules:
    """The table of a space for one tuning key; by default that which was measured last."""
    chosen = next(reversed(space.measured), None) if key is None else key
    results = {} if chosen is None else space.measured.get(chosen, {})
    costs = {number: found.cost for number, found in results.items() if found.cost is not None}
    best = min(sorted(costs), key=lambda number: costs[number], default=None)
    known = [_with_its_kernel(candidate, space) for candidate in space.candidates]
    rows = [_row(candidate, results.get(candidate.number), candidate.number == best) for candidate in known]
    where = space.machine.target.name if space.unit == "s" else f"{space.machine.target.name} on the CPU"
    title = f"{space.instance.instance_name} · {where}"
    if chosen:
        title += f" · {summary.named(dict(chosen))}"
    return Schedules(rows, title, space.unit, _varied([candidate.schedule for candidate in space.candidates]))


def untried(schedules: Sequence[Mapping[str, Any]], title: str) -> Schedules:
    """The schedules of a script that nothing was compiled of."""
    rows = [Row(number, schedule, State.WAITING) for number, schedule in enumerate(schedules)]
    return Schedules(rows, title, "s", _varied(schedules))


def _varied(schedules: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names whose values differ, or all of them if none does."""
    first = schedules[0] if schedules else {}
    return [name for name in first if any(each[name] != first[name] for each in schedules)] or list(first)


def _with_its_kernel(candidate: Candidate, space: Space) -> Candidate:
    """A candidate that no tuning has compiled, but a call."""
    kernel = space.instance.built(candidate.number, space.machine) if candidate.state is State.WAITING else None
    if kernel is None or kernel.generated is None:
        return candidate
    return dataclasses.replace(
        candidate, program=kernel.generated, compile_seconds=0.0 if kernel.cached else kernel.compile_seconds
    )


def _row(candidate: Candidate, found: Measurement | None, is_best: bool) -> Row:
    program = candidate.program
    error = candidate.error or (None if found is None else found.error)
    return Row(
        candidate.number,
        candidate.schedule,
        candidate.state if found is None else found.state,
        candidate.compile_seconds,
        None if program is None else program.facts.registers,
        None if program is None else program.manifest.shared_bytes,
        None if program is None else program.facts.spill_bytes,
        None if found is None else found.median,
        None if found is None else found.spread,
        None if found is None or found.estimate is None else found.estimate.cycles,
        None if error is None else error.message,
        None if error is None else _line_of(error),
        is_best,
    )


def _line_of(error: TilekitError) -> str | None:
    """The cell or file and the line that an error is about."""
    at = error.diagnostic.at
    place = None if at is None or error.sources is None else error.sources.locate(at)
    return None if place is None else f"{place.display_name}:{place.line}"
