# SPDX-License-Identifier: Apache-2.0
"""A copy is started into a stage that other threads still read."""

from tests.check.case import Broken
from tests.check.originals import ASYNCHRONOUS, FLASH, INT8_LINEAR, PAGED, PIPELINED, pages

NEXT_KEYS = "self.copy_async(gk, sk, offsets=[item, start + self.block_k, k_head, 0], dims=[1, 3])\n"

CASES = (
    Broken(
        "matmul_copies_over_its_tiles",
        "race",
        ASYNCHRONOUS,
        here="self.copy_async(ga, sa",
        or_here=(
            "self.copy_async(gb, sb",
            "self.dot(self.load_shared(sa)",
        ),
        script=((("out=acc)\n                self.sync()\n"), "out=acc)\n"),),
    ),
    Broken(
        "pipelined_matmul_copies_before_the_sync",
        "race",
        PIPELINED,
        here="self.copy_async(ga, sa[free]",
        or_here=(
            "self.copy_async(gb, sb[free]",
            "a = self.load_shared(",
            "b = self.load_shared(",
        ),
        script=(
            ("                self.sync()\n", ""),
            (
                "                a = self.load_shared(",
                ("                self.sync()\n                a = self.load_shared("),
            ),
        ),
    ),
    Broken(
        "quantized_linear_copies_before_the_sync",
        "race",
        INT8_LINEAR,
        here="self.copy_async(gx, sx[later",
        or_here=(
            "self.copy_async(g_weight, s_weight[later",
            "x = self.load_shared(",
            "weight = self.load_shared(",
        ),
        script=(
            ("            self.sync()\n", ""),
            ("            x = self.load_shared(", ("            self.sync()\n            x = self.load_shared(")),
        ),
    ),
    Broken(
        "next_keys_before_the_sync",
        "race",
        FLASH,
        here="self.copy_async(gk, sk, offsets=[item, start",
        or_here=("score = self.dot(q, self.load_shared(sk",),
        script=(
            (f"                {NEXT_KEYS}", ""),
            (
                "                self.copy_async_wait_all()\n                self.sync()\n                acc = ",
                (
                    f"                {NEXT_KEYS}"
                    "                self.copy_async_wait_all()\n"
                    "                self.sync()\n"
                    "                acc = "
                ),
            ),
        ),
    ),
    Broken(
        "next_page_before_the_sync",
        "race",
        PAGED.on(lambda: pages(128, 128)),
        here="self.copy_async(",
        or_here=(
            "score = self.dot(q, self.load_shared(sk[stage]",
            "acc = self.dot(p.to(dtype), self.load_shared(sv[stage]",
        ),
        script=(
            ("                self.copy_async_wait_all()\n                self.sync()\n", ""),
            (
                "                score = self.dot(",
                (
                    "                self.copy_async_wait_all()\n"
                    "                self.sync()\n"
                    "                score = self.dot("
                ),
            ),
        ),
    ),
)
