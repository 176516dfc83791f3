# SPDX-License-Identifier: Apache-2.0
"""Kernels that differ in nothing but what their classes enclose: one that was changed, or two beside each other.

A script that makes `Scale` with 2.0 and the next day with 3.0 has changed a kernel, and so has a cell that runs again:
an edit of it meets another generated source. One that makes both has two kernels, and an edit of one is none of the
other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from tilekit.jit import session
from tilekit.jit.observer import Identity


class Apart:
    """Tells kernels apart that were compiled beside each other: in one run of a script, or of a cell.

    Parameters
    ----------
    is_known
        Whether a kernel was told apart in an earlier process, because it has files.
    """

    def __init__(self, is_known: Callable[[Identity], bool]) -> None:
        self._is_known = is_known
        self._found: set[Identity] = set()
        # the first of each name in the last cell that had one
        self._first: dict[Identity, tuple[int, Identity]] = {}
        self._lock = threading.Lock()

    def known_as(self, kernel: Identity) -> Identity:
        """The kernel with what it encloses, if there is another beside it, else without."""
        plain, cell = replace(kernel, enclosed=""), session.cell()
        if kernel == plain:
            return plain
        with self._lock:
            if kernel in self._found or self._is_known(kernel):
                return kernel
            found = self._first.get(plain)
            if found is None or found[0] != cell:
                found = self._first[plain] = cell, kernel
            if found[1] == kernel:
                return plain
            self._found.add(kernel)
            return kernel
