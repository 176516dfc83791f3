# SPDX-License-Identifier: Apache-2.0
"""Looking after a cache: what is in it, finding damage, emptying it; `size.collect` makes it smaller.

`tilekit cache ls|explain|gc|verify|clear` and `tilekit.cache` are two front doors of these functions.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tilekit.cache import size
from tilekit.cache.programs import ProgramCache, read_options
from tilekit.cache.scripts import SCHEDULES
from tilekit.cache.size import INDEX, MANIFEST
from tilekit.cache.specializations import SpecializationCache

_HEX = "[0-9a-f]"
# what a cache folder may hold of ours beside its entries: a person's project may have folders of the same names
OURS = (f"scripts/*/*-{8 * _HEX}", f"compiler/{16 * _HEX}.json", "headers/nvrtc-*", "cpusim", size.LEDGER)


@dataclass(frozen=True)
class Row:
    """A program of the cache: the script that leads to it, its target and device, its size, and when it was used."""

    script: str
    schedule: str
    target: str
    device: str
    key: str
    nbytes: int
    used: float

    def __str__(self) -> str:
        age = f"{_duration(time.time() - self.used)} ago"
        name = f"{self.script}({self.schedule})" if self.schedule else self.script
        return f"{self.key[:12]}  {_bytes(self.nbytes):>9}  {age:>12}  {self.target:7} {self.device:4}  {name}"


@dataclass(frozen=True)
class Listing:
    """Everything in a cache, the last used first."""

    root: Path
    rows: tuple[Row, ...]
    specializations: int
    nbytes: int

    def __str__(self) -> str:
        counts = f"{_count(len(self.rows), 'program')}, {_count(self.specializations, 'specialization')}"
        total = f"{counts}, {_bytes(self.nbytes)}"
        return "\n".join([f"{self.root}: {total}", *map(str, self.rows)])


def ls(root: Path) -> Listing:
    """List the programs of a cache."""
    found = list(size.entries(root))
    names = dict(_names(root))
    rows = [_row(entry, names) for entry in found if entry.path.parent.name == "programs"]
    total = sum(entry.nbytes for entry in found)
    transpiled = sum(entry.path.parent.name == "specializations" for entry in found)
    return Listing(root, tuple(sorted(rows, key=lambda row: -row.used)), transpiled, total)


def explain(root: Path, key: str) -> str | None:
    """What the entries whose keys begin so were made of, or all of them for "*"; None if there are none."""
    if key != "*" and not key.isalnum():  # another pattern, or a path, would mean more
        return None
    found = sorted(path for kind in size.ENTRIES for path in (root / kind).glob(f"{key.strip('*')}*"))
    if not found:
        return None
    names = dict(_names(root))
    return "\n\n".join(_explained(folder, names) for folder in found)


def verify(root: Path) -> list[Path]:
    """Look at every byte of every entry, delete those that are not what was written, and return where they were."""
    specializations = SpecializationCache(root)
    damaged: list[Path] = []
    for entry in size.entries(root):
        folder = entry.path
        if folder.parent.name != "specializations":
            whole = ProgramCache(root, kind=folder.parent.name).lookup(folder.name) is not None
        else:
            numbers = [int(path.stem) for path in folder.glob("[0-9]*.json")]
            whole = (folder / MANIFEST).exists()
            whole = whole and all(specializations.lookup(folder.name, number) for number in numbers)
        marker = folder / size.ENTRIES[folder.parent.name]
        with contextlib.suppress(OSError):  # looking at it is not using it
            os.utime(marker, (entry.used, entry.used))
        if not whole:
            size.delete(folder)
            damaged.append(folder)
    size.collect(root, sum(entry.nbytes for entry in size.entries(root)))
    return damaged


def clear(root: Path) -> None:
    """Delete everything of ours in a cache, and nothing else."""
    ours = [*(entry.path for entry in size.entries(root)), *(place for pattern in OURS for place in root.glob(pattern))]
    for place in ours:
        size.delete(place)
    around = {folder for place in ours for folder in place.parents if root in folder.parents}
    for folder in sorted(around, reverse=True):  # the deepest first
        with contextlib.suppress(OSError):  # something is left in it
            folder.rmdir()


def _names(root: Path) -> list[tuple[str, tuple[str, str]]]:
    """For each key that a script leads to, the script and the schedule."""
    found: list[tuple[str, tuple[str, str]]] = []
    for link in (root / "scripts").glob("*/*/programs/*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            schedules = (link.parent.parent / SCHEDULES).read_text().splitlines()
            schedule = schedules[int(link.name)].partition(": ")[2]
            found.append((os.path.basename(os.readlink(link)), (link.parent.parent.parent.name, schedule)))
    return found


def _named(folder: Path, names: Mapping[str, tuple[str, str]], said: Mapping[str, str]) -> tuple[str, str]:
    """The script and the schedule of a program; one that a person edited has those of what it was made from."""
    if "edited" not in said:
        return names.get(folder.name, ("?", ""))
    script, schedule = names.get(said.get("generated", ""), ("?", ""))
    return script, f"{schedule}, edited" if schedule else "edited"


def _row(entry: size.Entry, names: Mapping[str, tuple[str, str]]) -> Row:
    said = read_options(entry.path)
    target, device = said.get("target", "?"), said.get("device", "?")
    return Row(*_named(entry.path, names, said), target, device, entry.path.name, entry.nbytes, entry.used)


def _explained(folder: Path, names: Mapping[str, tuple[str, str]]) -> str:
    lines = [f"{folder}"]
    with contextlib.suppress(OSError, ValueError, LookupError, AttributeError):
        if folder.parent.name != "specializations":
            files: Sequence[str] = sorted(json.loads((folder / INDEX).read_bytes())["files"])
            said = read_options(folder)
            script, schedule = _named(folder, names, said)
            lines += [f"  {script}({schedule})"] if script != "?" else []
            lines += [f"  {name} = {value}" for name, value in said.items()]
            lines.append(f"  files: {', '.join(files)}")
        else:
            made = cast("dict[str, Any]", json.loads((folder / MANIFEST).read_bytes()))
            schedules = _count(len(made["schedules"]), "schedule")
            lines.append(f"  {made['script']} {made['specialization']}, {schedules}; made of")
            lines += [f"  {name}: {text}" for name, text in made["inputs"].items()]
    return "\n".join(lines)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _bytes(count: int) -> str:
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} seconds"
