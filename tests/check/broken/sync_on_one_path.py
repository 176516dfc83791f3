# SPDX-License-Identifier: Apache-2.0
"""A condition that is the same for the whole block skips the barrier in some blocks."""

from tests.check.case import Broken
from tests.check.originals import EXCHANGE_HEADS, THROUGH_SHARED, TRANSPOSE

CASES = (
    Broken(
        "transpose_syncs_below_the_first_row",
        "race",
        TRANSPOSE,
        here="turned = self.load_shared(",
        or_here=("self.store_shared(tile",),
        script=(("            self.sync()\n", ("            if row > 0:\n                self.sync()\n")),),
    ),
    Broken(
        "heads_sync_in_all_blocks_but_the_first",
        "race",
        EXCHANGE_HEADS,
        here="self.load_shared(tile.permute(",
        or_here=("self.store_shared(tile",),
        script=(("            self.sync()\n", ("            if first > 0:\n                self.sync()\n")),),
    ),
    Broken(
        "matmul_syncs_in_large_problems",
        "race",
        THROUGH_SHARED,
        here="self.dot(self.load_shared(sa)",
        or_here=(
            "self.store_shared(sa",
            "self.store_shared(sb",
        ),
        script=(
            (
                ("                self.sync()\n                acc = "),
                ("                if m > 64:\n                    self.sync()\n                acc = "),
            ),
        ),
    ),
)
