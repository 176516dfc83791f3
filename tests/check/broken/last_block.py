# SPDX-License-Identifier: Apache-2.0
"""The last block goes behind the end."""

from tests.check.case import Broken
from tests.check.originals import ASYNCHRONOUS, DECODE, LAYER_NORM, PAGED, VECTOR_ADD, product

CASES = (
    Broken(
        "extent_rounded_up_to_whole_tiles",
        "out_of_bounds",
        VECTOR_ADD,
        here="self.store_global(gz",
        script=(
            (
                "gz = self.global_view(z_ptr, dtype=dtype, shape=[n])",
                "gz = self.global_view(z_ptr, dtype=dtype, shape=[cdiv(n, block) * block])",
            ),
        ),
    ),
    Broken(
        "copy_without_bounds",
        "out_of_bounds",
        ASYNCHRONOUS.on(lambda: product(m=100)),
        here="self.copy_async(ga, sa",
        script=(
            (
                "self.copy_async(ga, sa, offsets=[row, depth])",
                "self.copy_async(ga, sa, offsets=[row, depth], check_bounds=False)",
            ),
        ),
    ),
    Broken(
        "page_behind_the_last",
        "out_of_bounds",
        PAGED,
        here="following = ",
        script=(("if i + 1 < pages:", "if i < pages:"),),
    ),
    Broken(
        "one_page_more_where_the_last_is_full",
        "out_of_bounds",
        DECODE,
        here="number = ",
        script=(("range(cdiv(length, page))", "range(length // page + 1)"),),
    ),
    Broken(
        "weights_of_whole_tiles",
        "out_of_bounds",
        LAYER_NORM,
        here="gamma = self.load_global(",
        script=(
            (
                "g_gamma = self.global_view(gamma_ptr, dtype=dtype, shape=[n])",
                "g_gamma = self.global_view(gamma_ptr, dtype=dtype, shape=[cdiv(n, self.block_n) * self.block_n])",
            ),
        ),
    ),
)
