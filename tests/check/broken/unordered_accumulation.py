# SPDX-License-Identifier: Apache-2.0
"""Blocks that add to one sum without an order."""

from tests.check.case import Broken
from tests.check.originals import ACCUMULATE, SPLIT_FLASH, SPLIT_K

CASES = (
    Broken(
        "no_lock",
        "global_race",
        ACCUMULATE,
        here="total = self.load_global(gy",
        or_here=("self.store_global(gy",),
        script=(("        self.lock_semaphore(turns[0].item_ptr(), block)\n", ""),),
    ),
    Broken(
        "load_before_the_lock",
        "global_race",
        ACCUMULATE,
        here="total = self.load_global(gy",
        or_here=("self.store_global(gy",),
        script=(
            (
                (
                    "        self.lock_semaphore(turns[0].item_ptr(), block)\n"
                    "        total = self.load_global(gy, offsets=[0], shape=[64])\n"
                ),
                (
                    "        total = self.load_global(gy, offsets=[0], shape=[64])\n"
                    "        self.lock_semaphore(turns[0].item_ptr(), block)\n"
                ),
            ),
        ),
    ),
    Broken(
        "store_after_the_release",
        "global_race",
        ACCUMULATE,
        here="total = self.load_global(gy",
        or_here=("self.store_global(gy",),
        script=(
            (
                (
                    "        self.store_global(gy, total + x, offsets=[0])\n"
                    "        self.release_semaphore(turns[0].item_ptr(), (block + 1) % 4)\n"
                ),
                (
                    "        self.release_semaphore(turns[0].item_ptr(), (block + 1) % 4)\n"
                    "        self.store_global(gy, total + x, offsets=[0])\n"
                ),
            ),
        ),
    ),
    Broken(
        "sums_loaded_before_the_turn",
        "global_race",
        SPLIT_K,
        here="acc += self.load_global(sums",
        or_here=("self.store_global(sums, acc",),
        script=(
            ("            self.lock_semaphore(turn, split)\n", ""),
            (
                "            if split < self.splits - 1:",
                "            self.lock_semaphore(turn, split)\n            if split < self.splits - 1:",
            ),
        ),
    ),
    Broken(
        "part_of_attention_handed_on_before_it_is_stored",
        "global_race",
        SPLIT_FLASH,
        here="acc0 = self.load_global(",
        or_here=(
            "largest0 = self.load_global(",
            "total0 = self.load_global(",
            "self.store_global(g_acc",
            "self.store_global(g_largest",
            "self.store_global(g_total",
        ),
        script=(
            ("            self.release_semaphore(turn, split + 1)\n", ""),
            (
                "            self.store_global(g_acc",
                "            self.release_semaphore(turn, split + 1)\n            self.store_global(g_acc",
            ),
        ),
    ),
)
