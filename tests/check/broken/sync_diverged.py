# SPDX-License-Identifier: Apache-2.0
"""A barrier under a condition that differs between the threads of a block."""

from tests.check.case import Broken
from tests.check.originals import EXCHANGE_HEADS, FLASH, THROUGH_SHARED, TRANSPOSE, matrix

CASES = (
    Broken(
        "half_the_warps_sync_again",
        "divergence",
        TRANSPOSE,
        here="self.sync()",
        source=(("__syncthreads();", "__syncthreads(); if (tid < 64) __syncthreads();"),),
    ),
    Broken(
        "even_threads_sync_again_in_a_loop",
        "divergence",
        THROUGH_SHARED,
        here="self.sync()  # the tiles are free",
        script=(
            (("acc)\n                self.sync()\n"), ("acc)\n                self.sync()  # the tiles are free\n")),
        ),
        source=(
            (
                ("(acc, t_2, t_3);\n    // sync()\n    __syncthreads();"),
                ("(acc, t_2, t_3);\n    // sync()\n    __syncthreads(); if (tid % 2 == 0) __syncthreads();"),
            ),
        ),
    ),
    Broken(
        "all_but_one_sync_again",
        "divergence",
        EXCHANGE_HEADS,
        here="self.sync()",
        source=(("__syncthreads();", "__syncthreads(); if (tid != 0) __syncthreads();"),),
    ),
    Broken(
        "threads_of_rows_outside_leave_early",
        "divergence",
        TRANSPOSE.on(lambda: matrix(40, 64)),
        here="self.sync()",
        source=(
            (
                "  int32_t column = (int)blockIdx.x * 64;\n",
                "  int32_t column = (int)blockIdx.x * 64;\n  if (row + tid / 8 >= m) return;\n",
            ),
        ),
    ),
    Broken(
        "last_warp_skips_the_last_keys",
        "divergence",
        FLASH,
        here="self.sync()  # all see the keys",
        script=(
            (
                "                self.sync()\n                self.copy_async(gv",
                "                self.sync()  # all see the keys\n                self.copy_async(gv",
            ),
        ),
        source=(
            (
                "start_count < tk::floordiv(k_len + 63, 64); ++start_count",
                "start_count < tk::floordiv(k_len + 63, 64) - tid / 96; ++start_count",
            ),
        ),
    ),
)
