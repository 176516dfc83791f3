# SPDX-License-Identifier: Apache-2.0
"""Who runs when: a few blocks at a time, in an order that a seed decides; one that waits gives the turn to another."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tilekit.diag import errors
from tilekit.ir.machine import Steps

# how many blocks are on the machine at once; the others wait for their end
RESIDENT_BLOCKS = 64


class ThreadGroup(Protocol):
    """Something that runs, waits and ends."""

    @property
    def steps(self) -> int:
        """How far it has come; the same number after a turn means that it only waited."""
        ...

    def run(self) -> Steps: ...

    def stuck(self) -> errors.KernelError:
        """What to say when it waits for something that will never happen."""
        ...


class Barrier:
    """Where the thread groups of a block wait for one another; a group that has ended is not waited for."""

    def __init__(self, groups: int) -> None:
        self.groups = groups
        self.arrived = 0
        self.round = 0

    def wait(self) -> Steps:
        self.arrived += 1
        current = self.round
        self._open()
        while self.round == current:
            yield

    def leave(self) -> None:
        self.groups -= 1
        self._open()

    def _open(self) -> None:
        if self.arrived >= self.groups:
            self.arrived = 0
            self.round += 1


@dataclass(eq=False)
class _Turn:
    """A group on the machine, with the generator that stands where it stopped."""

    group: ThreadGroup
    steps: Steps
    ended: bool = False

    def take(self) -> bool:
        """Run until the group waits or ends; whether it came further."""
        before = self.group.steps
        try:
            next(self.steps)
        except StopIteration:
            self.ended = True
        return self.ended or self.group.steps != before


def run_all(blocks: Iterable[Sequence[ThreadGroup]], seed: int) -> None:
    """Run every group of every block to its end; blocks come in their order and take turns in the seed's.

    Where every block on the machine waits, as many more come onto it: the one that they wait for may be among them.
    """
    dice = random.Random(seed)
    waiting = iter(blocks)
    resident: list[list[_Turn]] = []

    def admit(count: int) -> int:
        fresh = [[_Turn(group, group.run()) for group in groups] for groups in itertools.islice(waiting, count)]
        resident.extend(fresh)
        return len(fresh)

    while True:
        admit(max(RESIDENT_BLOCKS - len(resident), 0))
        if not resident:
            return
        turns = [turn for block in resident for turn in block if not turn.ended]
        dice.shuffle(turns)
        moved = [turn.take() for turn in turns]
        if not any(moved) and not admit(len(resident)):
            raise turns[0].group.stuck()
        resident[:] = [block for block in resident if not all(turn.ended for turn in block)]
