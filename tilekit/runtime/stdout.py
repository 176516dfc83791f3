# SPDX-License-Identifier: Apache-2.0
"""What C code of this process writes to standard output within a block: a GPU's driver prints for its kernels so.

The descriptor leads to a file in memory meanwhile. Whatever another thread writes there in that time is in `text` too,
for whoever collects to pass it on: nothing is lost unless the process dies.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from contextlib import AbstractContextManager

_STDOUT = 1
_lock = threading.Lock()


class Collecting(AbstractContextManager["Collecting"]):
    """Collects within the block; where standard output is closed, nobody could read it, and `text` stays empty."""

    def __init__(self) -> None:
        self.text = ""
        self._before: int | None = None
        self._file = -1

    def __enter__(self) -> Collecting:
        _lock.acquire()
        try:
            _flush()
            self._before = os.dup(_STDOUT)
            self._file = os.memfd_create("tilekit-prints", os.MFD_CLOEXEC)
            os.dup2(self._file, _STDOUT)
        except OSError:
            self._leave()
        except BaseException:
            self._leave()
            _lock.release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._before is not None:
                _flush()
                self._leave()
        finally:
            _lock.release()

    def _leave(self) -> None:
        if self._before is not None:
            os.dup2(self._before, _STDOUT)
            os.close(self._before)
            self._before = None
        if self._file >= 0:
            self.text = os.pread(self._file, os.fstat(self._file).st_size, 0).decode(errors="replace")
            os.close(self._file)
            self._file = -1


def _flush() -> None:
    """Let what was printed before, by Python and by C, go where it was meant to go."""
    sys.stdout.flush()
    ctypes.CDLL(None).fflush(None)
