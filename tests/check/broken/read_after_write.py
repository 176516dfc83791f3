# SPDX-License-Identifier: Apache-2.0
"""No barrier between a store to shared memory and a load by other threads."""

from tests.check.case import Broken
from tests.check.originals import EXCHANGE_HEADS, LINEAR, PARTS, THROUGH_SHARED, TRANSPOSE

CASES = (
    Broken(
        "transpose_without_sync",
        "race",
        TRANSPOSE,
        here="turned = self.load_shared(",
        or_here=("self.store_shared(tile",),
        script=(("            self.sync()\n", ""),),
    ),
    Broken(
        "heads_without_sync",
        "race",
        EXCHANGE_HEADS,
        here="self.load_shared(tile.permute(",
        or_here=("self.store_shared(tile",),
        script=(("            self.sync()\n", ""),),
    ),
    Broken(
        "matmul_without_sync_before_dot",
        "race",
        THROUGH_SHARED,
        here="self.dot(self.load_shared(sa)",
        or_here=(
            "self.store_shared(sa",
            "self.store_shared(sb",
        ),
        script=((("                self.sync()\n                acc = "), "                acc = "),),
    ),
    Broken(
        "layer_without_sync_before_its_rows_go_out",
        "race",
        LINEAR,
        here="self.store_global(gy, self.load_shared(sy)",
        or_here=("self.store_shared(sy",),
        script=(("            self.sync()\n            self.store_global(gy", "            self.store_global(gy"),),
    ),
    Broken(
        "row_replaced_without_sync",
        "race",
        PARTS,
        here="z = self.load_shared(stages[0])",
        or_here=("self.store_shared(stages, row",),
        script=(("        self.sync()\n        z = ", "        z = "),),
    ),
)
