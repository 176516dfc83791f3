# SPDX-License-Identifier: Apache-2.0
"""A vector access at an address that is no multiple of its size."""

from tests.check.case import Broken
from tests.check.originals import FLASH, SPLIT_K, STACK, THROUGH_SHARED, TRANSPOSE

STORED = """
    #pragma unroll
    for (int32_t r = 0; r < 16; ++r) {
      int32_t i_1 = tid / 64 * 32 + r / 8 * 16 + r % 2 * 8 + tid / 4 % 8;
      if (row + i_1 < m) {"""

CASES = (
    Broken(
        "load_from_one_element_further",
        "misaligned",
        TRANSPOSE,
        here="self.load_global(gx",
        source=(
            (
                "&x_ptr[(int64_t)(row + i) * (int64_t)n + (int64_t)(column + j)]",
                "&x_ptr[(int64_t)(row + i) * (int64_t)n + (int64_t)(column + j) + 1]",
            ),
        ),
    ),
    Broken(
        "store_to_one_element_further",
        "misaligned",
        STACK,
        here="self.load_global(gx",
        source=(
            (
                "tk::store_shared_16(&tile[tile_at + r * 512], &t[",
                "tk::store_shared_16(&tile[tile_at + r * 512 + 1], &t[",
            ),
        ),
    ),
    Broken(
        "matrix_rows_from_one_element_further",
        "misaligned",
        THROUGH_SHARED,
        here="self.dot(self.load_shared(sa)",
        source=(("(r % 2 * 16)) + r / 2 * 512]", "(r % 2 * 16)) + r / 2 * 512 + 1]"),),
    ),
    Broken(
        "value_rows_at_another_stride",
        "misaligned",
        FLASH,
        here="acc = self.dot(p.to(dtype), self.load_shared(sv)",
        source=(
            ("&sv[(sv_swizzled ^ (r % 2 * 16)) + r / 2 * 512]", "&sv[(sv_swizzled ^ (r % 2 * 16)) + r / 2 * 516]"),
        ),
    ),
    Broken(
        "sums_in_rows_of_63",
        "misaligned",
        SPLIT_K,
        here="self.store_global(sums, acc",
        source=(
            (
                f"&sums_ptr[(int64_t)(row + i) * 64 + (int64_t)j];{STORED}",
                f"&sums_ptr[(int64_t)(row + i) * 63 + (int64_t)j];{STORED}",
            ),
        ),
    ),
)
