# SPDX-License-Identifier: Apache-2.0
"""Whatever a kernel does to the process it runs in, the caller gets one error in words and the next kernel is right."""

import contextlib
import os
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cpusim import harness, hostile
from tests.cpusim.harness import library, run
from tests.cpusim.test_kernels import VECTOR_ADD
from tilekit.cpusim.client import Simulator
from tilekit.diag import KernelError

N = 100
MARK = f"TILEKIT_HOSTILE_{os.getpid()}"
TIMEOUT_S = 0.4
BOUND_S = 15.0  # the time-out, what the worker and the caller add to it, and a busy machine
EVERY_TIME = (
    ("wild_write", 0),
    ("wild_jump", 1),
    ("stack_smashed", 2),
    ("deadly_signals", 3),
    ("endless", 0),
    ("stack_used_up", 0),
    ("exits", 0),
    ("descriptors", 1),
    ("protocol", 0),
    ("forks", 3),
)
ALL = [(family, seed) for family in hostile.FAMILIES for seed in hostile.SEEDS]
each_kernel = pytest.mark.parametrize(
    ("family", "seed"),
    [
        pytest.param(*each, id=hostile.kernel_name(*each), marks=[] if each in EVERY_TIME else pytest.mark.slow)
        for each in ALL
    ],
)


@pytest.fixture(scope="module")
def simulator():
    """The simulator of a session that goes through all of this."""
    os.environ[MARK] = "1"
    simulator = Simulator(harness.runtime())
    yield simulator
    simulator.close()
    del os.environ[MARK]
    assert descendants() == set()


def descendants() -> set[int]:
    """The processes that came from the simulator, also those whose parent has ended: they inherit the mark."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{MARK}=1\0".encode() in (process / "environ").read_bytes():
                found.add(int(process.name))
    return found - {os.getpid()}


def alone_is(worker: int | None) -> bool:
    """Whether this worker is all that there is, as soon as killed ones had the time to end."""
    deadline = time.monotonic() + 5
    while descendants() != {worker} and time.monotonic() < deadline:
        time.sleep(0.01)
    return descendants() == {worker}


def descriptors() -> int:
    """How many this process has; what others left may be collected at any time, so there can be fewer later."""
    return len(os.listdir("/proc/self/fd"))


def adds(simulator: Simulator) -> bool:
    x, y = np.random.default_rng().standard_normal((2, 1000), np.float32)
    z = np.full(1000, np.nan, np.float32)
    run(simulator, VECTOR_ADD, "vector_add", [np.int32(1000), x, y, z], grid=8, block=128)
    return bool((z == x + y).all())


@each_kernel
def test_the_caller_lives_and_the_next_kernel_is_right(simulator, family, seed):
    library(hostile.source(family))
    assert adds(simulator)
    worker = simulator.worker_pid
    before = descriptors()
    assert alone_is(worker)
    x = np.random.default_rng().standard_normal(N, np.float32)
    y = np.zeros(N, np.float32)
    given = x.copy()
    begin = time.monotonic()
    try:
        run(
            simulator,
            hostile.source(family),
            hostile.kernel_name(family, seed),
            [np.int32(N), x, y],
            grid=2,
            block=64,
            shared_bytes=256,
            os_threads=2,
            timeout_s=TIMEOUT_S,
            edited=True,
        )
    except KernelError as error:
        assert len(error.message) < 400 and "\n" not in error.message
        assert (x == given).all() and not y.any()
        assert descriptors() <= before
        assert alone_is(worker)
    else:
        assert not hostile.FAMILIES[family].fails
    assert time.monotonic() - begin < BOUND_S
    assert adds(simulator)
    assert simulator.worker_pid == worker
    assert descriptors() <= before
    assert alone_is(worker)
