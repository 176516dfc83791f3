# SPDX-License-Identifier: Apache-2.0
"""A seed draws the order of threads and blocks: another one for each seed, and the same one each time."""

import numpy as np

from tests.cpusim import harness
from tests.cpusim.test_reports import kernel

SEEDS = range(1, 13)


def results(simulator, body, **options):
    """What the kernel leaves, by seed."""
    found = []
    for seed in SEEDS:
        x = np.zeros(64, np.float32)
        harness.run(simulator, kernel(body), "wrong", [np.int32(0), x], seed=seed, shared_bytes=64, **options)
        found.append(x.tobytes())
    return found


def test_a_kernel_that_races_has_a_result_for_each_order_of_threads(simulator):
    body = (
        "  float *s = tk::shared_ptr<float>(0);\n  if (threadIdx.x == 0) s[0] = 0;\n  __syncthreads();\n"
        "  s[0] = s[0] * 3 + threadIdx.x;\n  __syncthreads();\n  if (threadIdx.x == 0) x[0] = s[0];"
    )
    racy = results(simulator, body, block=64)
    assert len(set(racy)) > len(SEEDS) // 2
    assert results(simulator, body, block=64) == racy
    assert len(set(results(simulator, body.replace("s[0] * 3 + threadIdx.x", "7.0f"), block=64))) == 1


def test_blocks_come_in_an_order_of_their_own(simulator):
    body = "  x[blockIdx.x] = x[63];\n  x[63] += 1;"
    orders = results(simulator, body, block=1, grid=32, os_threads=1)
    assert len(set(orders)) > len(SEEDS) // 2
    for order in orders:
        assert sorted(np.frombuffer(order, np.float32)[:32]) == list(range(32))
    assert results(simulator, body, block=1, grid=32, os_threads=1) == orders
