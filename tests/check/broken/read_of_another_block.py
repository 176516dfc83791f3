# SPDX-License-Identifier: Apache-2.0
"""A block reads what another block of the launch writes."""

import torch

from tests.check.case import Broken
from tests.check.originals import COLLECT, PREVIOUS, RMS_NORM, TRANSPOSE


def in_place():
    """The input is also the output."""
    x = torch.randn(256)
    return 256, x, x


def square_in_place():
    """A square matrix and itself."""
    x = torch.randn(64, 64).half()
    return 64, 64, x, x


CASES = (
    Broken(
        "sum_that_trusts_the_order_of_blocks",
        "global_race",
        PREVIOUS,
        here="before = self.load_global(",
        or_here=("self.store_global(gy",),
        script=(("before = self.load_global(gx", "before = self.load_global(gy"),),
    ),
    Broken(
        "sum_in_place",
        "global_race",
        PREVIOUS,
        here="before = self.load_global(",
        or_here=("self.store_global(gy",),
        arguments=in_place,
    ),
    Broken(
        "norm_of_the_rows_below",
        "global_race",
        RMS_NORM,
        here="x = self.load_global(g_residual",
        or_here=("self.store_global(g_residual",),
        script=(
            (
                "x = self.load_global(g_residual, offsets=[row, column]",
                "x = self.load_global(g_residual, offsets=[row + self.block_m, column]",
            ),
        ),
    ),
    Broken(
        "last_block_does_not_wait",
        "global_race",
        COLLECT,
        here="total += self.load_global(parts",
        or_here=("self.store_global(parts",),
        script=(("        self.lock_semaphore(done[0].item_ptr(), block)\n", ""),),
    ),
    Broken(
        "transpose_in_place",
        "global_race",
        TRANSPOSE,
        here="self.store_global(gy",
        or_here=("self.load_global(gx",),
        arguments=square_in_place,
    ),
)
