# SPDX-License-Identifier: Apache-2.0
"""How the threads of a block share rows that are read once and kept in registers."""

import math

from tilekit.dtypes import DataType
from tilekit.ir.layout.register_layout import RegisterLayout, spatial

# elements of a row that a thread keeps at most; more of them leave too few registers for enough threads
MOST = 64


def row_layout(n: int, dtype: DataType, warps: int, *, least: int = 32) -> tuple[int, int, RegisterLayout]:
    """Rows of a block, columns of its tile, and who has which of them: a row of `n` elements, or a part of it.

    A thread keeps at least `least` elements where a row has as many, so that a short row is shared by few warps: those
    of one warp agree on a maximum or a sum without a barrier. Neighboring threads have neighboring vectors of 16 bytes,
    or of what the length of a row leaves aligned.
    """
    width = max(32, 1 << (n - 1).bit_length())
    together = min(warps, max(1, width // (32 * least)))
    threads = 32 * together
    if width > MOST * threads:
        width = 16 * threads
    vector = math.gcd(n, 16 // dtype.nbytes, width // threads)
    layout = spatial(warps // together, together).local(1, width // threads // vector).spatial(1, 32).local(1, vector)
    return warps // together, width, layout
