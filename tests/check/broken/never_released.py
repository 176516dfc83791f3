# SPDX-License-Identifier: Apache-2.0
"""A semaphore that nobody releases."""

from tests.check.case import Broken
from tests.check.originals import RELAY, SPLIT_FLASH, SPLIT_K

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
)
