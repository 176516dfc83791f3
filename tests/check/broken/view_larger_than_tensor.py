# SPDX-License-Identifier: Apache-2.0
"""A view of more elements than the tensor has."""

from tests.check.case import Broken
from tests.check.originals import FLASH, INT8_LINEAR, RMS_NORM, VECTOR_ADD, grouped, int8_linear

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
    Broken(
        "as_many_key_heads_as_query_heads",
        "out_of_bounds",
        FLASH.on(lambda: grouped(64, 64, 2, 1)),
        here="self.copy_async(gk, sk, offsets=[item, 0",
        script=(
            (
                "gk = self.global_view(k_ptr, dtype=dtype, shape=[batch, k_len, k_heads, dim])",
                "gk = self.global_view(k_ptr, dtype=dtype, shape=[batch, k_len, heads, dim])",
            ),
        ),
    ),
    Broken(
        "all_of_the_vector_behind_a_part_of_it",
        "out_of_bounds",
        VECTOR_ADD,
        here="x = self.load_global(gx",
        script=(
            ("self.global_view(x_ptr, dtype", "self.global_view(x_ptr + start, dtype"),
            ("x = self.load_global(gx, offsets=[start]", "x = self.load_global(gx, offsets=[0]"),
        ),
    ),
)
