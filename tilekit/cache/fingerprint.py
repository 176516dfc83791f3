# SPDX-License-Identifier: Apache-2.0
"""What the compiler itself is, as one digest for each of its stages: edit an emitter, and its programs are stale.

`compiler(root)` looks at the metadata of every file of this package once in a process, for all stages together, and
reads only files whose metadata is not what `<root>/compiler/` remembers. There each file has its digest, and each
folder a digest over the names and digests in it, so that one touched file costs one read and its folders.

    frontend    from a script to the text of its programs: a change makes `specializations/` stale
    backend     from that text to binaries: a change makes `programs/` stale
    pages       from a compile to what is shown of it: a change makes `pages/` stale
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from tilekit.cache import files

# what stands between the text of a program and its binary
BACKEND = (
    "backends",
    "cpusim",
    "drivers.py",
    "dtypes.py",
    "include",
    "ir",
    "lowir",
    "runtime/builds.py",
    "runtime/edited.py",
    "runtime/manifest.py",
    "target.py",
    "toolchain",
    "transforms",
)
# What stands between a script and the text of its programs, with all that a kernel may name of ours: such things are
# in the key of a specialization by their name alone.
FRONTEND = (
    "dtypes.py",
    "ir",
    "jit/arguments.py",
    "jit/assumed.py",
    "jit/script.py",
    "jit/specialized.py",
    "lang",
    "lowir",
    "target.py",
    "utils.py",
)
PAGES = ("jit/tables.py", "notebook", "textdiff.py", "tools/lower_trace/plain.py")
_SUFFIXES = (".py", ".h", ".hpp", ".cuh", ".c", ".cc", ".cpp", ".S")
_FORMAT = 1
_PACKAGE = Path(__file__).resolve().parent.parent

Children = dict[str, str]


@dataclass(frozen=True)
class Stages:
    """The digest of each stage of the compiler."""

    frontend: str
    backend: str
    pages: str = ""


_stages: list[Stages] = []


def compiler(root: Path) -> Stages:
    """The stages of this package's compiler, kept for this process; `root` is the cache that remembers the files."""
    if not _stages:
        _stages.append(stages(_PACKAGE, root))
    return _stages[0]


def stages(package: Path, root: Path) -> Stages:
    """The stages of the compiler in a folder as its files are now, from what the cache remembers of them."""
    index = root / "compiler" / f"{hashlib.sha256(str(package).encode()).hexdigest()[:16]}.json"
    tree = Tree(package, _read(index))
    found = Stages(tree.digest(FRONTEND), tree.digest(BACKEND), tree.digest(PAGES))
    if tree.has_changed:
        with contextlib.suppress(OSError):  # then the next process reads the files again
            files.write(index, json.dumps(tree.known).encode())
    return found


def _read(index: Path) -> dict[str, Any]:
    try:
        known: Any = json.loads(index.read_bytes())
        if not isinstance(known, dict):
            return {}
        found = cast("dict[str, Any]", known)
        whole = found["format"] == _FORMAT and all(isinstance(found[part], dict) for part in ("files", "folders"))
    except (OSError, ValueError, LookupError, RecursionError):
        return {}
    return found if whole else {}


@dataclass
class Tree:
    """Digests of files and folders; `known` is what an earlier look found, and comes to hold what this one finds.

    A file is looked at once in the life of a tree.
    """

    root: Path
    known: dict[str, Any] = field(default_factory=dict[str, Any])
    has_changed: bool = False
    _seen: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if not self.known:
            self.known = {"format": _FORMAT, "files": {}, "folders": {}}

    def digest(self, members: tuple[str, ...]) -> str:
        """Over the names and contents of these files and folders."""
        return self._over("|".join(members), {member: self._member(member) for member in members})

    def _member(self, name: str) -> str:
        if name not in self._seen:
            try:
                state = os.stat(f"{self.root}/{name}")
            except OSError:
                self._seen[name] = "missing"
            else:
                self._seen[name] = self._folder(name) if stat.S_ISDIR(state.st_mode) else self._file(name, state)
        return self._seen[name]

    def _folder(self, name: str) -> str:
        return self._over(name, {child: self._member(f"{name}/{child}") for child in _children(f"{self.root}/{name}")})

    def _over(self, name: str, children: Children) -> str:
        """The digest of a folder, or of a stage: made again only if something in it is new."""
        known = self.known["folders"].get(name)
        if _is_pair(known) and known[0] == children:
            return known[1]
        made = hashlib.sha256(json.dumps(sorted(children.items())).encode()).hexdigest()
        self.known["folders"][name] = [children, made]
        self.has_changed = True
        return made

    def _file(self, name: str, state: os.stat_result) -> str:
        stamp = [state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino]
        known = self.known["files"].get(name)
        if _is_pair(known) and known[0] == stamp:
            return known[1]
        made = hashlib.sha256(Path(self.root, name).read_bytes()).hexdigest()
        self.known["files"][name] = [stamp, made]
        self.has_changed = True
        return made


def _is_pair(known: Any) -> bool:
    return isinstance(known, list) and len(cast("list[Any]", known)) == 2 and isinstance(known[1], str)


def _children(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            is_folder = entry.is_dir()
            if (is_folder and entry.name != "__pycache__") or (not is_folder and entry.name.endswith(_SUFFIXES)):
                yield entry.name
