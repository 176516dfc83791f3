# SPDX-License-Identifier: Apache-2.0
"""A shuffle in which lanes of its mask do not take part."""

from tests.check.case import Broken
from tests.check.originals import FLASH, LAYER_NORM, RMS_NORM, SOFTMAX, heads

CASES = (
    Broken(
        "even_lanes_add",
        "divergence",
        RMS_NORM,
        here="self.sum(squares",
        source=(("t_1[r] += tk::shfl_xor(t_1[r], 4);", "if (tid % 2 == 0) t_1[r] += tk::shfl_xor(t_1[r], 4);"),),
    ),
    Broken(
        "lower_lanes_compare",
        "divergence",
        SOFTMAX,
        here="row_max = self.max(",
        source=(
            (
                "row_max[r] = tk::maximum(tk::shfl_xor(row_max[r], 16), row_max[r]);",
                "if (tid % 32 < 16) row_max[r] = tk::maximum(tk::shfl_xor(row_max[r], 16), row_max[r]);",
            ),
        ),
    ),
    Broken(
        "one_lane_goes_on",
        "divergence",
        SOFTMAX,
        here="row_sum = self.sum(",
        source=(
            (
                "row_sum[r] += tk::shfl_xor(row_sum[r], 1);",
                "if (tid == 5) continue; row_sum[r] += tk::shfl_xor(row_sum[r], 1);",
            ),
        ),
    ),
    Broken(
        "rows_outside_do_not_add",
        "divergence",
        FLASH.on(lambda: heads(4, 64)),
        here="total = total * fade + self.sum(p",
        source=(
            (
                "t_10[r] += tk::shfl_xor(t_10[r], 1);",
                "if (first + tid / 32 * 16 + tid / 4 % 8 < q_len) t_10[r] += tk::shfl_xor(t_10[r], 1);",
            ),
        ),
    ),
    Broken(
        "half_a_warp_has_a_row_less",
        "divergence",
        LAYER_NORM,
        here="mean = self.sum(total",
        source=(
            (
                "r < 8; ++r) {\n    t_1[r] += tk::shfl_xor(t_1[r], 8);",
                "r < 8 - tid / 16 % 2; ++r) {\n    t_1[r] += tk::shfl_xor(t_1[r], 8);",
            ),
        ),
    ),
)
