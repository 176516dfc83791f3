# SPDX-License-Identifier: Apache-2.0
"""A view of more elements than the tensor has."""

from tests.check.case import Broken
from tests.check.originals import INT8_LINEAR, RMS_NORM, VECTOR_ADD, int8_linear

CASES = (
    Broken(
        "norm_writes_a_row_more",
        "out_of_bounds",
        RMS_NORM,
        here="self.store_global(gy",
        script=(
            (
                "gy = self.global_view(y_ptr, dtype=dtype, shape=[m, n])",
                "gy = self.global_view(y_ptr, dtype=dtype, shape=[m + 1, n])",
            ),
        ),
    ),
    Broken(
        "sum_reads_eight_more",
        "out_of_bounds",
        VECTOR_ADD,
        here="x = self.load_global(gx",
        script=(
            (
                "gx = self.global_view(x_ptr, dtype=dtype, shape=[n])",
                "gx = self.global_view(x_ptr, dtype=dtype, shape=[n + 8])",
            ),
        ),
    ),
    Broken(
        "scales_of_rows_that_are_not_there",
        "out_of_bounds",
        INT8_LINEAR.on(lambda: int8_linear(m=60)),
        here="x_scale = self.load_global(",
        script=(
            (
                "g_x_scale = self.global_view(x_scale_ptr, dtype=float32, shape=[m, 1])",
                "g_x_scale = self.global_view(x_scale_ptr, dtype=float32, shape=[m + 4, 1])",
            ),
        ),
    ),
)
