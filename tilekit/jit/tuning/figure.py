# SPDX-License-Identifier: Apache-2.0
"""The schedules of a kernel as a plotly figure: one accent, no box, the same on a light and on a dark page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from tilekit.jit import summary

if TYPE_CHECKING:
    from tilekit.jit.tuning.schedules import Row, Schedules

MAX_BARS = 24
ACCENT, REST, INK, GRID = "#1976d2", "rgba(128,128,128,0.45)", "#808080", "rgba(128,128,128,0.18)"
_FONT = {"family": "ui-monospace, Menlo, Consolas, monospace", "size": 11, "color": INK}
# how every figure of ours looks
BASE: Mapping[str, Any] = {
    "font": _FONT,
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "hoverlabel": {"font": {"family": _FONT["family"]}},
}
_UNITS = ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (float("inf"), 1.0, "s"))


def figure(schedules: Schedules) -> go.Figure:
    """A figure of what was measured; empty while nothing was."""
    made = go.Figure(go.Bar(orientation="h"))
    made.update_layout(
        **BASE,
        margin={"l": 8, "r": 24, "t": 28, "b": 32},
        bargap=0.35,
        showlegend=False,
        xaxis={"rangemode": "tozero", "gridcolor": GRID, "zeroline": False},
        yaxis={"autorange": "reversed", "automargin": True, "showgrid": False, "type": "category"},
    )
    update(made, schedules)
    return made


def update(made: Any, schedules: Schedules) -> None:
    """Bring a figure to what the table says now."""
    data, layout = content(schedules)
    made.data[0].update(data)
    made.update_layout(layout)


def content(schedules: Schedules) -> tuple[dict[str, Any], dict[str, Any]]:
    """What changes while a tuning runs: the bars, and around them."""
    rows = [row for row in schedules.ranked if row.cost is not None][:MAX_BARS]
    scale, unit = _scale(rows, schedules)
    bars = {
        "x": [scale * (row.cost or 0.0) for row in rows],
        "y": [_name(row, schedules) for row in rows],
        "marker": {"color": [ACCENT if row.is_best else REST for row in rows]},
        "error_x": {
            "type": "data",
            "array": [scale * (row.cost or 0.0) * (row.spread or 0.0) for row in rows],
            "visible": not schedules.is_estimate,
            "color": INK,
            "thickness": 1,
            "width": 3,
        },
        "customdata": [[_registers(row), row.shared_bytes or 0] for row in rows],
        "hovertemplate": "%{y}<br>%{x:,.2f} "
        + unit
        + "<br>%{customdata[0]}%{customdata[1]:,} bytes shared<extra></extra>",
    }
    title = f"{schedules.title} · {schedules.summary}"
    around = {
        "title": {"text": title, "font": {"size": 11}, "x": 0, "xanchor": "left", "y": 0.98, "yanchor": "top"},
        "height": 90 + 18 * max(len(rows), 3),
        "xaxis_title": {"text": f"{unit} (estimate)" if schedules.is_estimate else unit, "font": {"size": 11}},
    }
    return bars, around


def _scale(rows: list[Row], schedules: Schedules) -> tuple[float, str]:
    if schedules.unit != "s":
        return 1.0, schedules.unit
    longest = max((row.cost or 0.0 for row in rows), default=0.0)
    return next((factor, unit) for limit, factor, unit in _UNITS if longest < limit)


def _name(row: Row, schedules: Schedules) -> str:
    return summary.named({name: row.schedule[name] for name in schedules.names})


def _registers(row: Row) -> str:
    return "" if row.registers is None else f"{row.registers} registers, "


def mimebundle(schedules: Schedules) -> Mapping[str, Any]:
    """What a saved notebook keeps: a figure that repaints without a kernel, and the table."""
    return {
        "application/vnd.plotly.v1+json": figure(schedules).to_plotly_json(),
        "text/html": schedules._repr_html_(),
        "text/plain": repr(schedules),
    }
