# SPDX-License-Identifier: Apache-2.0
"""More shared memory than a block can have."""

import torch

from tests.check.case import Broken
from tests.check.originals import EXCHANGE_HEADS, INT8_LINEAR, INT8_MATMUL, PIPELINED, TRANSPOSE

CASES = (
    Broken(
        "tile_too_high",
        "shared_limit",
        TRANSPOSE,
        here="tile = self.shared_tensor(",
        script=(("self.tile_m = 32", "self.tile_m = 2048"),),
    ),
    Broken(
        "sixteen_times_the_stages",
        "shared_limit",
        PIPELINED,
        here="sa = self.shared_tensor(",
        script=(
            ("shape=[self.stages, self.block_m, self.block_k]", "shape=[self.stages * 16, self.block_m, self.block_k]"),
        ),
    ),
    Broken(
        "too_many_stages_together",
        "shared_limit",
        INT8_LINEAR,
        here="s_weight = self.shared_tensor(",
        or_here=("sx = self.shared_tensor(",),
        script=(("self.stages = 3", "self.stages = 32"),),
    ),
    Broken(
        "int8_tiles_too_deep",
        "shared_limit",
        INT8_MATMUL,
        here="sb = self.shared_tensor(",
        or_here=("sa = self.shared_tensor(",),
        script=(("self.block_k = 64", "self.block_k = 2048"),),
    ),
    Broken(
        "more_heads_than_fit",
        "shared_limit",
        EXCHANGE_HEADS,
        here="tile = self.shared_tensor(",
        arguments=lambda: (16, 64, 512, torch.randn(16, 64, 512).half(), torch.zeros(64, 16, 512).half()),
    ),
)
