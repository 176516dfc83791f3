# SPDX-License-Identifier: Apache-2.0
"""What every matmul is tried on, and how its result is judged."""

import torch

from tests.kernels.machines import assert_close, poisoned

# ragged in every dimension; the middle one divides by every tile
ANY_SIZE = [(1, 1, 1), (128, 64, 64), (67, 93, 41), (16, 130, 100)]
# rows of A and of B are whole multiples of 4 bytes, of 16 bytes, and of every tile
COPIED_SIZE = [(67, 94, 42), (37, 72, 104), (128, 64, 64)]
LARGE = [(1000, 1000, 1000), (1024, 2048, 512), (333, 1366, 810)]


def check(run, kernel, m, n, k, dtype=torch.float16, out=None, transposed=False, tolerance=None):
    """Fresh operands, a poisoned result, and the product in float64 to compare it with."""
    a = torch.randn(m, k).to(dtype)
    b = torch.randn(n, k).to(dtype) if transposed else torch.randn(k, n).to(dtype)
    c = poisoned(m, n, dtype=out or dtype)
    run(kernel, (m, n, k, a, b, c))
    reference = a.double() @ (b.double().T if transposed else b.double())
    assert_close(c, reference, tolerance)
