# SPDX-License-Identifier: Apache-2.0
"""Times as people read them: three digits of what was measured, whole units of what is left."""

from __future__ import annotations


def measured(seconds: float) -> str:
    """A time in three digits and the unit that suits it."""
    scale, unit = _unit(seconds)
    return f"{_three(seconds * scale)} {unit}"


def between(low: float, high: float, median: float) -> str:
    """A span of times, in the unit that suits their median."""
    scale, unit = _unit(median)
    return f"{_three(low * scale)}–{_three(high * scale)} {unit}"


def left(seconds: float) -> str:
    """A guess, in whole seconds or minutes."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _unit(seconds: float) -> tuple[float, str]:
    if seconds >= 1:
        return 1.0, "s"
    return (1e3, "ms") if seconds >= 1e-3 else (1e6, "µs")


def _three(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
