# SPDX-License-Identifier: Apache-2.0
"""Two threads store to one place of shared memory, in no order."""

from tests.check.case import Broken
from tests.check.originals import OVERLAID, PADDED, PAIR, PARTS, STACK

CASES = (
    Broken(
        "second_tile_begins_too_early",
        "race",
        STACK,
        here="self.load_global(gy",
        or_here=("self.load_global(gx",),
        script=(("offsets=[16, 0]", "offsets=[12, 0]"),),
    ),
    Broken(
        "two_tiles_in_one_tensor",
        "race",
        PAIR,
        here="self.store_shared(straight.transpose()",
        or_here=("self.store_shared(straight, ",),
        script=(
            ("self.store_shared(turned.transpose()", "self.store_shared(straight.transpose()"),
            ("self.load_shared(turned)", "self.load_shared(straight)"),
        ),
    ),
    Broken(
        "copy_over_a_store",
        "race",
        OVERLAID,
        here="self.copy_async(gx, tile",
        or_here=("self.store_shared(tile",),
        script=((("        self.sync()\n        self.copy_async("), "        self.copy_async("),),
    ),
    Broken(
        "row_below_over_the_last_row",
        "race",
        PADDED,
        here="self.store_shared(tile, below",
        or_here=("self.store_shared(tile, rows",),
        script=(("below, offsets=[17, 0]", "below, offsets=[16, 0]"),),
    ),
    Broken(
        "row_stored_with_its_stage",
        "race",
        PARTS,
        here="self.store_shared(stages, row",
        or_here=("self.store_shared(stages[i]",),
        script=(
            ("        self.sync()\n        y = self.load_shared(stages[2])\n", ""),
            ("        z = ", "        y = self.load_shared(stages[2])\n        z = "),
        ),
    ),
)
