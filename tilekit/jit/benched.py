# SPDX-License-Identifier: Apache-2.0
"""What came of a measurement: a row for each program and size, as text, as a table, as data, and as a plot."""

from __future__ import annotations

import importlib
import importlib.metadata
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tilekit.jit import durations, summary, tables
from tilekit.jit.data_frame import load_pandas
from tilekit.jit.tables import ALARM, CELL, RULE
from tilekit.runtime import device
from tilekit.runtime.benchmark import Timing
from tilekit.runtime.conditions import Conditions
from tilekit.runtime.tensors import DeviceKind

if TYPE_CHECKING:
    import pandas
    import plotly.graph_objects

    from tilekit.jit.kernel import Kernel

_PACKAGES = ("numpy", "torch", "triton", "cuda-bindings", "nvidia-cuda-nvrtc")
_SIMULATED = "these are times of the CPU simulator, copies to it included: they say nothing about a GPU"
_EVALUATED = "these are times of the NumPy evaluator, for want of a C++ compiler: they say nothing about a GPU"

_OURS, _THEIRS = "background:var(--jp-brand-color1,#1976d2)", "background:rgba(128,128,128,.45)"


@dataclass
class Row:
    """One program at one size.

    Attributes
    ----------
    size, number
        What the size is called, and the number that it is, if it is one.
    name, is_ours, schedule
        The program; the schedule of ours.
    flops, bytes
        The work of a call: operations, and bytes that must move; None where nobody knows.
    timing
        Seconds by rounds; None of what was not timed.
    failed
        Why it was not.
    relative_error
        ‖result - reference‖ / ‖reference‖, of the worst of its results.
    """

    size: str
    number: float | None
    name: str
    is_ours: bool
    schedule: Mapping[str, Any] = field(default_factory=dict[str, Any])
    flops: float | None = None
    bytes: float | None = None
    timing: Timing | None = None
    failed: str = ""
    relative_error: float | None = None

    @property
    def seconds(self) -> float | None:
        """The median of the rounds' medians."""
        return None if self.timing is None else self.timing.median

    @property
    def tflops(self) -> float | None:
        """10¹² operations a second."""
        return self.flops / self.seconds / 1e12 if self.flops is not None and self.seconds else None

    @property
    def gb_per_second(self) -> float | None:
        """10⁹ bytes a second."""
        return self.bytes / self.seconds / 1e9 if self.bytes is not None and self.seconds else None


