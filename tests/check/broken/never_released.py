# SPDX-License-Identifier: Apache-2.0
"""A semaphore that nobody releases."""

from tests.check.case import Broken
from tests.check.originals import ACCUMULATE, ACCUMULATE_TWO, RELAY, SPLIT_FLASH, SPLIT_K

CASES = (
    Broken(
        "split_does_not_hand_on_its_turn",
        "deadlock",
        SPLIT_K,
        here="self.lock_semaphore(",
        script=(("                self.release_semaphore(turn, split + 1)\n", ""),),
    ),
    Broken(
        "part_of_attention_does_not_hand_on_its_turn",
        "deadlock",
        SPLIT_FLASH,
        here="self.lock_semaphore(",
        script=(("            self.release_semaphore(turn, split + 1)\n", ""),),
    ),
    Broken(
        "relay_tells_nobody",
        "deadlock",
        RELAY,
        here="self.lock_semaphore(",
        script=(
            (("        if block < n - 1:\n            self.release_semaphore(flags[block + 1].item_ptr(), 1)\n"), ""),
        ),
    ),
    Broken(
        "one_block_has_nothing_to_add",
        "deadlock",
        ACCUMULATE,
        here="self.lock_semaphore(",
        script=(
            (
                "        self.lock_semaphore(",
                "        if block == 2:\n            return\n        self.lock_semaphore(",
            ),
        ),
    ),
    Broken(
        "second_sum_is_not_handed_on",
        "deadlock",
        ACCUMULATE_TWO,
        here="self.lock_semaphore(turns[1]",
        script=(("        self.release_semaphore(turns[1].item_ptr(), (block + 1) % 4)\n", ""),),
    ),
)
