# SPDX-License-Identifier: Apache-2.0
"""A tile is filled again while other threads still read what was in it."""

from tests.check.case import Broken
from tests.check.originals import INT8_MATMUL, THROUGH_SHARED, TUNED

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
)
