# SPDX-License-Identifier: Apache-2.0
"""What the compiler itself is, as one digest of its files: edit an emitter, and what it compiled is compiled again."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# What stands between the text of a program and its binary. `lang` is not here: its result is that text.
BACKEND = (
    "backends",
    "cpusim",
    "drivers.py",
    "dtypes.py",
    "include",
    "ir",
    "lowir",
    "runtime/manifest.py",
    "target.py",
    "toolchain",
    "transforms",
)
_SUFFIXES = (".py", ".h", ".hpp", ".cuh", ".c", ".cc", ".cpp", ".S")


@functools.cache
def backend() -> Fingerprint:
    """The fingerprint of everything after the program's text, kept for this process."""
    return Fingerprint(Path(__file__).resolve().parent.parent, BACKEND)


@dataclass
class Fingerprint:
    """A digest of the named files and folders; a file is read again only when its metadata changed.

    Asking again costs one `stat` a file, so whoever edits a pass and reloads it in a notebook is not served the
    binaries of the old one.
    """

    root: Path
    members: tuple[str, ...]
    _known: dict[str, tuple[tuple[int, ...], bytes]] = field(default_factory=dict[str, Any], repr=False)

    def digest(self) -> str:
        """Hex digest over the names and the contents of all files."""
        total = hashlib.sha256()
        for name in sorted(_files(self.root, self.members)):
            total.update(name.encode() + b"\0")
            total.update(self._content(name))
        return total.hexdigest()

    def _content(self, name: str) -> bytes:
        path = f"{self.root}/{name}"
        state = os.stat(path)
        stamp = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        known = self._known.get(name)
        if known is not None and known[0] == stamp:
            return known[1]
        digest = hashlib.sha256(Path(path).read_bytes()).digest()
        self._known[name] = (stamp, digest)
        return digest


def _files(root: Path, members: Iterable[str]) -> Iterator[str]:
    """Names relative to the root, `/` between their parts."""
    for member in members:
        if os.path.isfile(root / member):
            yield member
        for folder, _, names in os.walk(root / member):
            inside = os.path.relpath(folder, root).replace(os.sep, "/")
            yield from (f"{inside}/{name}" for name in names if name.endswith(_SUFFIXES))
