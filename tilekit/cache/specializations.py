# SPDX-License-Identifier: Apache-2.0
"""The cache of transpiled scripts: `specializations/<key>/` holds the programs of one script for one jit key.

    manifest.json   the script, its schedules, and what went into the key, part by part
    <i>.txt         the program of schedule i, as tile IR that reads back (or why there is none)
    <i>.json        its facts, sealed together with the text

The programs come one by one, as they are asked for, each in one step; what is not exactly as it was written is a miss.
The key is made by whoever knows what a script depends on: `jit/specialized.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from tilekit.cache import files, size
from tilekit.cache.size import MANIFEST
from tilekit.config import DEFAULT_CACHE_LIMIT

FORMAT = 2


class SpecializationCache:
    """The specializations under one cache folder; it keeps nothing in memory."""

    def __init__(self, root: Path, limit: int = DEFAULT_CACHE_LIMIT) -> None:
        self.root = root
        self.limit = limit
        self.folder = root / "specializations"

    def lookup(self, key: str, number: int) -> tuple[str, dict[str, Any]] | None:
        """The text and the facts of one schedule's program, if they are there and whole."""
        place = self.folder / key
        try:
            text = files.read(f"{place}/{number}.txt").decode()
            record = json.loads(files.read(f"{place}/{number}.json"))
            if record["seal"] != _seal(key, number, text, record["facts"]):
                return None
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return None
        size.used(place / MANIFEST)
        return text, cast("dict[str, Any]", record["facts"])

    def publish(self, key: str, manifest: Mapping[str, Any], number: int, text: str, facts: Mapping[str, Any]) -> None:
        """Keep one program; where the cache cannot be written, a warning says so once."""
        place = self.folder / key
        record = {"facts": facts, "seal": _seal(key, number, text, facts)}
        written = {f"{number}.txt": text, f"{number}.json": json.dumps(record)}
        if not (place / MANIFEST).exists():
            written[MANIFEST] = json.dumps({"format": FORMAT, "key": key, **manifest}, indent=2) + "\n"
        try:
            for name, content in written.items():
                files.write(place / name, content.encode())
        except OSError as error:
            files.warn_unwritable(self.root, error)
            return
        size.added(self.root, sum(map(len, written.values())), self.limit)

    def manifests(self) -> list[dict[str, Any]]:
        """What is known of every specialization, the last used first."""
        found: list[tuple[float, dict[str, Any]]] = []
        for place in self.folder.glob(f"*/{MANIFEST}"):
            try:
                manifest: Any = json.loads(place.read_bytes())
                if isinstance(manifest, dict) and isinstance(cast("dict[str, Any]", manifest)["inputs"], dict):
                    found.append((place.stat().st_mtime, cast("dict[str, Any]", manifest)))
            except (OSError, ValueError, LookupError, RecursionError):
                continue
        return [manifest for _, manifest in sorted(found, key=lambda item: -item[0])]


def _seal(key: str, number: int, text: str, facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps([key, number, text, facts], sort_keys=True).encode()).hexdigest()
