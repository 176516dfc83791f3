# SPDX-License-Identifier: Apache-2.0
"""What a launch tells, on a GPU as on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

# told now and then how many blocks of a launch have ended, and how many there are
OnWait: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class LaunchStats:
    """`seconds` is the kernel alone, None where nobody waited for its end; `copy_seconds`, moving tensors."""

    seconds: float | None = None
    copy_seconds: float = 0.0
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    printed: str = ""
    check: CheckStats | None = None


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
