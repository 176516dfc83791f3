# SPDX-License-Identifier: Apache-2.0
"""Two blocks that write one element."""

from tests.check.case import Broken
from tests.check.originals import SOFTMAX, TRANSPOSE, VECTOR_ADD

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
)
