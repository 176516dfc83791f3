# SPDX-License-Identifier: Apache-2.0
"""A workspace is read before anybody has written it."""

from tests.check.case import Broken
from tests.check.originals import SCRATCH, SPLIT_FLASH, SPLIT_K

CASES = (
    Broken(
        "first_split_adds_too",
        "uninitialized",
        SPLIT_K,
        here="acc += self.load_global(sums",
        script=(("if split > 0:", "if split >= 0:"),),
    ),
    Broken(
        "first_part_of_attention_adds_too",
        "uninitialized",
        SPLIT_FLASH,
        here="acc0 = self.load_global(",
        script=(("if split > 0:", "if split >= 0:"),),
    ),
    Broken(
        "transpose_through_nothing",
        "uninitialized",
        SCRATCH,
        here="turned = self.load_global(",
        script=(("        self.store_global(scratch, x, offsets=[block, 0, 0], dims=[1, 2])\n", ""),),
    ),
    Broken(
        "sums_of_weights_are_not_handed_on",
        "uninitialized",
        SPLIT_FLASH,
        here="total0 = self.load_global(",
        script=(("            self.store_global(g_total, total, offsets=[task, 0, 0], dims=[1, 2])\n", ""),),
    ),
    Broken(
        "turns_that_hold_nothing",
        "uninitialized",
        SPLIT_K,
        here="self.lock_semaphore(",
        script=(("requires_clean=True", "requires_clean=False"),),
    ),
)
