# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled programs: `programs/<key>/` holds one, published whole by a rename, or not there.

A folder that misses a file, or whose file is not what `entry.json` says, is no entry: damage is a miss, and the next
publisher replaces it. An entry holds its files in memory, so the folder may be deleted at any time, also while its
kernel is in use; `restore` writes it again. Where the cache cannot be written, the entry lives in memory alone: one
warning says so.

    found = ProgramCache(root).lookup(key)               # or None
    entry = ProgramCache(root).publish(key, files)       # never raises for want of a disk
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tilekit.cache import files as whole_files
from tilekit.cache import size
from tilekit.cache.files import beside
from tilekit.cache.size import INDEX
from tilekit.config import DEFAULT_CACHE_LIMIT

OPTIONS = "options.txt"
_FORMAT = 1
_KEY_DIGITS = 32
_ATTEMPTS = 8  # how often the folder may change under us while we publish


def key_of(parts: Mapping[str, str]) -> str:
    """The name of what these parts determine: text of the program, target, options, versions, fingerprints."""
    digest = hashlib.sha256()
    for name in sorted(parts):
        for piece in (name.encode(), parts[name].encode()):
            digest.update(len(piece).to_bytes(8, "little"))
            digest.update(piece)
    return digest.hexdigest()[:_KEY_DIGITS]


def options_text(options: Mapping[str, str]) -> str:
    """What a program was compiled with, as its `OPTIONS` say it."""
    return "".join(f"{name} = {value}\n" for name, value in options.items())


def read_options(folder: Path) -> dict[str, str]:
    """What the program in a folder was compiled with; nothing where that cannot be read."""
    try:
        lines = [line.partition(" = ") for line in (folder / OPTIONS).read_text().splitlines()]
    except (OSError, ValueError):
        return {}
    return {name: value for name, _, value in lines}


@dataclass(frozen=True)
class ProgramEntry:
    """One compiled program: its folder, and its files as they were when they were checked."""

    key: str
    folder: Path
    files: Mapping[str, bytes]

    def text(self, name: str) -> str:
        return self.files[name].decode()

    def path(self, name: str) -> Path:
        """Where the file lies, if nobody has deleted it."""
        return self.folder / name


class ProgramCache:
    """The entries under one cache folder; it keeps nothing in memory, so any number of them may share a folder."""

    def __init__(self, root: Path, limit: int = DEFAULT_CACHE_LIMIT, kind: str = "programs") -> None:
        self.root = root
        self.limit = limit
        # the folder of the cache that holds them: `pages/` has what was made from programs, for people
        self.programs = root / kind

    def lookup(self, key: str) -> ProgramEntry | None:
        """Return the entry, if it is there and whole."""
        folder = self.programs / key
        try:
            index = json.loads(whole_files.read(f"{folder}/{INDEX}"))
            if index["format"] != _FORMAT or index["key"] != key:
                return None
            files = {name: _read_checked(str(folder), name, digest) for name, digest in index["files"].items()}
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        size.used(folder / INDEX)
        return ProgramEntry(key, folder, files)

    def publish(self, key: str, files: Mapping[str, bytes]) -> ProgramEntry:
        """Make the entry and return it; who loses the race against another process gets the winner's."""
        try:
            entry = self._publish(key, files)
        except OSError as error:
            whole_files.warn_unwritable(self.root, error)
            return ProgramEntry(key, self.programs / key, dict(files))
        size.added(self.root, sum(map(len, files.values())), self.limit)
        return entry

    def restore(self, entry: ProgramEntry) -> bool:
        """Write an entry again whose folder was deleted while it was in use; whether that was so."""
        if os.path.exists(f"{entry.folder}/{INDEX}") or whole_files.is_unwritable(self.root):
            return False
        self.publish(entry.key, entry.files)
        return True

    def _publish(self, key: str, files: Mapping[str, bytes]) -> ProgramEntry:
        folder = self.programs / key
        for _ in range(_ATTEMPTS):
            self.programs.mkdir(parents=True, exist_ok=True)
            draft = beside(folder)
            try:
                draft.mkdir()
                _write(draft, key, files)
                draft.rename(folder)
                return ProgramEntry(key, folder, dict(files))
            except OSError:
                if (winner := self.lookup(key)) is not None:
                    return winner
                if self.programs.is_dir() and draft.is_dir() and not folder.exists():
                    raise  # nobody took the name and nobody deleted the cache: the disk itself refuses
                size.delete(folder)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        raise OSError(f"{folder} changed {_ATTEMPTS} times while it was written")


def _read_checked(folder: str, name: str, digest: str) -> bytes:
    if not _is_inside(name):
        raise ValueError(f"{name} is not a name inside an entry")
    content = whole_files.read(f"{folder}/{name}")
    if _digest(content) != digest:
        raise ValueError(f"{name} is not what was published")
    return content


def _write(draft: Path, key: str, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        if not _is_inside(name) or name == INDEX:
            raise ValueError(f"{name!r} cannot be a file of a cache entry")
        place = draft / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    index: dict[str, Any] = {
        "format": _FORMAT,
        "key": key,
        "files": {name: _digest(files[name]) for name in sorted(files)},
    }
    (draft / INDEX).write_text(json.dumps(index, indent=2) + "\n")


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
