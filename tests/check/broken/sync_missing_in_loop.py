# SPDX-License-Identifier: Apache-2.0
"""A barrier that not every iteration passes."""

from tests.check.case import Broken
from tests.check.originals import FLASH, INT8_MATMUL, PAGED, THROUGH_SHARED, TUNED

CASES = (
    Broken(
        "sync_behind_the_loop",
        "race",
        THROUGH_SHARED,
        here="self.store_shared(sa",
        or_here=(
            "self.store_shared(sb",
            "self.dot(self.load_shared(sa)",
        ),
        script=((("acc)\n                self.sync()\n"), ("acc)\n            self.sync()\n")),),
    ),
    Broken(
        "sync_in_the_first_iteration_only",
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
                (
                    "                if depth == 0:\n"
                    "                    self.sync()\n"
                    "                self.store_shared(sa"
                ),
            ),
        ),
    ),
    Broken(
        "no_sync_in_the_first_iteration",
        "race",
        INT8_MATMUL,
        here="self.dot(self.load_shared(sa)",
        or_here=(
            "self.store_shared(sa, a)",
            "self.store_shared(sb, b)",
        ),
        script=(
            (
                ("            self.sync()\n            acc = "),
                ("            if depth > 0:\n                self.sync()\n            acc = "),
            ),
        ),
    ),
    Broken(
        "attention_syncs_for_its_first_values_only",
        "race",
        FLASH,
        here="acc = self.dot(p.to(dtype), self.load_shared(sv)",
        or_here=(
            "self.copy_async(gv, sv",
            "self.copy_async(gk, sk, offsets=[item, start",
            "score = self.dot(q, self.load_shared(sk",
        ),
        script=(
            (
                "                self.sync()\n                self.copy_async(gk",
                "                if start == 0:\n                    self.sync()\n                self.copy_async(gk",
            ),
        ),
    ),
    Broken(
        "sync_for_the_next_page_only",
        "race",
        PAGED,
        here="score = self.dot(q, self.load_shared(sk[stage]",
        or_here=("acc = self.dot(p.to(dtype), self.load_shared(sv[stage]", "self.copy_async("),
        script=(
            (
                "                self.sync()\n                if i + 1 < pages:\n",
                "                if i + 1 < pages:\n                    self.sync()\n",
            ),
        ),
    ),
)
