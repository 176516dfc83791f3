# SPDX-License-Identifier: Apache-2.0
"""A condition that is the same for the whole block skips the barrier in some blocks."""

from tests.check.case import Broken
from tests.check.originals import EXCHANGE_HEADS, LINEAR, SPLIT_FLASH, THROUGH_SHARED, TRANSPOSE, layer

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
    Broken(
        "part_of_attention_syncs_behind_the_first_keys",
        "race",
        SPLIT_FLASH,
        here="score = self.dot(q, self.load_shared(sk[stage]",
        or_here=(
            "acc = self.dot(p.to(dtype), self.load_shared(sv[stage]",
            "self.copy_async(gk, sk[0]",
            "self.copy_async(gv, sv[0]",
            "self.copy_async(gk, sk[1 - stage]",
            "self.copy_async(gv, sv[1 - stage]",
        ),
        script=(
            (
                "                self.sync()\n                later = ",
                "                if begin > 0:\n                    self.sync()\n                later = ",
            ),
        ),
    ),
    Broken(
        "layer_syncs_for_whole_tiles",
        "race",
        LINEAR.on(lambda: layer(m=96)),
        here="self.store_global(gy, self.load_shared(sy)",
        or_here=("self.store_shared(sy",),
        script=(
            (
                "            self.sync()\n            self.store_global(gy",
                "            if row + self.block_m <= m:\n"
                "                self.sync()\n"
                "            self.store_global(gy",
            ),
        ),
    ),
)
