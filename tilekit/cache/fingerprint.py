# SPDX-License-Identifier: Apache-2.0
"""What the compiler itself is, as one digest for each of its stages: edit an emitter, and its programs are stale.

`compiler(root)` looks at the metadata of every file once in a process, for both stages together, and reads only files
whose metadata is not what `<root>/compiler/` remembers. There each file has its digest, and each folder the names in it
and a digest over them and theirs, so that one touched file costs one read and its folders. A folder is listed again if
its metadata has changed, which tells of names that come and go, but not of a file that is written in its place.

    frontend    from a script to the text of its programs: a change makes `specializations/` stale
    backend     from that text to binaries: a change makes `programs/` stale
    pages       from a compile to what is shown of it: a change makes `pages/` stale
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import time
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
_FORMAT = 2
# a folder that changed so recently may change again within what its clock tells apart
_SETTLED_NS = 2_000_000_000
_PACKAGE = Path(__file__).resolve().parent.parent

# the metadata of a file or folder, its digest, and of a folder the names in it
Node = list[Any]


@dataclass(frozen=True)
class Stages:
    """The digest of each stage of the compiler."""

    frontend: str
    backend: str


_stages: list[Stages] = []


def compiler(root: Path) -> Stages:
    """The stages of this package's compiler, kept for this process; `root` is the cache that remembers the files."""
    if not _stages:
        _stages.append(stages(_PACKAGE, root))
    return _stages[0]


def stages(package: Path, root: Path) -> Stages:
    """The stages of the compiler in a folder as its files are now, from what the cache remembers of them."""
    return Stages(*_digests(package, root, FRONTEND, BACKEND))


@functools.cache
def pages(root: Path) -> str:
    """The digest of what shows a compile, kept for this process."""
    (found,) = _digests(_PACKAGE, root, PAGES)
    return found


def _digests(package: Path, root: Path, *parts: tuple[str, ...]) -> list[str]:
    index = root / "compiler" / f"{hashlib.sha256(str(package).encode()).hexdigest()[:16]}.json"
    tree = Tree(package, _read(index))
    found = [tree.digest(members) for members in parts]
    if tree.has_changed:
        with contextlib.suppress(OSError):  # then the next process reads the files again
            files.write(index, json.dumps({"format": _FORMAT, "nodes": tree.nodes()}).encode())
    return found


def _read(index: Path) -> dict[str, Any]:
    try:
        found: Any = json.loads(files.read(str(index)))
        nodes = found["nodes"] if found["format"] == _FORMAT else {}
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return {}
    return cast("dict[str, Any]", nodes) if isinstance(nodes, dict) else {}


@dataclass
class Tree:
    """Digests of files and folders; `known` is what an earlier look found, and comes to hold what this one finds.

    A file is looked at once in the life of a tree.
    """

    root: Path
    known: dict[str, Any] = field(default_factory=dict[str, Any])
    has_changed: bool = False
    _seen: dict[str, str] = field(default_factory=dict[str, str])
    # those whose digest is not the known one
    _new: set[str] = field(default_factory=set[str])

    def digest(self, members: tuple[str, ...]) -> str:
        """Over the names and contents of these files and folders."""
        name = "|".join(members)
        return self._keep(name, [None, self._over(name, {member: member for member in members}), list(members)])

    def nodes(self) -> dict[str, Any]:
        """What to remember; where something is new, of folders and stages only those that were looked at since."""
        if not self._new:
            return self.known
        return {name: node for name, node in self.known.items() if name in self._seen or self._is_of_file(name)}

    def _is_of_file(self, name: str) -> bool:
        node = self._remembered(name)
        return node is not None and len(node) == 2

    def _look(self, name: str) -> str:
        if name in self._seen:
            return self._seen[name]
        try:
            state = os.stat(f"{self.root}/{name}")
        except OSError:
            return self._keep(name, [None, "missing"])
        is_folder = stat.S_ISDIR(state.st_mode)
        return self._keep(name, self._folder(name, state) if is_folder else self._file(name, state))

    def _remembered(self, name: str) -> Node | None:
        match self.known.get(name):
            case [_, str()] as node:
                return cast("Node", node)
            case [_, str(), [*names]] as node if all(isinstance(name, str) for name in names):
                return cast("Node", node)
            case _:
                return None

    def _keep(self, name: str, node: Node) -> str:
        known = self._remembered(name)
        if known != node:
            self.known[name] = node
            self.has_changed = True
            if known is None or known[1] != node[1]:
                self._new.add(name)
        self._seen[name] = node[1]
        return node[1]

    def _folder(self, name: str, state: os.stat_result) -> Node:
        stamp, known = _stamp(state), self._remembered(name)
        if known is not None and known[0] == stamp and len(known) == 3:
            names: list[str] = known[2]
        else:
            names = sorted(_children(f"{self.root}/{name}"))
        is_settled = time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > _SETTLED_NS
        digest = self._over(name, {child: f"{name}/{child}" for child in names})
        return [stamp if is_settled else None, digest, names]

    def _over(self, name: str, children: dict[str, str]) -> str:
        """The digest of a folder, or of a stage, over names and their places: made again if something in it is new."""
        found = {child: self._look(place) for child, place in children.items()}
        known = self._remembered(name)
        if known is not None and known[2:] == [list(children)] and self._new.isdisjoint(children.values()):
            return known[1]
        return hashlib.sha256(json.dumps(sorted(found.items())).encode()).hexdigest()

    def _file(self, name: str, state: os.stat_result) -> Node:
        stamp, known = _stamp(state), self._remembered(name)
        if known is not None and known[0] == stamp:
            return known
        return [stamp, hashlib.sha256(Path(self.root, name).read_bytes()).hexdigest()]


def _stamp(state: os.stat_result) -> list[int]:
    return [state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino]


def _children(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            is_folder = entry.is_dir()
            if (is_folder and entry.name != "__pycache__") or (not is_folder and entry.name.endswith(_SUFFIXES)):
                yield entry.name
