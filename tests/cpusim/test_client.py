# SPDX-License-Identifier: Apache-2.0
"""The worker process: what stops it, what it survives, and that the process that uses it survives everything."""

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cpusim import harness
from tests.cpusim.harness import HEADER, library, run
from tests.cpusim.test_kernels import VECTOR_ADD
from tilekit.cpusim import build, client
from tilekit.cpusim.client import LaunchRequest, Pointer, Simulator
from tilekit.diag import KernelError

ENDLESS = HEADER + (
    'extern "C" __global__ void endless(volatile int32_t *x)\n{\n  while (x[0] == 0)\n    x[1] = 1;\n}\n'
    "TK_KERNEL(endless)\n"
)
# It blocks the signal that stops it, as a kernel might that corrupts the runtime.
UNSTOPPABLE = HEADER + (
    'extern "C" int pthread_sigmask(int, const uint64_t *, uint64_t *);\n'
    'extern "C" __global__ void unstoppable(volatile int32_t *x)\n{\n'
    "  uint64_t all[16];\n  for (int i = 0; i < 16; ++i) all[i] = ~uint64_t(0);\n"
    "  pthread_sigmask(0, all, nullptr);\n  while (x[0] == 0) {}\n}\nTK_KERNEL(unstoppable)\n"
)
DEADLY = HEADER + 'extern "C" void abort();\nextern "C" __global__ void deadly() { abort(); }\nTK_KERNEL(deadly)\n'
TRIES = 5  # what a machine does in time, a busy one does in time now and then
NOTHING = HEADER + 'extern "C" __global__ void nothing() {}\nTK_KERNEL(nothing)\n'


@pytest.fixture
def own():
    """A simulator that no other test uses."""
    simulator = Simulator(harness.runtime())
    yield simulator
    simulator.close()


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def adds(simulator: Simulator) -> bool:
    x = np.random.default_rng().standard_normal(100, np.float32)
    z = np.zeros(100, np.float32)
    run(simulator, VECTOR_ADD, "vector_add", [np.int32(100), x, x, z], block=128)
    return bool((z == x + x).all())


def test_the_worker_starts_at_the_first_launch_and_stays(own):
    assert own.worker_pid is None
    assert adds(own)
    first = own.worker_pid
    assert adds(own)
    assert own.worker_pid == first


def test_a_launch_of_nothing_costs_little(own):
    """The best of many, so that a busy machine counts little; a launch takes about 0.1 ms."""
    launch = LaunchRequest(library(NOTHING), "nothing", (1, 1, 1), (32, 1, 1))
    own.run(launch)
    seconds = []
    for _ in range(100):
        begin = time.perf_counter()
        own.run(launch)
        seconds.append(time.perf_counter() - begin)
    assert min(seconds) < 2e-3


SLOW = HEADER + (
    'extern "C" __global__ void slow(volatile int32_t *x, int32_t n)\n{\n'
    "  for (int32_t i = 0; i < n; ++i) x[blockIdx.x] = i;\n}\nTK_KERNEL(slow)\n"
)


def test_who_waits_is_told_how_many_blocks_have_ended(own, monkeypatch):
    told: list[int] = []
    monkeypatch.setattr(client, "TICK_S", 0.005)
    arguments = [np.zeros(100, np.int32), np.int32(8_000_000)]
    run(own, SLOW, "slow", arguments, grid=100, block=1, on_wait=told.append)
    assert told == sorted(told) and any(0 < finished < 100 for finished in told)
    told.clear()
    run(own, SLOW, "slow", arguments, grid=100, block=1, on_wait=told.append)
    assert told[0] < 50, "the next launch begins at zero"


def test_who_waits_may_stop_the_launch(own, monkeypatch):
    monkeypatch.setattr(client, "TICK_S", 0.005)

    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(own, ENDLESS, "endless", [np.zeros(2, np.int32)], on_wait=stop)
    assert adds(own)


def test_a_worker_that_died_between_launches_is_replaced(own):
    assert adds(own)
    os.kill(own.worker_pid, signal.SIGKILL)
    time.sleep(0.1)
    assert adds(own)


def test_a_worker_that_dies_in_a_launch_says_what_killed_it(own):
    with pytest.raises(KernelError) as caught:
        run(own, DEADLY, "deadly", [])
    assert caught.value.kind == "died"
    assert str(caught.value).startswith("TK717: kernel 'deadly': the simulator's process was killed by SIGABRT")
    assert adds(own)


def test_a_kernel_that_cannot_be_stopped_softly_is_killed(own):
    harness.library(UNSTOPPABLE)
    begin = time.monotonic()
    with pytest.raises(KernelError) as caught:
        run(own, UNSTOPPABLE, "unstoppable", [np.zeros(1, np.int32)], timeout_s=0.2)
    assert time.monotonic() - begin < 20
    assert caught.value.kind == "timeout"
    assert caught.value.message == (
        "kernel 'unstoppable': the kernel still ran after 0.2 s and did not stop by itself: its process was ended"
    )
    assert adds(own)


