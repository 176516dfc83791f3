# SPDX-License-Identifier: Apache-2.0
"""A measurement over sizes as a plotly figure: ours in the accent, peers in grays, on a light and a dark page alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from tilekit.jit.tuning.figure import ACCENT, BASE, GRID, INK

if TYPE_CHECKING:
    from tilekit.jit.benched import Bench, Row

_GRAYS = ("#8f8f8f", "#a8a8a8", "#757575")
_DASHES = ("solid", "dot", "dash", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x")


def figure(bench: Bench) -> go.Figure:
    """A line for each program."""
    of, unit = _measure(bench)
    programs = list(dict.fromkeys((row.name, row.is_ours) for row in bench.rows))
    is_numeric = all(row.number is not None and row.number > 0 for row in bench.rows)
    made = go.Figure()
    # ours last, so that it lies above the others, and first in the legend
    for place, (name, is_ours) in sorted(enumerate(programs), key=lambda pair: pair[1][1]):
        rows = [row for row in bench.rows if (row.name, row.is_ours) == (name, is_ours) and row.timing is not None]
        color = ACCENT if is_ours else _GRAYS[place % len(_GRAYS)]
        made.add_trace(
            go.Scatter(
                name=name,
                legendrank=place,
                mode="lines+markers",
                x=[row.number if is_numeric else row.size for row in rows],
                y=[getattr(row, of) * (1e3 if of == "seconds" else 1.0) for row in rows],
                line={"color": color, "width": 2.5 if is_ours else 1.5, "dash": _dash(place, is_ours)},
                marker={"color": color, "size": 7 if is_ours else 6, "symbol": _SYMBOLS[place % len(_SYMBOLS)]},
                customdata=[_times(row) for row in rows],
                hovertemplate=f"{name} at %{{x}}<br>%{{y:,.4g}} {unit}<br>%{{customdata}}<extra></extra>",
            )
        )
    made.update_layout(_layout(bench, unit, is_numeric))
    return made


def _dash(place: int, is_ours: bool) -> str:
    return "solid" if is_ours else _DASHES[place % len(_DASHES)]


def _times(row: Row) -> str:
    timing = row.timing
    assert timing is not None
    return f"{timing.median * 1e3:.4g} ms ({timing.low * 1e3:.4g} to {timing.high * 1e3:.4g})"


def _measure(bench: Bench) -> tuple[str, str]:
    """What is drawn, and its unit."""
    for of, unit in (("tflops", "TFLOP/s"), ("gb_per_second", "GB/s")):
        if all(getattr(row, of) is not None for row in bench.rows if row.timing is not None):
            return of, unit
    return "seconds", "ms"


def _layout(bench: Bench, unit: str, is_numeric: bool) -> dict[str, Any]:
    sizes = {row.size: row.number for row in bench.rows}
    axis: dict[str, Any] = {
        "showgrid": False,
        "zeroline": False,
        "linecolor": INK,
        "showline": True,
        "ticks": "outside",
    }
    if is_numeric:
        axis |= {"type": "log", "tickvals": list(sizes.values()), "ticktext": list(sizes)}
    else:
        axis |= {"type": "category", "categoryarray": list(sizes)}
    title = {"text": f"{bench.script} · {bench.title}", "font": {"size": 11}, "x": 0, "xanchor": "left"}
    return {
        **BASE,
        "margin": {"l": 8, "r": 16, "t": 56, "b": 32},
        "height": 320,
        "title": {**title, "y": 0.98, "yanchor": "top"},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"},
        "xaxis": {**axis, "title": {"text": "size", "font": {"size": 11}}},
        "yaxis": {
            "title": {"text": unit, "font": {"size": 11}},
            "rangemode": "tozero",
            "gridcolor": GRID,
            "zeroline": False,
            "automargin": True,
        },
    }
