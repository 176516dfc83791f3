# SPDX-License-Identifier: Apache-2.0
"""How large the cache may grow: beyond its limit, what was not used for longest goes first.

`<root>/size.json` holds about how many bytes there are, so that nobody has to count them after each compile; it is
counted again when it says that there are too many, or is lost.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tilekit.cache import files
from tilekit.cache.scripts import TABLE

# what a collection leaves, so that the next compile does not start another one
_KEPT_SHARE = 0.9
# a draft of a process that died is deleted when it is so old
_DRAFT_SECONDS = 3600.0
LEDGER = "size.json"
_KEY = re.compile("[0-9a-f]{32}")

INDEX, MANIFEST = "entry.json", "manifest.json"
# folder of the cache -> the file whose time of modification says when an entry was last used
ENTRIES = {"programs": INDEX, "specializations": MANIFEST, "pages": INDEX}


@dataclass(frozen=True)
class Entry:
    """A folder of the cache: its size, and when it was last used, in seconds of the clock."""

    path: Path
    nbytes: int
    used: float


def used(marker: Path) -> None:
    """Remember that an entry was used now."""
    with contextlib.suppress(OSError):
        os.utime(marker)


def added(root: Path, nbytes: int, limit: int) -> None:
    """Account for a new entry, and make room if there is too little."""
    known = _total(root)
    if known is None:
        known, nbytes = sum(entry.nbytes for entry in entries(root)), 0
    if known + nbytes > limit:
        collect(root, limit)
    else:
        _write_total(root, known + nbytes)


def collect(root: Path, limit: int) -> list[Entry]:
    """Delete what was not used for longest until the rest fits, and what dead processes left; return what went."""
    found = sorted(entries(root), key=lambda entry: entry.used)
    total = sum(entry.nbytes for entry in found)
    gone: list[Entry] = []
    if total > limit:
        for entry in found:
            if total <= limit * _KEPT_SHARE:
                break
            delete(entry.path)
            total -= entry.nbytes
            gone.append(entry)
    _delete_drafts(root)
    _delete_dead_links(root)
    _write_total(root, total)
    return gone


def entries(root: Path) -> Iterator[Entry]:
    """The programs and specializations in a cache; what else a person keeps in such a folder is none."""
    for kind, marker in ENTRIES.items():
        for folder in _folders(root / kind):
            if _KEY.fullmatch(folder.name) or (not files.is_draft(folder) and (folder / marker).exists()):
                with contextlib.suppress(OSError):  # it went while we looked
                    yield Entry(folder, _bytes(folder), _time(folder / marker, folder))


def delete(folder: Path) -> None:
    """Take a folder or a file out of the way in one step, so that nobody sees half of it, then delete it."""
    away = files.beside(folder)
    with contextlib.suppress(OSError):
        folder.rename(away)
        if away.is_symlink() or not away.is_dir():
            away.unlink()
    shutil.rmtree(away, ignore_errors=True)


def _bytes(folder: Path) -> int:
    return sum(os.lstat(os.path.join(at, name)).st_size for at, _, names in os.walk(folder) for name in names)


def _time(marker: Path, folder: Path) -> float:
    return (marker if marker.exists() else folder).stat().st_mtime


def _delete_drafts(root: Path) -> None:
    now = _now(root)
    for kind in (*ENTRIES, "compiler"):
        for draft in filter(files.is_draft, _children(root / kind)):
            with contextlib.suppress(OSError):
                if now - draft.lstat().st_mtime > _DRAFT_SECONDS:
                    shutil.rmtree(draft) if draft.is_dir() else draft.unlink()


def _delete_dead_links(root: Path) -> None:
    """Links to programs that are gone; a script with neither a program nor results of tuning goes whole."""
    for script in (folder for name in _folders(root / "scripts") for folder in _folders(name)):
        links = [link for link in _children(script / "programs") if link.is_symlink()]
        dead = [link for link in links if not link.exists()]
        for link in dead:
            with contextlib.suppress(OSError):
                link.unlink()
        if links and len(dead) == len(links) and not (script / TABLE).exists():
            delete(script)


def _now(root: Path) -> float:
    """The time by the clock of the file system, which need not be ours."""
    probe = files.beside(root / "now")
    try:
        probe.touch()
        return probe.stat().st_mtime
    except OSError:
        return 0.0
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)


def _folders(place: Path) -> list[Path]:
    return [child for child in _children(place) if child.is_dir() and not child.is_symlink()]


def _children(place: Path) -> list[Path]:
    try:
        return sorted(place.iterdir())
    except OSError:
        return []


def _total(root: Path) -> int | None:
    try:
        found = json.loads((root / LEDGER).read_bytes())["bytes"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return found if isinstance(found, int) and found >= 0 else None


def _write_total(root: Path, nbytes: int) -> None:
    with contextlib.suppress(OSError):
        files.write(root / LEDGER, json.dumps({"bytes": nbytes}).encode())
