# SPDX-License-Identifier: Apache-2.0
"""What a launch tells, on a GPU as on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

# told now and then how many blocks of a launch have ended, and how many there are
OnWait: TypeAlias = Callable[[int, int], None]


# What the CPU simulator counts in a launch; the words follow a number. Barriers are counted once for all the threads
# that meet, a collective (a shuffle, a vote, an `ldmatrix`) and a matrix instruction once for its warp, a copy
# (`cp.async`) for its thread. The bytes of shared memory are those that vector and matrix accesses read and write,
# copies included. A bank conflict is one turn more that lanes of a warp take, and a switch one of the simulator's own.
COUNTERS: Mapping[str, str] = {
    "blocks": "blocks",
    "threads": "threads",
    "barriers": "barriers",
    "collectives": "warp collectives",
    "mma": "matrix instructions",
    "copies": "asynchronous copies",
    "copy_bytes": "bytes copied so",
    "shared_bytes": "bytes of shared memory accessed",
    "bank_conflicts": "bank conflicts",
    "switches": "switches between threads",
}


@dataclass(frozen=True, slots=True)
class LaunchStats:
    """What a launch tells.

    Attributes
    ----------
    seconds
        The kernel alone; None where nobody waited for its end.
    copy_seconds
        Moving tensors to the simulator and back.
    counters
        On the CPU, what the emulated machine did, by the names of `COUNTERS`; empty on a GPU, which counts nothing.
    printed
        What the kernel printed.
    check
        What a launch in check mode checked.
    """

    seconds: float | None = None
    copy_seconds: float = 0.0
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    printed: str = ""
    check: CheckStats | None = None

    @property
    def counted(self) -> str:
        """The counters in words: those that are not zero, and bank conflicts wherever there could be some."""
        telling = {"bank_conflicts"} if self.counters.get("shared_bytes") else set[str]()
        shown = [name for name in COUNTERS if self.counters.get(name) or name in telling]
        return ", ".join(f"{self.counters[name]:,} {COUNTERS[name]}" for name in shown)


_NUMBERS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class CheckStats:
    """A launch in check mode that found nothing wrong: the blocks that ran, of how many, in an order by `seed`.

    `sample` are the numbers of the blocks, x fastest, where not all ran.
    """

    blocks: int
    of: int
    seed: int
    seconds: float
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    sample: tuple[int, ...] = ()

    def __str__(self) -> str:
        """One sentence that says which blocks, so that the same ones can be checked again."""
        which = f"all {self.of} blocks"
        if self.sample:
            shown = ", ".join(map(str, self.sample[:_NUMBERS_SHOWN]))
            rest = "" if self.blocks <= _NUMBERS_SHOWN else f" and {self.blocks - _NUMBERS_SHOWN} more"
            which = f"block{'s' if self.blocks > 1 else ''} {shown}{rest} of {self.of}"
        return f"checked {which}, seed {self.seed}: nothing wrong"


NOTHING_LAUNCHED = LaunchStats(seconds=0.0)
LAUNCHED = LaunchStats()
