# SPDX-License-Identifier: Apache-2.0
"""Blocks that wait for each other in a ring."""

from tests.check.case import Broken
from tests.check.originals import ACCUMULATE, ACCUMULATE_TWO, RELAY

CASES = (
    Broken(
        "first_waits_for_the_last",
        "deadlock",
        RELAY,
        here="self.lock_semaphore(",
        script=(
            ("if block > 0:", "if block >= 0:"),
            (
                ("if block < n - 1:\n            self.release_semaphore(flags[block + 1]"),
                ("if block < n:\n            self.release_semaphore(flags[(block + 1) % n]"),
            ),
        ),
    ),
    Broken(
        "each_waits_for_the_turn_before_its_own",
        "deadlock",
        ACCUMULATE,
        here="self.lock_semaphore(",
        script=(("item_ptr(), block)", "item_ptr(), (block + 3) % 4)"),),
    ),
    Broken(
        "two_locks_in_opposite_orders",
        "deadlock",
        ACCUMULATE_TWO,
        here="self.lock_semaphore(turns[1]",
        or_here=("self.lock_semaphore(turns[0]",),
        script=(("turns[1].item_ptr(), block)", "turns[1].item_ptr(), 3 - block)"),),
    ),
    Broken(
        "each_waits_for_the_other_to_be_ready",
        "deadlock",
        RELAY,
        here="self.lock_semaphore(flags[block].item_ptr()",
        or_here=("self.lock_semaphore(flags[block + 1].item_ptr()",),
        script=(
            (
                "self.release_semaphore(flags[block].item_ptr(), 0)",
                "self.release_semaphore(flags[block].item_ptr(), 2)",
            ),
            (
                "            self.release_semaphore(flags[block + 1]",
                (
                    "            self.lock_semaphore(flags[block + 1].item_ptr(), 2)\n"
                    "            self.release_semaphore(flags[block + 1]"
                ),
            ),
        ),
    ),
    Broken(
        "each_waits_for_its_own_release",
        "deadlock",
        ACCUMULATE_TWO,
        here="self.lock_semaphore(turns[1]",
        script=(("turns[1].item_ptr(), block)", "turns[1].item_ptr(), (block + 1) % 4)"),),
    ),
)
