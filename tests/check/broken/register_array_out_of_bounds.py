# SPDX-License-Identifier: Apache-2.0
"""An index leaves the registers of a tile."""

from tests.check.case import Broken
from tests.check.originals import NAIVE, RMS_NORM, TRANSPOSE

CASES = (
    Broken(
        "one_register_more_is_cleared",
        "out_of_bounds",
        NAIVE,
        here="acc = self.register_tensor(",
        source=((("r < 32; ++r) {\n    acc[r] = 0.0f;"), ("r <= 32; ++r) {\n    acc[r] = 0.0f;")),),
    ),
    Broken(
        "one_register_less_is_declared",
        "out_of_bounds",
        TRANSPOSE,
        here="turned = self.load_shared(",
        source=(("half turned[16];", "half turned[15];"),),
    ),
    Broken(
        "sum_over_more_than_the_tile",
        "out_of_bounds",
        RMS_NORM,
        here="self.sum(squares",
        source=((("r < 8; ++r) {\n    t_1[r / 4] += squares[r];"), ("r < 12; ++r) {\n    t_1[r / 4] += squares[r];")),),
    ),
)
