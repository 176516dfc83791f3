# SPDX-License-Identifier: Apache-2.0
"""How the threads of a block share rows that are read once and kept in registers."""

import math

from tilekit.dtypes import DataType
from tilekit.ir.layout.register_layout import RegisterLayout, local, spatial

# elements of a row that a thread keeps at most; more of them leave too few registers for enough threads
KEPT = 64
# the longest row that a warp has to itself, so that its threads need no barrier to agree on a maximum or a sum
WARP_ROW = 1024


def row_layout(n: int, dtype: DataType, warps: int) -> tuple[int, int, RegisterLayout]:
    """Rows of a block, columns of its tile, and who has which of them: a row of `n` elements, or a part of it.

    Neighboring threads have neighboring vectors of 16 bytes, or of what the length of a row leaves aligned.
    """
    width = max(32, 1 << (n - 1).bit_length())
    rows, together = (warps, 1) if width <= WARP_ROW else (1, warps)
    threads = 32 * together
    if width > KEPT * threads:
        width = 16 * threads
    width = max(width, threads)
    vector = math.gcd(n, 16 // dtype.nbytes, width // threads)
    return rows, width, spatial(rows, together).local(1, width // threads // vector).spatial(1, 32).local(1, vector)
