# SPDX-License-Identifier: Apache-2.0
"""Blocks that add to one sum without an order."""

from tests.check.case import Broken
from tests.check.originals import ACCUMULATE

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
)
