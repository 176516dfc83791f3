# SPDX-License-Identifier: Apache-2.0
"""An integer divided by zero."""

import torch

from tests.check.case import Broken
from tests.check.originals import AVERAGE, FLASH, GROUPED, NAIVE, SWIZZLED, grouped

CASES = (
    Broken(
        "no_query_head_for_a_key_head",
        "division_by_zero",
        GROUPED,
        here="k_head = ",
        or_here=("x = self.load_global(",),
        script=(("heads // k_heads", "k_heads // heads"),),
    ),
    Broken(
        "average_of_nothing",
        "division_by_zero",
        AVERAGE,
        here="average = ",
        or_here=("y = self.register_tensor(",),
        script=(("total // max(count, 1)", "total // count"),),
    ),
    Broken(
        "number_of_steps",
        "division_by_zero",
        NAIVE,
        here="for depth in range(",
        source=(("tk::floordiv(k + 31, 32)", "(k + 31) / (k - 96)"),),
    ),
    Broken(
        "rows_left_of_a_whole_group",
        "division_by_zero",
        SWIZZLED.on(lambda: (96, 64, torch.randn(96, 64), torch.zeros(96, 64))),
        here="row, column = ",
        or_here=("height = ",),
        script=(("height = min(rows - first, 3)", "height = (rows - first) % 3"),),
    ),
    Broken(
        "heads_exchanged_in_the_call",
        "division_by_zero",
        FLASH,
        here="k_head = head // (heads // k_heads)",
        arguments=lambda: grouped(64, 64, 1, 2),
    ),
)
