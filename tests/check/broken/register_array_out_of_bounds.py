# SPDX-License-Identifier: Apache-2.0
"""An index leaves the registers of a tile."""

from tests.check.case import Broken
from tests.check.originals import FLASH, INT8_LINEAR, NAIVE, RMS_NORM, TRANSPOSE

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
    Broken(
        "row_of_a_score_without_its_remainder",
        "out_of_bounds",
        FLASH,
        here="largest = self.maximum(before, self.max(score",
        source=(
            (
                "t_6[r / 2 % 2] = tk::maximum(t_6[r / 2 % 2], score_2[r]);",
                "t_6[r / 2] = tk::maximum(t_6[r / 2], score_2[r]);",
            ),
        ),
    ),
    Broken(
        "scale_of_every_eighth_element",
        "out_of_bounds",
        INT8_LINEAR,
        here="y = acc.to(float32) * x_scale",
        source=(("x_scale[r / 16 * 2 + r / 2 % 2]", "x_scale[r / 8 * 2 + r / 2 % 2]"),),
    ),
)
