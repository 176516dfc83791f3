# SPDX-License-Identifier: Apache-2.0
"""An address before the first element of a tensor."""

from tests.check.case import Broken
from tests.check.originals import LENGTHS, PAGED, SOFTMAX, WINDOW, pages

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
    Broken(
        "page_that_the_table_does_not_name",
        "out_of_bounds",
        PAGED.on(lambda: pages(32, 64)),
        here="self.copy_async(",
        script=(("if i + 1 < pages:", "if i + 1 < max_pages:"),),
    ),
    Broken(
        "rows_counted_from_one",
        "out_of_bounds",
        SOFTMAX,
        here="x = self.load_global(gx",
        script=(("gx = self.global_view(x_ptr, dtype", "gx = self.global_view(x_ptr - n, dtype"),),
    ),
)
