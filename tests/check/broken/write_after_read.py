# SPDX-License-Identifier: Apache-2.0
"""A tile is filled again while other threads still read what was in it."""

from tests.check.case import Broken
from tests.check.originals import INT8_MATMUL, PARTS, SHAPES, THROUGH_SHARED, TUNED

CASES = (
    Broken(
        "matmul_without_sync_after_dot",
        "race",
        THROUGH_SHARED,
        here="self.store_shared(sa",
        or_here=(
            "self.store_shared(sb",
            "self.dot(self.load_shared(sa)",
        ),
        script=((("acc)\n                self.sync()\n"), "acc)\n"),),
    ),
    Broken(
        "tuned_matmul_without_sync_before_store",
        "race",
        TUNED,
        here="self.store_shared(sa, a)",
        or_here=(
            "self.store_shared(sb, b)",
            "self.dot(self.load_shared(sa)",
        ),
        script=(
            (
                ("                self.sync()\n                self.store_shared(sa"),
                "                self.store_shared(sa",
            ),
        ),
    ),
    Broken(
        "int8_matmul_without_sync_before_store",
        "race",
        INT8_MATMUL,
        here="self.store_shared(sa, a)",
        or_here=(
            "self.store_shared(sb, b)",
            "self.dot(self.load_shared(sa)",
        ),
        script=((("            self.sync()\n            self.store_shared(sa"), "            self.store_shared(sa"),),
    ),
    Broken(
        "row_replaced_in_the_stage_that_is_read",
        "race",
        PARTS,
        here="self.store_shared(stages, row",
        or_here=("y = self.load_shared(stages[0])",),
        script=(("y = self.load_shared(stages[2])", "y = self.load_shared(stages[0])"),),
    ),
    Broken(
        "tile_turned_in_its_place_without_sync",
        "race",
        SHAPES,
        here="self.store_shared(s.transpose()",
        or_here=("self.keep(6,", "self.keep(7,"),
        script=(
            ("        self.sync()\n        self.store_shared(s.transpose()", "        self.store_shared(s.transpose()"),
        ),
    ),
)
