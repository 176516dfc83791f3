# SPDX-License-Identifier: Apache-2.0
"""An address before the first element of a tensor."""

from tests.check.case import Broken
from tests.check.originals import LENGTHS, PAGED, WINDOW

CASES = (
    Broken(
        "window_of_the_block_before",
        "out_of_bounds",
        WINDOW,
        here="x = self.load_global(part",
        script=(("x_ptr + self.blockIdx.x * 64", "x_ptr + (self.blockIdx.x - 1) * 64"),),
    ),
    Broken(
        "end_of_the_part_before",
        "out_of_bounds",
        LENGTHS,
        here="length = ",
        script=(("begins[part + 1].item() - begins[part].item()", "begins[part].item() - begins[part - 1].item()"),),
    ),
    Broken(
        "page_of_the_sequence_before",
        "out_of_bounds",
        PAGED,
        here="number = ",
        script=(("table[item, 0].item()", "table[item - 1, 0].item()"),),
    ),
)
