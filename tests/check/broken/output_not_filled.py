# SPDX-License-Identifier: Apache-2.0
"""What becomes the output was written in part only."""

from tests.check.case import Broken
from tests.check.originals import COLLECT, GATHER, SCRATCH, STACK, VIEWS

CASES = (
    Broken(
        "three_of_four_rows_gathered",
        "uninitialized",
        GATHER,
        here="self.store_global(gy, tile",
        script=(("self.range(4,", "self.range(3,"),),
    ),
    Broken(
        "one_of_two_halves_stored",
        "uninitialized",
        VIEWS,
        here="self.load_shared(s[1].transpose())",
        script=(("for half in range(2):", "for half in range(1):"),),
    ),
    Broken(
        "part_of_a_workspace_stored",
        "uninitialized",
        SCRATCH,
        here="turned = self.load_global(",
        script=(
            (
                ("shape=[32, 16], dims=[1, 2])\n        self.store"),
                ("shape=[24, 16], dims=[1, 2])\n        self.store"),
            ),
        ),
    ),
    Broken(
        "second_tile_ends_too_early",
        "uninitialized",
        STACK,
        here="self.load_shared(tile)",
        script=(("shape=[16, 64]), offsets=[16, 0])", "shape=[12, 64]), offsets=[16, 0])"),),
    ),
    Broken(
        "one_block_leaves_nothing",
        "uninitialized",
        COLLECT,
        here="total += self.load_global(parts",
        script=(
            (
                "        self.store_global(parts,",
                "        if block < n - 1:\n            self.store_global(parts,",
            ),
        ),
    ),
)
