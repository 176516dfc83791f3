# SPDX-License-Identifier: Apache-2.0
"""What becomes the output was written in part only."""

from tests.check.case import Broken
from tests.check.originals import GATHER, SCRATCH, VIEWS

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
)
