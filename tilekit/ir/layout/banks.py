# SPDX-License-Identifier: Apache-2.0
"""The 32 banks of shared memory: how many more rounds than necessary an access of a warp takes.

Consecutive 4-byte words lie in consecutive banks, and a bank serves one word at a time, to any number of threads. A
round moves at most 128 bytes, so a warp that moves 8 bytes a thread takes two rounds, and one that moves 16 takes four.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from tilekit.ir.layout import mapping
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shapes import LayoutOperationError
from tilekit.ir.layout.shared_layout import LINE_NBYTES, SharedLayout

BANKS = 32
WORD_NBYTES = 4


@functools.lru_cache(maxsize=1024)
def conflicts(shared: SharedLayout, reg: RegisterLayout, nbytes: int, vector: int) -> int:
    """How many rounds too many the worst access takes, where threads move `vector` elements of `nbytes` at once.

    Found by looking at every access of every warp. The rows that ldmatrix reads are such accesses too: see
    `atoms.MatrixAccess.rows`.
    """
    size = nbytes * vector
    if size not in (1, 2, 4, 8, 16):
        raise LayoutOperationError(f"no access of shared memory moves {size} bytes: 1, 2, 4, 8 or 16")
    if mapping.shared_vector_extent(reg, shared) % vector != 0:
        raise LayoutOperationError(f"{vector} registers of {reg} do not lie side by side in {shared}")
    thread: Any = np.arange(reg.spatial_size)[:, np.newaxis]
    register: Any = np.arange(0, reg.local_size, vector)[np.newaxis, :]
    index = (mapping.evaluate(terms, thread=thread, local=register) for terms in mapping.index_terms(reg))
    first_byte = np.zeros((thread.size, register.size), dtype=np.int64) + shared.byte_offset(*index, nbytes=nbytes)
    lanes = min(BANKS, LINE_NBYTES // size)
    worst = 1
    for start in range(0, reg.spatial_size, lanes):
        for column in first_byte[start : start + lanes].T:
            words = {(byte + step) // WORD_NBYTES for byte in column.tolist() for step in range(0, size, WORD_NBYTES)}
            worst = max(worst, _rounds(words))
    return worst - 1


def _rounds(words: Iterable[int]) -> int:
    """How many different words the busiest bank serves."""
    return max(np.bincount([word % BANKS for word in words]).tolist())
