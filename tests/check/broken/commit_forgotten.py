# SPDX-License-Identifier: Apache-2.0
"""Copies that were never put into a group."""

from tests.check.case import Broken
from tests.check.originals import INT8_LINEAR, PIPELINED, SPLIT_K

CASES = (
    Broken(
        "no_commit_in_the_loop",
        "in_flight",
        PIPELINED,
        here="a = self.load_shared(sa[full])",
        script=((("                self.copy_async_commit_group()\n                a = "), "                a = "),),
    ),
    Broken(
        "no_commit_in_the_prologue",
        "in_flight",
        INT8_LINEAR,
        here="x = self.load_shared(",
        script=((("            self.copy_async_commit_group()\n        acc = "), "        acc = "),),
    ),
    Broken(
        "no_commit_in_the_loop_of_a_split",
        "in_flight",
        SPLIT_K,
        here="self.dot(self.load_shared(sa[full])",
        script=(
            (
                ("                self.copy_async_commit_group()\n                self.dot("),
                "                self.dot(",
            ),
        ),
    ),
    Broken(
        "one_commit_for_all_stages_of_a_split",
        "in_flight",
        SPLIT_K,
        here="self.dot(self.load_shared(sa[full])",
        script=(
            (
                "                self.copy_async_commit_group()\n\n            acc = ",
                "            self.copy_async_commit_group()\n\n            acc = ",
            ),
        ),
    ),
    Broken(
        "no_commit_where_nothing_is_left_to_copy",
        "in_flight",
        INT8_LINEAR,
        here="x = self.load_shared(",
        script=(
            (
                "            self.copy_async_commit_group()\n            x = ",
                (
                    "            if later * self.block_k < k:\n"
                    "                self.copy_async_commit_group()\n"
                    "            x = "
                ),
            ),
        ),
    ),
)
