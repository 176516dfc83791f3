# SPDX-License-Identifier: Apache-2.0
"""A shuffle in which lanes of its mask do not take part."""

from tests.check.case import Broken
from tests.check.originals import RMS_NORM, SOFTMAX

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
)
