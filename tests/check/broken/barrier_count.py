# SPDX-License-Identifier: Apache-2.0
"""A barrier that waits for other threads than those that come."""

from tests.check.case import Broken
from tests.check.originals import EXCHANGE_HEADS, STACK, TRANSPOSE

CASES = (
    Broken(
        "more_threads_than_the_block_has",
        "deadlock",
        TRANSPOSE,
        here="self.sync()",
        source=(("__syncthreads();", "__syncthreads(); tk::bar_sync(1, 160);"),),
    ),
    Broken(
        "halves_at_two_barriers",
        "deadlock",
        STACK,
        here="self.sync()",
        source=(("__syncthreads();", "__syncthreads(); tk::bar_sync(tid < 64 ? 1 : 2, 128);"),),
    ),
    Broken(
        "one_warp_does_not_come",
        "deadlock",
        EXCHANGE_HEADS,
        here="self.sync()",
        source=(("__syncthreads();", "__syncthreads(); if (tid >= 32) tk::bar_sync(1, 64);"),),
    ),
)
