# SPDX-License-Identifier: Apache-2.0
"""A slice of shared memory behind the end of its buffer."""

from tests.check.case import Broken
from tests.check.originals import INT8_LINEAR, PARTS, PIPELINED, SPLIT_FLASH, VIEWS, heads

CASES = (
    Broken(
        "stage_counted_without_modulo",
        "out_of_bounds",
        PIPELINED,
        here="a = self.load_shared(sa[full])",
        script=(("full = (full + 1) % self.stages", "full = full + 1"),),
    ),
    Broken(
        "store_behind_the_last_half",
        "out_of_bounds",
        VIEWS,
        here="self.store_shared(s, tile",
        script=(
            (
                ("offsets=[half, 0, 0], dims=[1, 2])\n        self.sync()"),
                ("offsets=[half + 1, 0, 0], dims=[1, 2])\n        self.sync()"),
            ),
        ),
    ),
    Broken(
        "copy_behind_the_last_stage",
        "out_of_bounds",
        INT8_LINEAR,
        here="self.copy_async(gx, sx[later]",
        script=(("sx[later % self.stages]", "sx[later]"),),
    ),
    Broken(
        "stage_counted_up_where_it_alternates",
        "out_of_bounds",
        SPLIT_FLASH.on(lambda: heads(16, 384)),
        here="self.copy_async(gk, sk[1 - stage]",
        script=(("                stage = 1 - stage\n", "                stage = stage + 1\n"),),
    ),
    Broken(
        "one_stage_more_is_filled",
        "out_of_bounds",
        PARTS,
        here="self.store_shared(stages[i]",
        script=(("for i in range(3):", "for i in range(4):"),),
    ),
)
