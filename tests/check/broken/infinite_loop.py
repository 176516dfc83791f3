# SPDX-License-Identifier: Apache-2.0
"""A loop whose condition never ends it."""

from tests.check.case import Broken
from tests.check.originals import NAIVE, STRIDED

CASES = (
    Broken(
        "counter_does_not_advance",
        "timeout",
        STRIDED,
        here="while i < n:",
        or_here=("total += ",),
        script=(("            i = i + step\n", ""),),
    ),
    Broken(
        "counter_steps_over_its_end",
        "timeout",
        STRIDED,
        here="while i != n:",
        or_here=(
            "total += ",
            "i = i + step",
        ),
        script=(("while i < n:", "while i != n:"),),
    ),
    Broken(
        "loop_without_its_step",
        "timeout",
        NAIVE,
        here="for depth in range(",
        or_here=(
            "a = self.load_global(",
            "b = self.load_global(",
            "acc = self.dot(",
        ),
        source=(("++depth_count", "depth_count += 0"),),
    ),
)
