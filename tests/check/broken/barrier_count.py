# SPDX-License-Identifier: Apache-2.0
"""A barrier that waits for other threads than those that come."""

from tests.check.case import Broken
from tests.check.originals import EXCHANGE_HEADS, FLASH, INT8_MATMUL, STACK, TRANSPOSE

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
    Broken(
        "one_barrier_for_two_groups",
        "deadlock",
        FLASH,
        here="self.sync()  # all see the keys",
        script=(
            (
                "                self.sync()\n                self.copy_async(gv",
                "                self.sync()  # all see the keys\n                self.copy_async(gv",
            ),
        ),
        source=(
            (
                "    // sync()\n    __syncthreads();\n    // copy_async_generic(sv",
                (
                    "    // sync()\n    __syncthreads(); if (tid < 64) tk::bar_sync(1, 64); tk::bar_sync(1, 128);\n"
                    "    // copy_async_generic(sv"
                ),
            ),
        ),
    ),
    Broken(
        "warps_instead_of_threads",
        "deadlock",
        INT8_MATMUL,
        here="self.sync()  # the tiles are free",
        script=(
            (
                "            self.sync()\n            self.store_shared(sa",
                "            self.sync()  # the tiles are free\n            self.store_shared(sa",
            ),
        ),
        source=(
            (
                "    __syncthreads();\n    // store_shared(sa",
                "    __syncthreads(); tk::bar_sync(1, 4);\n    // store_shared(sa",
            ),
        ),
    ),
)
