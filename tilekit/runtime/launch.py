# SPDX-License-Identifier: Apache-2.0
"""What a launch tells, on a GPU as on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LaunchStats:
    """`seconds` is the kernel alone, None where nobody waited for its end; `copy_seconds`, moving tensors."""

    seconds: float | None = None
    copy_seconds: float = 0.0
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    printed: str = ""
    check: CheckStats | None = None


@dataclass(frozen=True, slots=True)
class CheckStats:
    """A launch in check mode that found nothing wrong: the blocks that ran, of how many, in an order by `seed`."""

    blocks: int
    of: int
    seed: int
    seconds: float
    counters: Mapping[str, int] = field(default_factory=dict[str, int])

    def __str__(self) -> str:
        which = f"all {self.of} blocks" if self.blocks == self.of else f"{self.blocks} of {self.of} blocks"
        return f"checked {which}, seed {self.seed}: nothing wrong"


NOTHING_LAUNCHED = LaunchStats(seconds=0.0)
LAUNCHED = LaunchStats()
