# SPDX-License-Identifier: Apache-2.0
"""Blocks that wait for each other end if they can, however few workers there are, and are reported if they cannot."""

import time

import numpy as np
import pytest

from tests.cpusim.harness import line_of, run
from tests.cpusim.test_reports import fails, kernel  # noqa: F401  # a fixture
from tests.include import sources


@pytest.mark.parametrize("os_threads", [1, 2])
@pytest.mark.parametrize("seed", [0, 5])
def test_blocks_may_wait_for_blocks_that_come_later(simulator, os_threads, seed):
    turn = np.arange(40, dtype=np.int32)[::-1].copy()
    x = np.zeros(32, np.uint32)
    semaphore = np.zeros(1, np.int32)
    begin = time.monotonic()
    run(
        simulator,
        sources.semaphores(),
        "turns",
        [turn, semaphore, x],
        grid=40,
        os_threads=os_threads,
        seed=seed,
        timeout_s=20,
    )
    assert semaphore[0] == 40
    assert time.monotonic() - begin < 10


def test_a_launch_after_one_with_many_workers_asks_for_few_again(simulator):
    test_blocks_may_wait_for_blocks_that_come_later(simulator, 1, 0)
    x = np.zeros(32, np.uint32)
    turn = np.arange(300, dtype=np.int32)
    run(simulator, sources.semaphores(), "turns", [turn, np.zeros(1, np.int32), x], grid=300, os_threads=1)
    expected = np.uint32(0)
    for block in range(300):
        expected = np.uint32((int(expected) * 3 + block) % 2**32)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("grid", [1, 5])
def test_a_value_that_nobody_gives_is_a_deadlock(fails, grid):  # noqa: F811
    source = kernel("  tk::lock_semaphore((int32_t *)x, n);")
    begin = time.monotonic()
    error = fails(source, np.int32(7), np.zeros(1, np.float32), grid=grid, block=64, os_threads=2, timeout_s=30)
    assert time.monotonic() - begin < 10
    line = line_of(source, "lock_semaphore")
    assert (error.kind, error.data["line"]) == ("deadlock", line)
    assert error.data["block"] == (0, 0, 0)
    notes = sorted((text for text, _ in error.data["notes"]), key=lambda text: text.startswith("block"))
    others = range(1, grid)
    notes[2:] = sorted(notes[2:])
    assert notes[:2] == [
        "thread 0 waits for element 0 of 'arg1' to become 7, and it is 0",
        "threads 1-63 wait in __syncthreads(), where 63 of 64 threads are",
    ]
    assert notes[2:] == [f"block ({i}, 0, 0) waits for element 0 of 'arg1' to become 7, and it is 0" for i in others]
    assert (error.data["tensor"], error.data["byte_offset"]) == ("arg1", 0)


def test_blocks_that_do_not_fit_at_a_time_are_said_to_be_missing(fails):  # noqa: F811
    """1024 threads a block: some thirty blocks is all that there are stacks for."""
    source = kernel("  if (blockIdx.x < gridDim.x - 1) tk::lock_semaphore((int32_t *)x, 1);\n  else x[0] = 1;")
    error = fails(source, np.int32(0), np.zeros(1, np.float32), grid=100, block=1024, timeout_s=30)
    assert error.kind == "deadlock"
    begun = 28000 // 1024
    assert [text for text, _ in error.data["notes"][-2:]] == [
        f"{begun - 1 - 4} more blocks wait as well",
        f"{100 - begun} blocks have not begun: no more than {begun} fit into the simulator at a time",
    ]


def test_one_other_block_is_spoken_of_as_one(fails):  # noqa: F811
    source = kernel("  tk::lock_semaphore((int32_t *)x, n);")
    error = fails(source, np.int32(7), np.zeros(1, np.float32), grid=6, block=64, os_threads=2, timeout_s=30)
    assert error.data["notes"][-1][0] == "another block waits as well"


@pytest.mark.parametrize("seed", range(4))
def test_the_block_that_the_others_wait_for_is_told(fails, seed):  # noqa: F811
    """Block 2 holds the first semaphore and waits for the second one, which nobody gives."""
    body = (
        "  int32_t *turn = (int32_t *)x;\n  if (blockIdx.x == 2) {\n    tk::lock_semaphore(turn + 3, 0);\n"
        "    tk::lock_semaphore(turn + 4, 1);\n  }\n  else tk::lock_semaphore(turn + 3, 1);"
    )
    error = fails(kernel(body), np.int32(0), np.zeros(8, np.float32), grid=4, os_threads=2, seed=seed, timeout_s=30)
    assert (error.kind, error.data["block"]) == ("deadlock", (2, 0, 0))
    assert error.data["line"] == line_of(kernel(body), "turn + 4")
    told = [text for text, line in error.data["notes"] if line == line_of(kernel(body), "turn + 3, 1")]
    assert sorted(told) == [
        f"block ({i}, 0, 0) waits for element 3 of 'arg1' to become 1, and it is 0" for i in (0, 1, 3)
    ]


def test_a_ring_of_blocks_is_told_at_one_of_them(fails):  # noqa: F811
    body = (
        "  int32_t *turn = (int32_t *)x;\n  tk::lock_semaphore(turn + blockIdx.x, 0);\n"
        "  tk::release_semaphore(turn + 4, 9);\n  tk::lock_semaphore(turn + (blockIdx.x + 1) % 3, 1);"
    )
    error = fails(kernel(body), np.int32(0), np.zeros(8, np.float32), grid=3, os_threads=2, timeout_s=30)
    assert (error.kind, error.data["line"]) == ("deadlock", line_of(kernel(body), "% 3"))


def test_a_semaphore_that_was_released_is_held_by_nobody(fails):  # noqa: F811
    body = (
        "  int32_t *turn = (int32_t *)x;\n  if (blockIdx.x == 1) {\n    tk::lock_semaphore(turn, 0);\n"
        "    tk::release_semaphore(turn, 0);\n    tk::lock_semaphore(turn + 1, 1);\n  }\n"
        "  else tk::lock_semaphore(turn, 1);"
    )
    error = fails(kernel(body), np.int32(0), np.zeros(8, np.float32), grid=2, os_threads=2, timeout_s=30)
    assert (error.data["block"], error.data["line"]) == ((0, 0, 0), line_of(kernel(body), "else"))


def test_a_block_that_waits_can_be_stopped(fails):  # noqa: F811
    """Another block goes on for ever, so nothing is certain but the time."""
    source = kernel(
        "  volatile int32_t go = 1;\n  if (blockIdx.x == 0) tk::lock_semaphore((int32_t *)x, 1);\n  while (go) {}"
    )
    assert fails(source, np.int32(0), np.zeros(1, np.float32), grid=2, os_threads=2, timeout_s=0.5).kind == "timeout"
