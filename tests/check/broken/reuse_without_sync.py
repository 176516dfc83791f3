# SPDX-License-Identifier: Apache-2.0
"""Freed memory becomes another tensor, and the barrier is gone that the compiler put there."""

from tests.check.case import Broken
from tests.check.originals import GATHER, LINEAR, REUSE, REUSE_AS_ANOTHER_TYPE, REUSE_BY_COPY

OURS = "  // this memory was something else's: nobody may be using it any more\n  __syncthreads();\n"

CASES = (
    Broken(
        "store_over_a_freed_tile",
        "race",
        REUSE,
        here="self.store_shared(second",
        or_here=("x = self.load_shared(",),
        source=((OURS, ""),),
    ),
    Broken(
        "copy_over_a_freed_tile",
        "race",
        REUSE_BY_COPY,
        here="self.copy_async(gy, second",
        or_here=("x = self.load_shared(",),
        source=((OURS, ""),),
    ),
    Broken(
        "another_type_over_a_freed_tile",
        "race",
        REUSE_AS_ANOTHER_TYPE,
        here="self.store_shared(singles",
        or_here=("self.load_shared(halves",),
        source=((OURS, ""),),
    ),
    Broken(
        "row_moved_over_the_row_before",
        "race",
        GATHER,
        here="tile[i] = self.load_global(gx",
        source=(
            (
                (
                    "    // this memory was something else's: nobody may be using it any more\n"
                    "    __syncthreads();\n"
                    "    float *workspace"
                ),
                "    float *workspace",
            ),
        ),
    ),
    Broken(
        "rows_of_a_layer_over_its_stages",
        "race",
        LINEAR,
        here="self.store_shared(sy",
        or_here=("x = self.load_shared(sx[stage]", "self.copy_async(gx, sx[1 - stage]"),
        script=(("            self.sync()\n            self.store_shared(sy", "            self.store_shared(sy"),),
        source=((OURS, ""),),
    ),
)
