# SPDX-License-Identifier: Apache-2.0
"""Each thread has waited for its own copies and reads those of others."""

from tests.check.case import Broken
from tests.check.originals import ASYNCHRONOUS, FLASH, INT8_LINEAR, PAGED, PIPELINED

CASES = (
    Broken(
        "matmul_without_sync_after_wait",
        "race",
        ASYNCHRONOUS,
        here="self.dot(self.load_shared(sa)",
        or_here=(
            "self.copy_async(ga, sa",
            "self.copy_async(gb, sb",
        ),
        script=((("wait_all()\n                self.sync()\n"), "wait_all()\n"),),
    ),
    Broken(
        "pipelined_matmul_without_sync_after_wait",
        "race",
        PIPELINED,
        here="a = self.load_shared(sa[full])",
        or_here=(
            "b = self.load_shared(",
            "self.copy_async(ga, sa[stage]",
            "self.copy_async(gb, sb[stage]",
            "self.copy_async(ga, sa[free]",
            "self.copy_async(gb, sb[free]",
        ),
        script=(("                self.sync()\n", ""),),
    ),
    Broken(
        "quantized_linear_without_sync_after_wait",
        "race",
        INT8_LINEAR,
        here="x = self.load_shared(",
        or_here=(
            "weight = self.load_shared(",
            "self.copy_async(gx, sx[stage]",
            "self.copy_async(g_weight, s_weight[stage]",
            "self.copy_async(gx, sx[later",
            "self.copy_async(g_weight, s_weight[later",
        ),
        script=(("            self.sync()\n", ""),),
    ),
    Broken(
        "queries_without_sync_after_wait",
        "race",
        FLASH,
        here="q = self.load_shared(sq)",
        or_here=("self.copy_async(gq, sq",),
        script=(("            self.sync()\n            q = ", "            q = "),),
    ),
    Broken(
        "page_without_sync_after_wait",
        "race",
        PAGED,
        here="score = self.dot(q, self.load_shared(sk[stage]",
        or_here=("acc = self.dot(p.to(dtype), self.load_shared(sv[stage]", "self.copy_async("),
        script=(("                self.sync()\n", ""),),
    ),
)
