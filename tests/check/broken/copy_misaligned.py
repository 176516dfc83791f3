# SPDX-License-Identifier: Apache-2.0
"""An address of an asynchronous copy that is no multiple of its size."""

from tests.check.case import Broken
from tests.check.originals import ASYNCHRONOUS, FLASH, INT8_LINEAR, OVERLAID, PIPELINED

CASES = (
    Broken(
        "copy_from_one_element_further",
        "misaligned",
        OVERLAID,
        here="self.copy_async(gx, tile",
        source=(("&x_ptr[(int64_t)i_1 * 64 + (int64_t)j_1]", "&x_ptr[(int64_t)i_1 * 64 + (int64_t)j_1 + 1]"),),
    ),
    Broken(
        "copy_to_two_elements_further",
        "misaligned",
        ASYNCHRONOUS,
        here="self.copy_async(ga, sa",
        source=(("&sa[sa_swizzled + r * 1024]", "&sa[sa_swizzled + r * 1024 + 2]"),),
    ),
    Broken(
        "copy_to_half_a_vector_further",
        "misaligned",
        PIPELINED,
        here="self.copy_async(gb, sb[free]",
        source=(("&t_3[sb_swizzled + r * 1024]", "&t_3[sb_swizzled + r * 1024 + 4]"),),
    ),
    Broken(
        "values_from_one_element_further",
        "misaligned",
        FLASH,
        here="self.copy_async(gv, sv",
        source=(("(start_2 + i_2) * 32 + (int64_t)j_2]", "(start_2 + i_2) * 32 + (int64_t)j_2 + 1]"),),
    ),
    Broken(
        "columns_of_sixty_bytes",
        "misaligned",
        INT8_LINEAR,
        here="self.copy_async(gx, sx[later",
        source=(
            (
                "&x_ptr[(int64_t)(row + i) * 320 + (int64_t)(later * 64 + j)]",
                "&x_ptr[(int64_t)(row + i) * 320 + (int64_t)(later * 60 + j)]",
            ),
        ),
    ),
)
