# SPDX-License-Identifier: Apache-2.0
"""Shared memory is read that nobody has written."""

from tests.check.case import Broken
from tests.check.originals import FLASH, LINEAR, PIPELINED, THROUGH_SHARED, TRANSPOSE

CASES = (
    Broken(
        "transpose_of_nothing",
        "uninitialized",
        TRANSPOSE,
        here="turned = self.load_shared(",
        script=(
            (
                (
                    "            self.store_shared(tile, "
                    "self.load_global(gx, offsets=[row, column], shape=[self.tile_m, self.tile_n]))\n"
                ),
                "",
            ),
        ),
    ),
    Broken(
        "matmul_without_its_second_tile",
        "uninitialized",
        THROUGH_SHARED,
        here="self.dot(self.load_shared(sa)",
        script=(
            (
                (
                    "                self.store_shared(sb, "
                    "self.load_global(gb, offsets=[depth, column], shape=sb.shape))\n"
                ),
                "",
            ),
        ),
    ),
    Broken(
        "prologue_leaves_out_a_stage",
        "uninitialized",
        PIPELINED,
        here="b = self.load_shared(",
        script=(
            (
                "                self.copy_async(gb, sb[stage]",
                ("                if stage < self.stages - 2:\n                    self.copy_async(gb, sb[stage]"),
            ),
        ),
    ),
    Broken(
        "attention_without_its_first_keys",
        "uninitialized",
        FLASH,
        here="score = self.dot(q, self.load_shared(sk",
        script=(("            self.copy_async(gk, sk, offsets=[item, 0, k_head, 0], dims=[1, 3])\n", ""),),
    ),
    Broken(
        "layer_without_its_first_weights",
        "uninitialized",
        LINEAR,
        here="weight = self.load_shared(",
        script=(("            self.copy_async(g_weight, s_weight[0], offsets=[column, 0])\n", ""),),
    ),
)
