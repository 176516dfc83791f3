# SPDX-License-Identifier: Apache-2.0
"""What a new process does that finds everything in the cache: counted, for times depend on the machine."""

import json
import os
import subprocess
import sys

import pytest

from tests.caches import new_cache
from tests.promises.processes import Copy

SCRIPT = """
import json, os, sys
import numpy as np
import tilekit
from tilekit import float32, int32

PACKAGE = os.path.dirname(tilekit.__file__)
forks, read, modules = [], [], set(sys.modules)


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


sys.addaudithook(watch)
where = sys.argv[1]
kernels = []
for factor in (2.0, 3.0):
    handle = Scale(factor)
    if where == "cuda":
        vector = tilekit.spec(float32, (100,))
        handle.compile(100, vector, vector, target="sm_80", device="cuda")
    else:
        x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
        handle(100, x, y)
        assert (y == factor * x).all()
    kernels.append(handle.last)
rooms = {"hidet", "tilekit.drivers", "tilekit.ir", "tilekit.lowir", "tilekit.transforms", "tilekit.backends", "torch"}
found = {
    "cached": [kernel.cached for kernel in kernels],
    "forks": forks,
    "read": sorted(read),
    "compiler": sorted(rooms & (set(sys.modules) - modules)),
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
    assert run(compiler, "cuda") == {"cached": [True, True], "forks": [], "read": [], "compiler": []}


def test_a_cached_kernel_on_the_cpu_starts_its_worker_and_no_more(compiler):
    assert run(compiler, "cpu")["cached"] == [False, False]
    again = run(compiler, "cpu")
    assert (again["cached"], again["compiler"]) == ([True, True], [])
    asks_version, worker = again["forks"]
    assert "python" not in asks_version and "python" in worker
