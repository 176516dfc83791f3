# SPDX-License-Identifier: Apache-2.0
"""An integer divided by zero."""

from tests.check.case import Broken
from tests.check.originals import AVERAGE, GROUPED, NAIVE

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
        or_here=("self.store_global(",),
        script=(("total // self.maximum(count, 1)", "total // count"),),
    ),
    Broken(
        "number_of_steps",
        "division_by_zero",
        NAIVE,
        here="for depth in range(",
        source=(("tk::floordiv(k + 31, 32)", "(k + 31) / (k - 96)"),),
    ),
)
