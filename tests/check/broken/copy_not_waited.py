# SPDX-License-Identifier: Apache-2.0
"""What an asynchronous copy brings is read without any wait."""

from tests.check.case import Broken
from tests.check.originals import ASYNCHRONOUS, FLASH, INT8_LINEAR, PAGED, TF32

CASES = (
    Broken(
        "matmul_without_wait",
        "in_flight",
        ASYNCHRONOUS,
        here="self.dot(self.load_shared(sa)",
        script=(("                self.copy_async_wait_all()\n", ""),),
    ),
    Broken(
        "attention_reads_its_queries_at_once",
        "in_flight",
        FLASH,
        here="q = self.load_shared(sq)",
        script=(
            (
                ("            self.copy_async_wait_all()\n            self.sync()\n            q = "),
                ("            self.sync()\n            q = "),
            ),
        ),
    ),
    Broken(
        "quantized_linear_without_wait",
        "in_flight",
        INT8_LINEAR,
        here="x = self.load_shared(",
        script=(("            self.copy_async_wait_group(self.stages - 2)\n", ""),),
    ),
    Broken(
        "page_read_while_it_comes",
        "in_flight",
        PAGED,
        here="score = self.dot(q, self.load_shared(sk[stage]",
        script=(("                self.copy_async_wait_all()\n", ""),),
    ),
    Broken(
        "tf32_matmul_without_wait",
        "in_flight",
        TF32,
        here="a = self.load_shared(sa[stage])",
        script=(("                self.copy_async_wait_all()\n", ""),),
    ),
)
