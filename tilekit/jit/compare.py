# SPDX-License-Identifier: Apache-2.0
"""An edited kernel beside the generated one: both on copies of the last arguments, their outputs and their times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilekit.jit import contestants, held
from tilekit.jit.agreement import host
from tilekit.runtime import benchmark, tensors
from tilekit.runtime.launch import LaunchStats
from tilekit.runtime.manifest import Param
from tilekit.runtime.tensors import Device

_TURNS = 5
Launch = Callable[[Sequence[Any]], LaunchStats]


@dataclass(frozen=True)
class Comparison:
    """What came of it; `difference` is empty where every output is bit for bit the same."""

    difference: str
    max_error: float
    generated_seconds: float
    edited_seconds: float

    @property
    def same(self) -> bool:
        return not self.difference

    def __str__(self) -> str:
        if self.same:
            return "same result as the generated kernel on the last arguments"
        return f"differs from the generated kernel on the last arguments: {self.difference}"


def compare(
    params: Sequence[Param], arguments: Sequence[Any], generated: Launch, edited: Launch, device: Device
) -> Comparison:
    """Run both kernels; the arguments themselves stay as they are.

    Parameters
    ----------
    params, arguments
        The generated kernel's parameters and what the last call gave for them.
    generated, edited
        Launch one or the other kernel.
    device
        Where they run.
    """
    ours, theirs = held.copies(arguments), held.copies(arguments)
    passed = [(i, param) for i, param in enumerate(params) if tensors.is_tensor(arguments[i])]
    for values in (ours, theirs):
        contestants.spoil_outputs(values, passed)
    generated(ours)
    edited(theirs)
    difference, worst = "", 0.0
    for param, mine, other in zip(params, ours, theirs, strict=True):
        if not tensors.is_tensor(mine):
            continue
        found, error = _difference(param.name, host(mine), host(other))
        difference = difference or found
        worst = max(worst, error)
    times: dict[int, list[float]] = {0: [], 1: []}
    for _ in range(_TURNS):
        # in turn, so that both meet the same machine
        for which, (launch, values) in enumerate(((generated, ours), (edited, theirs))):
            times[which].append(_seconds(launch, values, device))
    return Comparison(difference, worst, min(times[0]), min(times[1]))


def _seconds(launch: Launch, values: Sequence[Any], device: Device) -> float:
    if device == tensors.CPU:
        return launch(values).seconds or 0.0
    return benchmark.measure(lambda: launch(values), device=device, warmup=0, repeat=1).best


def _difference(name: str, mine: Any, other: Any) -> tuple[str, float]:
    """Where two arrays first differ, in words, and by how much at most; NaN equals NaN."""
    differs = np.logical_not((mine == other) | ((mine != mine) & (other != other)))
    if not differs.any():
        return "", 0.0
    index = tuple(int(i) for i in np.argwhere(differs)[0])
    error = np.abs(mine.astype(np.float64) - other.astype(np.float64))[differs]
    finite = error[np.isfinite(error)]
    worst = float(finite.max()) if finite.size else float("inf")
    place = f"{name}[{', '.join(map(str, index))}]"
    count = int(differs.sum())
    return (
        f"{place} is {other[index]} and was {mine[index]}; {count} of {differs.size} elements differ, "
        f"by {worst:.3g} at most",
        worst,
    )
