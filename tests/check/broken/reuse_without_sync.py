# SPDX-License-Identifier: Apache-2.0
"""Freed memory becomes another tensor while threads still read the old one."""

from tests.check.case import Broken
from tests.check.originals import REUSE, REUSE_AS_ANOTHER_TYPE, REUSE_BY_COPY

CASES = (
    Broken(
        "store_over_a_freed_tile",
        "race",
        REUSE,
        here="self.store_shared(second",
        or_here=("x = self.load_shared(",),
        script=((("        self.sync()\n        self.free_shared(first)"), "        self.free_shared(first)"),),
    ),
    Broken(
        "copy_over_a_freed_tile",
        "race",
        REUSE_BY_COPY,
        here="self.copy_async(gy, second",
        or_here=("x = self.load_shared(",),
        script=((("        self.sync()\n        self.free_shared(first)"), "        self.free_shared(first)"),),
    ),
    Broken(
        "another_type_over_a_freed_tile",
        "race",
        REUSE_AS_ANOTHER_TYPE,
        here="self.store_shared(singles",
        or_here=("self.load_shared(halves",),
        script=((("        self.sync()\n        self.free_shared(halves)"), "        self.free_shared(halves)"),),
    ),
)
