# SPDX-License-Identifier: Apache-2.0
"""Two threads store to one place of shared memory, in no order."""

from tests.check.case import Broken
from tests.check.originals import OVERLAID, PAIR, STACK

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
        script=(("self.store_shared(turned.transpose()", "self.store_shared(straight.transpose()"),),
    ),
    Broken(
        "copy_over_a_store",
        "race",
        OVERLAID,
        here="self.copy_async(gx, tile",
        or_here=("self.store_shared(tile",),
        script=((("        self.sync()\n        self.copy_async("), "        self.copy_async("),),
    ),
)