@pytest.mark.parametrize("source", [ENDLESS, UNSTOPPABLE], ids=["soft", "hard"])
def test_an_interrupt_ends_a_launch_within_half_a_second(own, source):
    name = "endless" if source is ENDLESS else "unstoppable"
    harness.library(source)
    interrupted_at = []

    def interrupt():
        interrupted_at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def seconds():
        assert adds(own)
        threading.Timer(0.3, interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            run(own, source, name, [np.zeros(2, np.int32)])
        return time.monotonic() - interrupted_at[-1]

    assert any(seconds() < 0.5 for _ in range(TRIES))
    assert adds(own)


def test_a_soft_interrupt_keeps_the_worker(own):
    harness.library(ENDLESS)
    assert adds(own)
    worker = own.worker_pid
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        run(own, ENDLESS, "endless", [np.zeros(2, np.int32)])
    assert adds(own)
    assert own.worker_pid == worker


@pytest.mark.parametrize("source", [ENDLESS, UNSTOPPABLE], ids=["soft", "hard"])
def test_another_thread_can_interrupt_a_launch(own, source):
    name = "endless" if source is ENDLESS else "unstoppable"
    harness.library(source)
    assert adds(own)
    threading.Timer(0.2, own.interrupt).start()
    begin = time.monotonic()
    with pytest.raises(KernelError) as caught:
        run(own, source, name, [np.zeros(2, np.int32)])
    assert time.monotonic() - begin < 20
    assert caught.value.kind == "interrupted"
    assert (caught.value.data["line"] in (5, 6)) == (source is ENDLESS)
    own.interrupt()  # nothing runs: nothing happens
    assert adds(own)


def test_an_interrupt_of_the_terminal_does_not_reach_the_worker(own):
    assert adds(own)
    assert os.getsid(own.worker_pid) == own.worker_pid
    assert os.getsid(0) != own.worker_pid


def test_where_memory_runs_out_the_worker_goes_first_and_leaves_no_core_file(own):
    assert adds(own)
    assert Path(f"/proc/{own.worker_pid}/oom_score_adj").read_text() == "1000\n"
    assert resource.prlimit(own.worker_pid, resource.RLIMIT_CORE) == (0, 0)
    most, _ = resource.prlimit(own.worker_pid, resource.RLIMIT_DATA)
    assert 0 < most < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + (8 << 30)


def test_launches_of_several_threads_take_turns(own):
    good = []
    threads = [threading.Thread(target=lambda: good.append(all(adds(own) for _ in range(5)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert good == [True] * 4


def test_a_forked_child_has_a_worker_of_its_own(own):
    assert adds(own)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        ok = own.worker_pid is None and adds(own)
        os.write(writer, b"y" if ok else b"n")
        own.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1) == b"y"
    assert adds(own)
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize("running", [False, True], ids=["idle", "running"])
def test_the_worker_ends_with_the_process_that_started_it(running):
    endless = harness.library(ENDLESS)
    script = f"""
import os, sys, threading, time
from pathlib import Path
from tilekit.cpusim.client import LaunchRequest, Pointer, Simulator
simulator = Simulator(Path({str(harness.runtime())!r}))
region = simulator.memory.allocate(8)
region.view[:] = bytes(8) if {running} else bytes([1] * 8)
def tell():
    time.sleep(0.5)
    print(simulator.worker_pid, flush=True)
threading.Thread(target=tell, daemon=True).start()
simulator.run(LaunchRequest(Path({str(endless)!r}), "endless", (1, 1, 1), (1, 1, 1), regions=[region],
                            arguments=[Pointer(0, 0, 8, "x")], timeout_s=0))
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        worker = int(process.stdout.readline())
        assert is_running(worker)
        process.kill()
    deadline = time.monotonic() + 20
    while is_running(worker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(worker)


def test_a_library_that_was_built_again_is_loaded_again(own, tmp_path):
    for value in (3, 4):
        (tmp_path / "source.cu").write_text(
            HEADER + f'extern "C" __global__ void put(int32_t *x) {{ x[0] = {value}; }}\nTK_KERNEL(put)\n'
        )
        (tmp_path / "lib.so").unlink(missing_ok=True)
        harness.compiler().build_kernel(tmp_path / "source.cu", tmp_path / "lib.so", include=build.INCLUDE)
        region = own.memory.allocate(4)
        own.run(
            LaunchRequest(
                tmp_path / "lib.so", "put", (1, 1, 1), (1, 1, 1), regions=[region], arguments=[Pointer(0, 0, 4, "x")]
            )
        )
        assert list(region.view) == [value, 0, 0, 0]
        own.memory.release(region)


def test_more_files_than_one_message_can_carry(own):
    regions = [own.memory.allocate(10) for _ in range(150)]
    own.run(LaunchRequest(library(NOTHING), "nothing", (1, 1, 1), (1, 1, 1), regions=regions))
    for region in regions:
        own.memory.release(region)


def test_a_missing_library_is_refused_with_its_name(own, tmp_path):
    with pytest.raises(KernelError, match=r"cannot load 'f' from gone\.so: .*No such file"):
        own.run(LaunchRequest(tmp_path / "gone.so", "f", (1, 1, 1), (1, 1, 1)))


def test_worker_imports_the_standard_library_alone():
    # -S leaves out site-packages, so that an import of anything else would fail; it says so by failing to find argv[1]
    worker = subprocess.run(
        [sys.executable, "-I", "-S", str(client._WORKER)], capture_output=True, text=True, check=False
    )
    assert "IndexError" in worker.stderr
