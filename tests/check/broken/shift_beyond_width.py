# SPDX-License-Identifier: Apache-2.0
"""A shift by at least as many bits as the type has."""

import torch

from tests.check.case import Broken
from tests.check.originals import BITS, BUCKETS, POWERS, UNPACK

CASES = (
    Broken(
        "bit_of_a_wider_type",
        "shift",
        BITS,
        here="(x >> (bit + 32)) & 1",
        script=(("(x >> bit) & 1", "(x >> (bit + 32)) & 1"),),
    ),
    Broken(
        "lanes_counted_from_one",
        "shift",
        BITS,
        here="one << lanes",
        script=(("init=lambda i: i)", "init=lambda i: i + 1)"),),
    ),
    Broken(
        "powers_too_far_apart",
        "shift",
        POWERS,
        here="power = ",
        or_here=("self.store_global(",),
        script=(("1 << self.blockIdx.x", "1 << self.blockIdx.x * 16"),),
    ),
    Broken(
        "weights_a_byte_apart",
        "shift",
        UNPACK,
        here="weights = ",
        or_here=("shifts = ",),
        script=(("lambda i, j: j * 4", "lambda i, j: j * 8"),),
    ),
    Broken(
        "a_table_of_one_bucket",
        "shift",
        BUCKETS,
        here="bucket = ",
        arguments=lambda: (0, *torch.randint(0, 99, (2, 64), dtype=torch.int32)),
    ),
)
