# SPDX-License-Identifier: Apache-2.0
"""Operands whose types or shapes do not go together."""

from tests.check.case import Broken
from tests.check.originals import FLASH, INT8_LINEAR, NAIVE, THROUGH_SHARED, TRANSPOSE

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
    Broken(
        "keys_are_not_turned",
        "language",
        FLASH,
        here="score = self.dot(",
        script=(("self.load_shared(sk.transpose())", "self.load_shared(sk)"),),
    ),
    Broken(
        "int8_product_into_float32",
        "language",
        INT8_LINEAR,
        here="self.dot(x, weight, acc",
        script=(
            (
                "acc = self.register_tensor(dtype=int32, shape=[self.block_m, self.block_n], init=0)",
                "acc = self.register_tensor(dtype=float32, shape=[self.block_m, self.block_n], init=0.0)",
            ),
        ),
    ),
)
