# SPDX-License-Identifier: Apache-2.0
"""A wait that leaves the group pending which is read next."""

from tests.check.case import Broken
from tests.check.originals import FLASH, INT8_LINEAR, PIPELINED, SPLIT_FLASH, SPLIT_K

CASES = (
    Broken(
        "pipelined_matmul_waits_for_one_group_less",
        "in_flight",
        PIPELINED,
        here="a = self.load_shared(sa[full])",
        script=(("self.copy_async_wait_group(self.stages - 2)", "self.copy_async_wait_group(self.stages - 1)"),),
    ),
    Broken(
        "quantized_linear_waits_for_one_group_less",
        "in_flight",
        INT8_LINEAR,
        here="x = self.load_shared(",
        script=(("self.copy_async_wait_group(self.stages - 2)", "self.copy_async_wait_group(self.stages - 1)"),),
    ),
    Broken(
        "split_matmul_waits_for_one_group_less",
        "in_flight",
        SPLIT_K,
        here="self.dot(self.load_shared(sa[full])",
        script=(("self.copy_async_wait_group(self.stages - 2)", "self.copy_async_wait_group(self.stages - 1)"),),
    ),
    Broken(
        "group_of_values_is_the_youngest",
        "in_flight",
        FLASH,
        here="acc = self.dot(p.to(dtype), self.load_shared(sv)",
        script=(
            (
                "                score = self.dot(",
                "                self.copy_async_commit_group()\n                score = self.dot(",
            ),
            (
                "self.copy_async_wait_all()\n                self.sync()\n                self.copy_async(gk",
                "self.copy_async_wait_group(1)\n                self.sync()\n                self.copy_async(gk",
            ),
        ),
    ),
    Broken(
        "committed_right_before_the_wait",
        "in_flight",
        SPLIT_FLASH,
        here="score = self.dot(q, self.load_shared(sk[stage]",
        script=(
            (
                "                self.copy_async_wait_all()\n",
                "                self.copy_async_commit_group()\n                self.copy_async_wait_group(1)\n",
            ),
        ),
    ),
)
