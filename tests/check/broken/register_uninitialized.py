# SPDX-License-Identifier: Apache-2.0
"""A register tile is read before it is written."""

from tests.check.case import Broken
from tests.check.originals import FLASH, INT8_MATMUL, NAIVE, RMS_NORM, SOFTMAX

CASES = (
    Broken(
        "matmul_into_an_accumulator_without_zeros",
        "uninitialized",
        NAIVE,
        here="acc = self.dot(",
        script=(("self.block_n], init=0.0)", "self.block_n])"),),
    ),
    Broken(
        "softmax_without_a_first_total",
        "uninitialized",
        SOFTMAX,
        here="total = total + ",
        script=(("self.block_n], init=0.0)", "self.block_n])"),),
    ),
    Broken(
        "norm_without_a_first_sum",
        "uninitialized",
        RMS_NORM,
        here="squares += ",
        script=(("shape=tile, init=0.0)", "shape=tile)"),),
    ),
    Broken(
        "attention_without_a_first_maximum",
        "uninitialized",
        FLASH,
        here="largest = self.maximum(before",
        or_here=("before = largest",),
        script=(("shape=[self.block_q, 1], init=HIDDEN)", "shape=[self.block_q, 1])"),),
    ),
    Broken(
        "int8_matmul_into_an_accumulator_without_zeros",
        "uninitialized",
        INT8_MATMUL,
        here="acc = self.dot(",
        script=(("self.block_n], init=0)", "self.block_n])"),),
    ),
)
