# SPDX-License-Identifier: Apache-2.0
"""The 32 banks of shared memory: in how many rounds a warp moves what it moves.

Consecutive 4-byte words lie in consecutive banks, and a bank serves one word at a time, to any number of threads. A
round moves at most 128 bytes, so a warp that moves 8 bytes a thread takes two rounds, and one that moves 16 takes four.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tilekit.ir.layout import mapping
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shapes import LayoutOperationError
from tilekit.ir.layout.shared_layout import LINE_NBYTES, SharedLayout

BANKS = 32
WORD_NBYTES = 4
WARP_SIZE = 32

Counts = np.ndarray[Any, np.dtype[np.int64]]


@functools.lru_cache(maxsize=1024)
def conflicts(shared: SharedLayout, reg: RegisterLayout, nbytes: int, vector: int) -> int:
    """How many rounds too many the worst access takes, where threads move `vector` elements of `nbytes` at once.

    Found by looking at every access of every warp. The rows that ldmatrix reads are such accesses too: see
    `atoms.MatrixAccess.rows`.
    """
    return int(rounds(shared, reg, nbytes, vector).max()) - 1


def rounds(shared: SharedLayout, reg: RegisterLayout, nbytes: int, vector: int, *, warps: int | None = None) -> Counts:
    """How many rounds it takes to move the 128 bytes that go together: by (group of threads, vector of a thread).

    Parameters
    ----------
    warps
        Look at the first of the warps only.
    """
    size = nbytes * vector
    if size not in (1, 2, 4, 8, 16):
        raise LayoutOperationError(f"no access of shared memory moves {size} bytes: 1, 2, 4, 8 or 16")
    if mapping.shared_vector_extent(reg, shared) % vector != 0:
        raise LayoutOperationError(f"{vector} registers of {reg} do not lie side by side in {shared}")
    threads = reg.spatial_size if warps is None else min(reg.spatial_size, warps * WARP_SIZE)
    lanes = min(WARP_SIZE, LINE_NBYTES // size)
    groups = -(-threads // lanes)
    numbers = np.arange(groups * lanes).reshape(groups, 1, lanes, 1)
    # What is missing in the last group does what the first of it does: that adds no round.
    thread: Any = np.where(numbers < threads, numbers, numbers // lanes * lanes)
    register: Any = np.arange(0, reg.local_size, vector).reshape(1, -1, 1, 1)
    index = [mapping.evaluate(terms, thread=thread, local=register) for terms in mapping.index_terms(reg)]
    first_byte = np.zeros((groups, register.size, lanes, 1), dtype=np.int64) + shared.byte_offset(*index, nbytes=nbytes)
    words = (first_byte + np.arange(0, size, WORD_NBYTES)) // WORD_NBYTES
    return _words_of_busiest_bank(words.reshape(groups, register.size, -1))


def _words_of_busiest_bank(words: Counts) -> Counts:
    """How many different words, along the last axis, are in the bank that has the most of them."""
    words = np.sort(words, axis=-1)
    new = np.ones(words.shape, dtype=bool)
    new[..., 1:] = words[..., 1:] != words[..., :-1]
    in_bank = (words % BANKS)[..., np.newaxis] == np.arange(BANKS)
    return (in_bank & new[..., np.newaxis]).sum(axis=-2).max(axis=-1)
