# SPDX-License-Identifier: Apache-2.0
"""What a new process does that finds everything in the cache: counted, for times depend on the machine."""

import json
import os
import subprocess
import sys
import time

import pytest

from tests.caches import new_cache
from tests.promises.processes import Copy

SCRIPT = """
import importlib.metadata, json, os, sys  # the first of them has whoever imports torch
import numpy as np
import tilekit
from tilekit import float32, int32

PACKAGE = os.path.dirname(tilekit.__file__)
forks, read, opened, listed, looked, modules = [], [], [], [], [], set(sys.modules)


class Scale(tilekit.Script):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def __call__(self, n: int32, x: ~float32, y: ~float32):
        self.attrs.blocks = [(n + 31) // 32]
        self.attrs.warps = 1
        self.assume(n > 0)
        at = self.blockIdx.x * 32
        gx = self.global_view(x, dtype=float32, shape=[n])
        gy = self.global_view(y, dtype=float32, shape=[n])
        self.store_global(gy, self.load_global(gx, offsets=[at], shape=[32]) * self.factor, offsets=[at])


def watch(event, arguments):
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system", "_posixsubprocess.fork_exec"):
        forks.append(f"{event} {arguments[0]}")
    if event == "open" and str(arguments[0]).startswith(PACKAGE) and str(arguments[0]).endswith((".py", ".h", ".cpp")):
        read.append(os.path.relpath(arguments[0], PACKAGE))
    if event == "open":
        opened.append(str(arguments[0]))
    if event in ("os.scandir", "os.listdir"):
        listed.append(str(arguments[0]))


def counted_stat(path, *args, **kwargs):
    looked.append(os.fspath(path) if not isinstance(path, int) else "")
    return stat(path, *args, **kwargs)


stat, os.stat = os.stat, counted_stat
sys.addaudithook(watch)
where = sys.argv[1]
kernels = []
for factor in (2.0, 3.0):
    handle = Scale(factor)
    for counted in (opened, listed, looked):
        counted.clear()
    before = set(sys.modules)
    if where == "cuda":
        vector = tilekit.spec(float32, (100,))
        handle.compile(100, vector, vector, target="sm_80", device="cuda")
    else:
        x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
        handle(100, x, y)
        assert (y == factor * x).all()
    kernels.append(handle.last)
    if len(kernels) == 1:
        first = [list(opened), list(listed), list(looked), sorted(set(sys.modules) - before)]
rooms = {"hidet", "tilekit.drivers", "tilekit.ir", "tilekit.lowir", "tilekit.transforms", "tilekit.backends", "torch"}
found = {
    "cached": [kernel.cached for kernel in kernels],
    "forks": forks,
    "read": sorted(read),
    "compiler": sorted(rooms & (set(sys.modules) - modules)),
    "first": dict(zip(("opened", "listed", "looked", "imported"), first)),
    "package": PACKAGE,
}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def compiler(tmp_path_factory) -> Copy:
    copy = Copy(tmp_path_factory.mktemp("compiler"))
    new_cache(copy.folder / "cache")
    (copy.folder / "restart.py").write_text(SCRIPT)
    return copy


def run(compiler: Copy, where: str) -> dict:
    ours = {"PYTHONPATH": str(compiler.folder), "TILEKIT_CACHE_DIR": str(compiler.folder / "cache")}
    command = [sys.executable, str(compiler.folder / "restart.py"), where]
    done = subprocess.run(command, env={**os.environ, **ours}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_cached_kernel_for_a_gpu_forks_nothing_reads_nothing_and_loads_no_compiler(compiler):
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")
    first = run(compiler, "cuda")
    assert first["cached"] == [False, False] and "hidet" in first["compiler"]
    again = run(compiler, "cuda")
    assert [again[what] for what in ("cached", "forks", "read", "compiler")] == [[True, True], [], [], []]


def test_the_first_cached_kernel_of_a_process_asks_little_of_the_file_system(compiler):
    """Each of these calls may be dear: a network's disk, a virtual machine's."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")
    run(compiler, "cuda")
    time.sleep(2.1)  # until then the folders of this copy count as changed lately
    run(compiler, "cuda")
    found = run(compiler, "cuda")
    first, package = found["first"], found["package"]
    of_package = [path for path in first["looked"] if path.startswith(package)]
    folders = sum(1 for _, names, _ in os.walk(package) for name in names if name != "__pycache__")
    assert found["cached"] == [True, True]
    assert first["imported"] == []
    assert [folder for folder in first["listed"] if folder.startswith(package)] == []
    # each file and folder of the compiler once, and nothing else of the package
    assert len(of_package) == len(set(of_package)) <= len(compiler.sources) + folders
    # the record of those files, two of the specialization, those of the program, and what says which NVRTC there is
    (program, *_) = (compiler.folder / "cache" / "programs").iterdir()
    files = sum(path.is_file() for path in program.rglob("*"))
    assert len(first["opened"]) <= 1 + 2 + files + 1 + 2, first["opened"]
    # folders of `sys.path` for the version of NVRTC, links and marks of the cache
    assert len(first["looked"]) - len(of_package) <= 20, first["looked"]


def test_a_cached_kernel_on_the_cpu_starts_its_worker_and_no_more(compiler):
    assert run(compiler, "cpu")["cached"] == [False, False]
    again = run(compiler, "cpu")
    assert (again["cached"], again["compiler"]) == ([True, True], [])
    asks_version, worker = again["forks"]
    assert "python" not in asks_version and "python" in worker
