# SPDX-License-Identifier: Apache-2.0
"""Whatever happens to the cache while kernels compile, what they compute is right, and nobody gets an exception."""

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.caches import new_cache
from tests.promises.processes import Copy
from tilekit.cache import manage, size

SCRIPT = """\
import errno, pathlib, sys, threading
import numpy as np
import tilekit
from tilekit import float32, int32


@tilekit.autotune("block", [32, 64])
class Scale(tilekit.Script):
    debug_schedule = {{"block": 32}}

    def __init__(self, factor: float, block: int):
        super().__init__()
        self.factor, self.block = factor, block

    def __call__(self, n: int32, x: ~float32, y: ~float32):
        self.attrs.blocks = [(n + self.block - 1) // self.block]
        self.attrs.warps = 1
        at = self.blockIdx.x * self.block
        gx = self.global_view(x, dtype=float32, shape=[n])
        gy = self.global_view(y, dtype=float32, shape=[n])
        self.store_global(gy, self.load_global(gx, offsets=[at], shape=[self.block]) * self.factor, offsets=[at])


wrong = []
write = pathlib.Path.write_bytes


def write_a_little(path, content):
    if len(content) > {room} and str(path).startswith("{cache}"):
        write(path, content[:{room}])
        raise OSError(errno.ENOSPC, "No space left on device")
    return write(path, content)


pathlib.Path.write_bytes = write_a_little


def work(factor):
    x, y = np.random.rand(100).astype(np.float32), np.full(100, np.nan, np.float32)
    try:
        Scale(factor)(100, x, y)
    except BaseException as problem:
        wrong.append(repr(problem))
    if not (y == x * np.float32(factor)).all():
        wrong.append(factor)


print("ready", flush=True)
sys.stdin.readline()
threads = [threading.Thread(target=work, args=(2.0 + number % {kernels},)) for number in range({threads})]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(wrong, [kernel.cached for kernel in Scale(2.0).kernels], flush=True)
"""


class Process:
    """A process that calls the kernel in several threads, once it is told to go."""

    def __init__(self, compiler: Copy, cache: Path, threads: int = 1, kernels: int = 1, room: int = 10**9):
        path = cache.parent / "script.py"
        path.write_text(SCRIPT.format(threads=threads, kernels=kernels, room=room, cache=cache))
        ours = {"TILEKIT_CACHE_DIR": str(cache), "PYTHONPATH": str(compiler.folder), "PYTHONWARNINGS": "ignore"}
        environment = {**os.environ, **ours}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, str(path)]
        self.run = subprocess.Popen(command, env=environment, text=True, start_new_session=True, **pipes)
        assert self.run.stdout.readline() == "ready\n", self.run.stderr.read()

    def go(self) -> "Process":
        self.run.stdin.write("\n")
        self.run.stdin.flush()
        return self

    def answer(self) -> str:
        output, errors = self.run.communicate(timeout=240)
        assert self.run.returncode == 0, errors
        return output.strip()

    def kill(self) -> None:
        self.run.kill()
        self.run.communicate()


@pytest.fixture(scope="module")
def compiler(tmp_path_factory) -> Copy:
    return Copy(tmp_path_factory.mktemp("compiler"))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return new_cache(tmp_path / "cache")


def test_two_processes_with_eight_threads_share_a_cold_cache(compiler, cache):
    both = [Process(compiler, cache, threads=8, kernels=2) for _ in range(2)]
    for process in both:
        process.go()
    assert [process.answer()[:2] for process in both] == ["[]"] * 2
    assert manage.verify(cache) == []
    assert len(manage.ls(cache).rows) == 2
    assert Process(compiler, cache, threads=8, kernels=2).go().answer() == "[] [True]"


def test_a_disk_that_is_full_costs_a_recompile(compiler, cache):
    # some files of an entry fit, its library does not; then none does
    for room in (1000, 1000, 0):
        assert Process(compiler, cache, room=room).go().answer() == "[] [False]"
        assert manage.verify(cache) == []


def test_the_directory_may_go_while_a_process_compiles(compiler, cache):
    process = Process(compiler, cache, threads=4, kernels=4).go()
    gone = threading.Event()

    def delete():
        while not gone.is_set():
            for name in ("programs", "specializations", "scripts", "compiler"):
                shutil.rmtree(cache / name, ignore_errors=True)
            time.sleep(0.02)

    deleter = threading.Thread(target=delete)
    deleter.start()
    try:
        assert process.answer().startswith("[]")
    finally:
        gone.set()
        deleter.join()
    assert Process(compiler, cache).go().answer().startswith("[]")


def test_a_clock_that_goes_backwards_changes_nothing(compiler, cache):
    assert Process(compiler, cache).go().answer() == "[] [False]"
    for place in cache.rglob("*"):
        if not place.is_symlink():
            os.utime(place, (4e9, 4e9))
    assert Process(compiler, cache).go().answer() == "[] [True]"
    size.collect(cache, 10**9)
    assert Process(compiler, cache).go().answer() == "[] [True]"


KILLS = 200


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(KILLS // 10))
def test_a_process_killed_at_any_moment_leaves_nothing_wrong(compiler, cache, seed):
    """Ten kills each, between the first byte that a compile writes and its end."""
    chance = random.Random(seed)
    begin = time.perf_counter()
    assert Process(compiler, cache).go().answer() == "[] [False]"
    whole = time.perf_counter() - begin
    for _ in range(10):
        shutil.rmtree(cache / "programs", ignore_errors=True)
        if chance.random() < 0.5:
            shutil.rmtree(cache / "specializations", ignore_errors=True)
        process = Process(compiler, cache, threads=2, kernels=2).go()
        time.sleep(chance.uniform(0, whole))
        process.kill()
        assert manage.verify(cache) == [], "what is there under its name is whole"
        assert Process(compiler, cache, threads=2, kernels=2).go().answer().startswith("[]")
    size.collect(cache, 10**9)
    assert manage.verify(cache) == []
