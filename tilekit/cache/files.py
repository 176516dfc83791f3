# SPDX-License-Identifier: Apache-2.0
"""Files of the cache, written whole or not at all, while anybody may read, delete or write the same ones."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import warnings
from pathlib import Path

from tilekit import config

_DRAFT = re.compile(r"\..+-\d+-[0-9a-f]{8}")


def read(place: str) -> bytes:
    """All of a file, by as few calls of the system as that takes: a kernel that is found waits for a dozen files."""
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        content = os.read(descriptor, size)
        while len(content) < size and (more := os.read(descriptor, size - len(content))):
            content += more
        return content
    finally:
        os.close(descriptor)


def write(place: Path, content: bytes) -> None:
    """Put a file there in one step; its folder is made if it is missing."""
    draft = beside(place)
    try:
        try:
            draft.write_bytes(content)
        except FileNotFoundError:
            draft.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(content)
        draft.replace(place)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def link(place: Path, target: Path) -> None:
    """Let `place` lead to `target`, by a relative way, in one step."""
    way = os.path.relpath(target, place.parent)
    if place.is_symlink() and os.readlink(place) == way:
        return
    draft = beside(place)
    try:
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.symlink_to(way)
        draft.replace(place)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def beside(place: Path) -> Path:
    """A name for what is going to be renamed to `place`; it says which process made it, should that die."""
    return place.with_name(f".{place.name}-{os.getpid()}-{secrets.token_hex(4)}")


def is_draft(place: Path) -> bool:
    """Whether a name is one of those, of whichever process."""
    return _DRAFT.fullmatch(place.name) is not None


_told: set[Path] = set()


def is_unwritable(root: Path) -> bool:
    """Whether it was found that a cache cannot be written; nobody tries again."""
    return root in _told


def warn_unwritable(root: Path, error: OSError) -> None:
    """Say once that a cache cannot be written; what would have gone there lives in this process alone."""
    if root not in _told:
        _told.add(root)
        warnings.warn(str(config.unwritable_cache(root, error)), stacklevel=2)