@dataclass(repr=False, eq=False)
class Bench:
    """What came of `handle.bench(…)`: shown as a table; `to_pandas()` and `figure()` give the same otherwise.

    Attributes
    ----------
    script, target, where
        The kernel's script, the instruction set, and the device in words.
    rows
        One for each program at each size, ours first.
    notes
        What results were compared with, and what else there is to know.
    conditions
        Of each size: clocks, power and temperature of the GPU while it was measured, or why they were not recorded.
    floor
        The seconds that an empty kernel takes by the same events; nothing is subtracted. None on the CPU.
    versions
        Of everything that a number depends on.
    """

    script: str
    target: str = ""
    where: str = ""
    rows: list[Row] = field(default_factory=list[Row])
    notes: list[str] = field(default_factory=list[str])
    conditions: list[Conditions] = field(default_factory=list[Conditions])
    floor: float | None = None
    versions: dict[str, str] = field(default_factory=dict[str, str])

    def describe(self, kernel: Kernel) -> None:
        """Say once what runs where, and by which versions."""
        if self.versions:
            return
        self.target, self.where, self.versions = kernel.machine.target.name, kernel.where, _versions(kernel)
        if kernel.machine.device.kind is not DeviceKind.CUDA:
            self.note(_EVALUATED if kernel.compiled is None else _SIMULATED)

    def note(self, text: str) -> None:
        """Say it once, however many sizes it is true of."""
        if text not in self.notes:
            self.notes.append(text)

    def over_ours(self, row: Row) -> float | None:
        """How many times as long as ours it takes at the same size."""
        ours = next((each.seconds for each in self.rows if each.is_ours and each.size == row.size), None)
        return row.seconds / ours if row.seconds is not None and ours else None

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with a row for each program at each size.

        Returns
        -------
        pandas.DataFrame
            `seconds`, `low` and `high` are the median, the least and the greatest of the rounds' medians.

        Raises
        ------
        ArgumentError
            TK638 where pandas is not installed.
        """
        return load_pandas().DataFrame(
            [
                {
                    "size": row.size if row.number is None else row.number,
                    "program": row.name,
                    "ours": row.is_ours,
                    "schedule": summary.named(row.schedule),
                    "seconds": row.seconds,
                    "low": None if row.timing is None else row.timing.low,
                    "high": None if row.timing is None else row.timing.high,
                    "calls": 0 if row.timing is None else row.timing.calls,
                    "tflops": row.tflops,
                    "gb_per_second": row.gb_per_second,
                    "over_ours": self.over_ours(row),
                    "relative_error": row.relative_error,
                    "failed": row.failed or None,
                }
                for row in self.rows
            ]
        )

    def figure(self) -> plotly.graph_objects.Figure:
        """A line for each program over the sizes: TFLOP/s, else GB/s, else milliseconds.

        Returns
        -------
        plotly.graph_objects.Figure
            Ours in color, peers in gray, on no ground of its own; `print(result)` has the same numbers.
        """
        return importlib.import_module("tilekit.jit.benched_figure").figure(self)

    @property
    def has_sizes(self) -> bool:
        """Whether there is anything to draw a line through."""
        return len({row.size for row in self.rows}) > 1

    # -------------------------------------------------------------------------------------------------------- shown

    @property
    def title(self) -> str:
        return f"{self.target} · {self.where}"

    @property
    def problems(self) -> list[str]:
        """Who was not timed, at which sizes, and why."""
        failed: dict[tuple[str, str], list[str]] = {}
        for row in self.rows:
            if row.failed:
                failed.setdefault((row.name, row.failed), []).append(row.size)
        return [
            ": ".join([" at ".join([name, ", ".join(sizes)]) if all(sizes) else name, why])
            for (name, why), sizes in failed.items()
        ]

    @property
    def remarks(self) -> list[str]:
        """What to know of the numbers."""
        timed = [row.timing for row in self.rows if row.timing is not None]
        rounds = max((len(timing.rounds) for timing in timed), default=0)
        method = f"medians of {rounds} rounds in turn and how far these lie apart"
        if self.floor is not None:
            floor = durations.measured(self.floor)
            method += f"; each call with a cold L2 cache; an empty kernel takes {floor}, which is not subtracted"
        late = dict.fromkeys(row.name for row in self.rows if row.timing is not None and not row.timing.queued)
        waiting = [f"{name}: the GPU waited for the host, whose time is in it" for name in late]
        clocks = str(merged(self.conditions))
        versions = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        return [*self.notes, *waiting, method, clocks, versions]

    def __repr__(self) -> str:
        header, aligns = self._header()
        lines = tables.text_lines([header, *(self._cells(*pair) for pair in self._with_those_before())], aligns)
        return "\n".join([f"{self.script} · {self.title}", *lines, *self.problems, *self.remarks])

    def _repr_html_(self) -> str:
        header, aligns = self._header()
        table = tables.table(
            tables.head_cells([*header, ""], [*aligns, "left"]),
            "".join(self._html_row(*pair, aligns) for pair in self._with_those_before()),
        )
        remarks = tables.remarks(self.problems, ALARM) + tables.remarks(self.remarks)
        return tables.framed("bench", tables.titled(self.script, self.title) + table + remarks)

    def _with_those_before(self) -> list[tuple[Row, Row | None]]:
        return list(zip(self.rows, [None, *self.rows], strict=False))

    def _html_row(self, row: Row, before: Row | None, aligns: Sequence[str]) -> str:
        style = ALARM if row.failed else "font-weight:600" if row.is_ours else ""
        cells = tables.cells(self._cells(row, before), aligns, style)
        times = [each.seconds for each in self.rows if each.size == row.size and each.seconds is not None]
        width = 0.0 if not row.seconds else 90 * row.seconds / max(times)
        bar = tables.bar(width, _OURS if row.is_ours else _THEIRS)
        rule = f";border-top:{RULE}" if before is not None and before.size != row.size else ""
        return f'<tr style="background:none{rule}">{cells}<td style="{CELL};vertical-align:middle">{bar}</td></tr>'

    def _columns(self) -> list[tuple[str, str]]:
        """The title of each column that says something here, and how its cells are aligned."""

        def some(value: str) -> bool:
            return any(getattr(row, value) not in (None, "", {}) for row in self.rows)

        wanted = [
            ("size", "right", some("size")),
            ("program", "left", True),
            ("schedule", "left", some("schedule")),
            ("median", "right", True),
            ("rounds", "right", True),
            ("TFLOP/s", "right", some("tflops")),
            ("GB/s", "right", some("gb_per_second")),
            ("× ours", "right", len({row.name for row in self.rows}) > 1),
            ("error", "right", some("relative_error")),
        ]
        return [(name, align) for name, align, is_told in wanted if is_told]

    def _header(self) -> tuple[list[str], list[str]]:
        columns = self._columns()
        return [name for name, _ in columns], [align for _, align in columns]

    def _cells(self, row: Row, before: Row | None) -> list[str]:
        timing, ratio = row.timing, self.over_ours(row)
        texts = {
            "size": "" if before is not None and before.size == row.size else row.size,
            "program": row.name,
            "schedule": summary.named(row.schedule),
            "median": "–" if timing is None else durations.measured(timing.median),
            "rounds": "" if timing is None else durations.between(timing.low, timing.high, timing.median),
            "TFLOP/s": "" if row.tflops is None else _rate(row.tflops),
            "GB/s": "" if row.gb_per_second is None else _rate(row.gb_per_second),
            "× ours": "" if ratio is None else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.1g}",
            "error": "" if row.relative_error is None else f"{row.relative_error:.1e}" if row.relative_error else "0",
        }
        return [texts[name] for name, _ in self._columns()]


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def merged(conditions: Sequence[Conditions]) -> Conditions:
    """The conditions of all sizes together."""
    first = conditions[0] if conditions else Conditions()
    return Conditions(
        first.why_not, first.most_mhz, first.watts_allowed, [seen for each in conditions for seen in each.seen]
    )


def _versions(kernel: Kernel) -> dict[str, str]:
    """Everything installed that a number may depend on."""
    found = {"tilekit": sys.modules["tilekit"].__version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if kernel.compiled is not None and kernel.compiled.facts.compiler:
        found["compiled by"] = kernel.compiled.facts.compiler.partition(" -")[0]
    cuda = device.survey().cuda
    if cuda is not None:
        found["CUDA driver"] = ".".join(map(str, cuda))
    return found
