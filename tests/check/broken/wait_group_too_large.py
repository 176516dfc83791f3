# SPDX-License-Identifier: Apache-2.0
"""A wait that leaves the group pending which is read next."""

from tests.check.case import Broken
from tests.check.originals import INT8_LINEAR, PIPELINED, SPLIT_K

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
)
