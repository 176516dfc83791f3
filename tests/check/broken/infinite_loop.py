# SPDX-License-Identifier: Apache-2.0
"""A loop whose condition never ends it."""

import torch

from tests.check.case import Broken
from tests.check.originals import NAIVE, SEARCH, STRIDED

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
    Broken(
        "bisection_of_a_single_part",
        "timeout",
        SEARCH,
        here="while low < high:",
        or_here=("middle = ", "if begins[middle].item() <= at:", "low = middle", "high = middle"),
        script=(("while low + 1 < high:", "while low < high:"),),
    ),
    Broken(
        "step_of_nothing",
        "timeout",
        STRIDED,
        here="while i < n:",
        or_here=("total += ", "i = i + step"),
        arguments=lambda: (5, 0, torch.randn(5, 64), torch.zeros(64)),
    ),
)
