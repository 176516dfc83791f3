# SPDX-License-Identifier: Apache-2.0
"""A block waits for a value that nobody writes."""

from tests.check.case import Broken
from tests.check.originals import ACCUMULATE, RELAY, SPLIT_FLASH, SPLIT_K

CASES = (
    Broken(
        "release_counts_two",
        "deadlock",
        SPLIT_K,
        here="self.lock_semaphore(",
        script=(("self.release_semaphore(turn, split + 1)", "self.release_semaphore(turn, split + 2)"),),
    ),
    Broken(
        "lock_counts_from_one",
        "deadlock",
        SPLIT_FLASH,
        here="self.lock_semaphore(",
        script=(("self.lock_semaphore(turn, split)", "self.lock_semaphore(turn, split + 1)"),),
    ),
    Broken(
        "every_other_turn_is_left_out",
        "deadlock",
        ACCUMULATE,
        here="self.lock_semaphore(",
        script=(("(block + 1) % 4", "(block + 2) % 4"),),
    ),
    Broken(
        "turns_counted_down",
        "deadlock",
        ACCUMULATE,
        here="self.lock_semaphore(",
        script=(("item_ptr(), block)", "item_ptr(), 3 - block)"),),
    ),
    Broken(
        "flag_taken_for_a_count",
        "deadlock",
        RELAY,
        here="self.lock_semaphore(",
        script=(
            ("self.lock_semaphore(flags[block].item_ptr(), 1)", "self.lock_semaphore(flags[block].item_ptr(), block)"),
        ),
    ),
)
