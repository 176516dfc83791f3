# SPDX-License-Identifier: Apache-2.0
"""Operands whose types or shapes do not go together."""

from tests.check.case import Broken
from tests.check.originals import NAIVE, THROUGH_SHARED, TRANSPOSE

CASES = (
    Broken(
        "second_factor_loaded_as_rows",
        "language",
        NAIVE,
        here="acc = self.dot(",
        script=(("shape=[self.block_k, self.block_n]", "shape=[self.block_n, self.block_k]"),),
    ),
    Broken(
        "output_of_another_type",
        "language",
        TRANSPOSE,
        here="self.store_global(gy",
        script=(("self.store_global(gy, turned,", "self.store_global(gy, turned.to(float32),"),),
    ),
    Broken(
        "tile_of_the_other_operand",
        "language",
        THROUGH_SHARED,
        here="self.store_shared(sb",
        script=(("shape=sb.shape)", "shape=sa.shape)"),),
    ),
)
