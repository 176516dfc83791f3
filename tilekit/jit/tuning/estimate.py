# SPDX-License-Identifier: Apache-2.0
"""What the simulator's counters say of a schedule, in cycles of one multiprocessor of a GPU that is about an H100.

It ranks the schedules of one kernel where there is no GPU, no more: another GPU, a cache that hits, or an instruction
that nobody counts (plain loads and stores, arithmetic on registers) may rank them otherwise. The work of a launch is
spread over the multiprocessors,

    rounds = blocks of the launch / blocks that run at a time, rounded up
    share  = rounds · blocks at a time / blocks of the launch / multiprocessors

and each multiprocessor is as busy as its busiest unit, behind which the two others hide, and waits beside that:

    matrix   4 cycles a matrix instruction
    shared   1 cycle for 128 bytes of shared memory, and 1 for each bank conflict
    copies   1 cycle for 16 bytes that asynchronous copies bring from global memory
    waits    40 cycles a barrier and 2 a collective of a warp, while the other blocks there work
    starts   600 cycles a block, while the other blocks there work, and 1 for each of its warps

    cycles = share · (max(matrix, shared, copies) + waits + starts)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MULTIPROCESSORS = 132
_THREADS = 2048  # of a multiprocessor
_BLOCKS = 32
_SHARED = 228 * 1024
_SHARED_OF_SYSTEM = 1024  # for each block
_WARP = 32


@dataclass(frozen=True)
class Estimate:
    """The cycles of each unit, spread over the multiprocessors, and how many blocks run on one at a time."""

    matrix: float
    shared: float
    copies: float
    waits: float
    starts: float
    resident: int

    @property
    def cycles(self) -> float:
        return max(self.matrix, self.shared, self.copies) + self.waits + self.starts


def estimate(counters: Mapping[str, int], threads: int, shared_bytes: int) -> Estimate:
    """The estimate for a launch of blocks of so many threads, with so much shared memory each."""
    blocks = max(counters.get("blocks", 0), 1)
    resident = max(1, min(_BLOCKS, _THREADS // threads, _SHARED // (shared_bytes + _SHARED_OF_SYSTEM)))
    at_a_time = MULTIPROCESSORS * resident
    share = -(-blocks // at_a_time) * at_a_time / blocks / MULTIPROCESSORS

    def count(name: str) -> int:
        return counters.get(name, 0)

    warps = blocks * -(-threads // _WARP)
    return Estimate(
        matrix=share * 4 * count("mma"),
        shared=share * (count("shared_bytes") / 128 + count("bank_conflicts")),
        copies=share * count("copy_bytes") / 16,
        waits=share * (40 * count("barriers") + 2 * count("collectives")) / resident,
        starts=share * (600 * blocks / resident + warps),
        resident=resident,
    )
