# SPDX-License-Identifier: Apache-2.0
"""Memory that this process and the simulator's worker share: anonymous files, kept and used again.

A region is a window of bytes for the tensors of a launch. It is placed so that its end touches the end of the file,
which the worker maps against guard pages: running over the end of a tensor then faults at once.
"""

from __future__ import annotations

import fcntl
import itertools
import mmap
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

PAGE = mmap.PAGESIZE
# A region keeps the caller's address modulo this, so that vector accesses see the true alignment. It is the widest
# access there is, and not more, because it is also the room that may be left between a region and its guard page.
ALIGNMENT = 16

_identifiers = itertools.count(1)


@dataclass(eq=False)
class Region:
    """`nbytes` shared bytes; `view` is where this process writes and reads them."""

    file: File
    mapped: int  # bytes of the file that are in use, in whole pages; the worker's guard pages lie around them
    begin: int  # where in them the region begins
    nbytes: int

    @property
    def view(self) -> memoryview:
        return memoryview(self.file.pages)[self.begin : self.begin + self.nbytes]


@dataclass(eq=False)
class File:
    """An anonymous file, mapped here; `number` is its name between client and worker."""

    descriptor: int
    size: int
    number: int = field(default_factory=lambda: next(_identifiers))
    pages: mmap.mmap = field(init=False)

    def __post_init__(self) -> None:
        self.pages = mmap.mmap(self.descriptor, self.size)

    def close(self) -> None:
        """Let go of the file; its memory lives on while an array still looks into a view."""
        os.close(self.descriptor)


class Memory:
    """A pool of regions, for one thread at a time; what is released is kept for later, up to `idle_limit` bytes."""

    def __init__(self, idle_limit: int = 256 << 20) -> None:
        self.idle_limit = idle_limit
        self.open: set[int] = set()  # numbers of the files that there are: what is not here, nobody should map
        self._idle: list[File] = []

    def allocate(self, nbytes: int, address: int = 0) -> Region:
        """Return a region for bytes that lie at `address` in this process; what it contains is anything."""
        tail = -(address + nbytes) % ALIGNMENT
        mapped = max(PAGE, -(-(nbytes + tail) // PAGE) * PAGE)
        return Region(self._file(mapped), mapped, mapped - tail - nbytes, nbytes)

    def release(self, region: Region) -> None:
        """Take a region back; its views must not be used any more."""
        self._idle.append(region.file)
        while sum(file.size for file in self._idle) > self.idle_limit:
            self._close(self._idle.pop(0))

    def close(self) -> None:
        """Give all that is idle back to the system."""
        while self._idle:
            self._close(self._idle.pop())

    def _file(self, size: int) -> File:
        fitting = [file for file in self._idle if size <= file.size <= 2 * size]
        if fitting:
            # of equals the one released last: it is the likeliest to be mapped at this size already
            best = min(reversed(fitting), key=lambda file: file.size)
            self._idle.remove(best)
            return best
        if size > _available_memory():
            # the system would grant it, and kill somebody when the pages are touched
            raise MemoryError(f"no memory for {size} bytes shared with the CPU simulator")
        file = File(shared_file("tilekit", size), size)
        self.open.add(file.number)
        return file

    def _close(self, file: File) -> None:
        file.close()
        self.open.remove(file.number)


def shared_file(name: str, size: int) -> int:
    """An anonymous file of so many bytes for ever: if a kernel could cut it off, whoever reads it here would die."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
    return descriptor


def _available_memory() -> int:
    """Bytes that can be used without pushing anything out."""
    found = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())
    return int(found[1]) << 10 if found else sys.maxsize
