# SPDX-License-Identifier: Apache-2.0
"""New processes that compile a kernel with a copy of the compiler, and count what they do with its files."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import tilekit

PACKAGE = Path(tilekit.__file__).parent
SOURCES = (".py", ".h", ".cpp")

_COUNT = """\
import collections, hashlib, json, os, sys
import tilekit, tilekit.drivers, tilekit.lang.transpiler
import script

PACKAGE = os.path.dirname(tilekit.__file__)
looked, hashed = collections.Counter(), collections.Counter()
read = set()


def is_source(path):
    return isinstance(path, str) and path.startswith(PACKAGE + os.sep) and path.endswith((".py", ".h", ".cpp"))


def counted_stat(path, *args, **kwargs):
    if isinstance(path, (str, os.PathLike)) and is_source(os.fspath(path)):
        looked[os.path.relpath(path, PACKAGE)] += 1
    return stat(path, *args, **kwargs)


def counted_sha256(*args, **kwargs):
    hashed["digests"] += 1
    return sha256(*args, **kwargs)


def watch(event, arguments):
    if event == "open" and is_source(arguments[0]):
        read.add(os.path.relpath(arguments[0], PACKAGE))


stat, os.stat = os.stat, counted_stat
sha256, hashlib.sha256 = hashlib.sha256, counted_sha256
sys.addaudithook(watch)
vector = tilekit.spec(tilekit.float32, (1000,))
cached = []
for factor in (2.0, 3.0):
    handle = script.scaling(factor)
    handle.compile(1000, vector, vector, target="sm_80", device="cpu")
    cached.append(handle.kernels[-1].cached)
json.dump({"looked": looked, "read": sorted(read), "digests": hashed["digests"], "cached": cached}, sys.stdout)
"""

_SCRIPT = """\
import tilekit
from tilekit import float32, int32


def scaling(factor):
    class Scale(tilekit.Script):
        def __call__(self, n: int32, x: ~float32, y: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            gx = self.global_view(x, dtype=float32, shape=[n])
            gy = self.global_view(y, dtype=float32, shape=[n])
            self.store_global(gy, self.load_global(gx, offsets=[0], shape=[32]) * factor, offsets=[0])

    return Scale()
"""


@dataclass(frozen=True)
class Counts:
    """How often a process asked for the metadata of each compiler file, what it read, how many digests it made."""

    looked: dict[str, int]
    read: list[str]
    digests: int
    cached: list[bool]


class Copy:
    """The compiler in another folder, where it may be edited, with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.package = folder / "tilekit"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("static"))
        (folder / "script.py").write_text(_SCRIPT)

    @property
    def sources(self) -> list[Path]:
        return [file for file in self.package.rglob("*") if file.suffix in SOURCES]

    def edit(self, name: str) -> None:
        """Add a comment to a file."""
        mark = "#" if name.endswith(".py") else "//"
        with (self.package / name).open("a") as file:
            file.write(f"{mark} edited\n")

    def compile(self) -> Counts:
        """Compile two kernels in a new process."""
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "TILEKIT_CACHE_DIR": str(self.folder / "cache")}
        command = [sys.executable, "-c", _COUNT]
        done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return Counts(**json.loads(done.stdout))
