# SPDX-License-Identifier: Apache-2.0
"""A copy is started into a stage that other threads still read."""

from tests.check.case import Broken
from tests.check.originals import ASYNCHRONOUS, INT8_LINEAR, PIPELINED

CASES = (
    Broken(
        "matmul_copies_over_its_tiles",
        "race",
        ASYNCHRONOUS,
        here="self.copy_async(ga, sa",
        or_here=(
            "self.copy_async(gb, sb",
            "self.dot(self.load_shared(sa)",
        ),
        script=((("out=acc)\n                self.sync()\n"), "out=acc)\n"),),
    ),
    Broken(
        "pipelined_matmul_copies_before_the_sync",
        "race",
        PIPELINED,
        here="self.copy_async(ga, sa[free]",
        or_here=(
            "self.copy_async(gb, sb[free]",
            "a = self.load_shared(",
            "b = self.load_shared(",
        ),
        script=(
            ("                self.sync()\n", ""),
            (
                "                a = self.load_shared(",
                ("                self.sync()\n                a = self.load_shared("),
            ),
        ),
    ),
    Broken(
        "quantized_linear_copies_before_the_sync",
        "race",
        INT8_LINEAR,
        here="self.copy_async(gx, sx[later",
        or_here=(
            "self.copy_async(g_weight, s_weight[later",
            "x = self.load_shared(",
            "weight = self.load_shared(",
        ),
        script=(
            ("            self.sync()\n", ""),
            ("            x = self.load_shared(", ("            self.sync()\n            x = self.load_shared(")),
        ),
    ),
)
