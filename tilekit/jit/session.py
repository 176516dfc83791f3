# SPDX-License-Identifier: Apache-2.0
"""What holds for a stretch of the program: the target where nobody names one, whether launches are checked, a cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilekit import target as targets
from tilekit.jit import observer
from tilekit.runtime import device
from tilekit.target import Target

_chosen: list[Target | None] = [None]


@contextmanager
def default_target(chosen: Target | None) -> Iterator[None]:
    """Within the block, new handles compile for this target; None leaves the choice as it is."""
    _chosen.append(chosen or _chosen[-1])
    try:
        yield
    finally:
        _chosen.pop()


def chosen_target() -> Target | None:
    return _chosen[-1]


_check_seeds: list[int | None] = [None]


@contextmanager
def checking(seed: int | None = 0) -> Iterator[None]:
    """Within the block, what runs on the CPU runs in check mode, in an order by the seed; None: it does not."""
    _check_seeds.append(seed)
    try:
        yield
    finally:
        _check_seeds.pop()


def check_seed() -> int | None:
    """The seed of launches in check mode; None where launches are not checked."""
    return _check_seeds[-1]


_cells = [0]


def begin_cell() -> None:
    """A cell of a notebook begins: the ones before it may have changed what kernels depend on."""
    _cells[0] += 1


def cell() -> int:
    """How many cells have begun; outside of notebooks always 0."""
    return _cells[0]


def moment() -> tuple[Target | None, int, int]:
    """The chosen target, the cell, who traces: as long as they stay, the same call finds the same kernel."""
    return _chosen[-1], _cells[0], observer.tracing()


def current_target() -> Target:
    """The target that kernels are compiled for where nobody names one: the chosen one, or that of this machine."""
    return chosen_target() or machine_target()


def machine_target(index: int = 0) -> Target:
    """The target of this machine's GPU, or the default where it has none."""
    gpus = device.survey().gpus
    return targets.best_for(gpus[index].capability) if index < len(gpus) else targets.DEFAULT
