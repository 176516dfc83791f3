# SPDX-License-Identifier: Apache-2.0
"""Two blocks that write one element."""

from tests.check.case import Broken
from tests.check.originals import FLASH, LAYER_NORM, SOFTMAX, TRANSPOSE, VECTOR_ADD, grouped, normalized

CASES = (
    Broken(
        "stride_of_half_a_block",
        "global_race",
        VECTOR_ADD,
        here="self.store_global(gz",
        script=(("self.blockIdx.x * block", "self.blockIdx.x * (block // 2)"),),
    ),
    Broken(
        "all_rows_of_blocks_in_one_place",
        "global_race",
        TRANSPOSE,
        here="self.store_global(gy",
        script=((("offsets=[column, row])\n\n"), ("offsets=[column, 0])\n\n")),),
    ),
    Broken(
        "stride_of_one_row",
        "global_race",
        SOFTMAX,
        here="self.store_global(gy",
        script=(("row = self.blockIdx.x * self.block_m", "row = self.blockIdx.x"),),
    ),
    Broken(
        "output_of_the_key_head",
        "global_race",
        FLASH.on(lambda: grouped(64, 64, 2, 1)),
        here="self.store_global(go",
        script=(
            (
                "(acc / total).to(dtype), offsets=[item, first, head, 0]",
                "(acc / total).to(dtype), offsets=[item, first, k_head, 0]",
            ),
        ),
    ),
    Broken(
        "stride_of_a_row_for_each_warp",
        "global_race",
        LAYER_NORM.on(lambda: normalized(m=16)),
        here="self.store_global(gy",
        script=(("row = self.blockIdx.x * self.block_m", "row = self.blockIdx.x * self.warps"),),
    ),
)
