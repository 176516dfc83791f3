# SPDX-License-Identifier: Apache-2.0
"""A shared tensor is used after it was freed."""

from tests.check.case import Broken
from tests.check.originals import OVERLAID, REUSE, THROUGH_SHARED, TRANSPOSE, VIEWS

CASES = (
    Broken(
        "freed_before_the_load",
        "out_of_bounds",
        TRANSPOSE,
        here="turned = self.load_shared(",
        script=(
            (
                ("            turned = self.load_shared(tile.transpose())\n            self.free_shared(tile)\n"),
                ("            self.free_shared(tile)\n            turned = self.load_shared(tile.transpose())\n"),
            ),
        ),
    ),
    Broken(
        "freed_in_the_loop",
        "out_of_bounds",
        THROUGH_SHARED,
        here="self.store_shared(sa",
        script=(
            (
                ("acc)\n                self.sync()\n            self.free_shared(sa)\n"),
                ("acc)\n                self.sync()\n                self.free_shared(sa)\n"),
            ),
        ),
    ),
    Broken(
        "read_when_another_tensor_has_the_memory",
        "out_of_bounds",
        REUSE,
        here="x = self.load_shared(",
        script=(
            ("        x = self.load_shared(first.transpose())\n", ""),
            (
                "        y = self.load_shared(",
                ("        x = self.load_shared(first.transpose())\n        y = self.load_shared("),
            ),
        ),
    ),
    Broken(
        "view_of_a_freed_tensor",
        "out_of_bounds",
        VIEWS,
        here="self.load_shared(rows)",
        script=(
            (
                "        gf = self.global_view(",
                (
                    "        rows = self.reshape_shared(s, [64, 64])\n"
                    "        self.free_shared(s)\n"
                    "        gf = self.global_view("
                ),
            ),
            ("self.load_shared(self.reshape_shared(s, [64, 64]))", "self.load_shared(rows)"),
        ),
    ),
    Broken(
        "copy_into_a_freed_tile",
        "out_of_bounds",
        OVERLAID,
        here="self.copy_async(gx, tile",
        script=(
            ("        self.free_shared(tile)\n", ""),
            ("        self.copy_async(gx, tile", "        self.free_shared(tile)\n        self.copy_async(gx, tile"),
        ),
    ),
)
