# SPDX-License-Identifier: Apache-2.0
"""What holds for a stretch of the program: a target, changes to the pipeline, whether launches are checked, a cell."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tilekit import config
from tilekit import target as targets
from tilekit.jit import observer
from tilekit.runtime import device
from tilekit.target import Target

if TYPE_CHECKING:
    from tilekit.transforms.custom import Change

_chosen: list[Target | None] = [None]


@contextmanager
def default_target(chosen: Target | None) -> Iterator[None]:
    """Within the block, new handles compile for this target; None leaves the choice as it is."""
    _chosen.append(chosen or _chosen[-1])
    config.begin_era()
    try:
        yield
    finally:
        _chosen.pop()
        config.begin_era()


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
    config.begin_era()


def cell() -> int:
    """How many cells have begun; outside of notebooks always 0."""
    return _cells[0]


# the changes that hold until somebody sets others, and those of each open block, each with the number of its beginning
_changes: list[tuple[int, tuple[Change, ...]]] = [(0, ())]
_next = itertools.count(1)


@contextmanager
def changed_pipeline(changes: Sequence[Change]) -> Iterator[None]:
    """Within the block, kernels are compiled with these changes to the pipeline as well."""
    _changes.append((next(_next), tuple(changes)))
    config.begin_era()
    try:
        yield
    finally:
        _changes.pop()
        config.begin_era()


def set_pipeline_changes(changes: Sequence[Change]) -> None:
    """Let these changes to the pipeline hold from now on, in place of those that were set before."""
    of_blocks = [each for _, each in _changes[1:]]
    _changes[:] = [(next(_next), each) for each in (tuple(changes), *of_blocks)]
    config.begin_era()


def standing_changes() -> tuple[Change, ...]:
    """The changes to the pipeline that hold outside of blocks."""
    return _changes[0][1]


def pipeline_changes() -> tuple[Change, ...]:
    """Every change to the pipeline that holds now."""
    return tuple(change for _, changes in _changes for change in changes)


def moment() -> tuple[Target | None, int, int, int]:
    """The target, the cell, who traces, the pipeline: as long as they stay, the same call finds the same kernel.

    Whoever changes one of them begins an era: see `config`.
    """
    return _chosen[-1], _cells[0], observer.tracing(), _changes[-1][0]


def current_target() -> Target:
    """The target that kernels are compiled for where nobody names one: the chosen one, or that of this machine."""
    return chosen_target() or machine_target()


def machine_target(index: int = 0) -> Target:
    """The target of this machine's GPU, or the default where it has none."""
    gpus = device.survey().gpus
    return targets.best_for(gpus[index].capability) if index < len(gpus) else targets.DEFAULT
