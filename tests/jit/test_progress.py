# SPDX-License-Identifier: Apache-2.0
"""A long launch on the CPU says how far it is, and a short one says nothing."""

import io
import sys

import pytest
import torch

import tilekit as tilus
from tilekit import float32, int32
from tilekit.cpusim import client
from tilekit.jit import observer, progress
from tilekit.jit.progress import Launching, LaunchProgress
from tilekit.runtime.launch import LaunchStats


class Told:
    """An observer that keeps what it is told of running launches."""

    def __init__(self):
        self.all: list[LaunchProgress | None] = []

    def compiling(self, script, stage): ...

    def compiled(self, kernel): ...

    def launched(self, kernel): ...

    def running(self, now):
        self.all.append(now)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def told():
    listener = Told()
    with observer.observing(listener):
        yield listener


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test sets: `clock[0] = 3.0`."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_a_launch_tells_after_a_second_and_in_the_end(told, clock):
    with Launching("Slow", 60.0) as launching:
        clock[0] = 0.9
        launching(3, 100)
        assert told.all == []
        clock[0] = 2.0
        launching(20, 100)
        (now,) = told.all
        assert (now.share, now.left) == (0.2, 8.0)
        assert now.words == "Slow: 20 of 100 blocks, about 8 s left"
        assert str(now) == "━" * 4 + "╌" * 20 + " Slow: 20 of 100 blocks, about 8 s left"
    assert told.all[-1] is None


def test_a_launch_that_ends_soon_tells_nothing(told, clock):
    with Launching("Quick", 60.0) as launching:
        clock[0] = 0.5
        launching(1, 2)
    assert told.all == []


def test_what_an_earlier_launch_took_is_a_guess_at_once(told, clock):
    before = LaunchStats(2.0, counters={"blocks": 100})
    with Launching("Slow", 60.0, before) as launching:
        clock[0] = 0.25
        launching(0, 1000)
    first, last = told.all
    assert (first.guess, first.left, last) == (20.0, 19.75, None)
    assert first.words == "Slow: 0 of 1,000 blocks, about 20 s left"
    told.all.clear()
    with Launching("Slow", 60.0, before) as launching:
        launching(0, 50)
    assert told.all == [], "one second is not long"


def test_a_launch_that_will_be_stopped_says_so():
    words = LaunchProgress("Slow", 10, 1000, 1.0, None, 60.0).words
    assert words == (
        "Slow: 10 of 1,000 blocks, about 99 s left: stopped at 60 s unless tilekit.option.cpu.timeout(…) allows more"
    )
    assert "stopped" not in LaunchProgress("Slow", 10, 1000, 1.0, None, 0.0).words
    assert LaunchProgress("Slow", 1, 1000, 1.0).words.endswith("about 17 min left")
    assert LaunchProgress("One", 0, 1, 5.0).words == "One: 0 of 1 block, 5 s"


def test_a_terminal_shows_a_line_that_goes_when_the_launch_ends(clock, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with Launching("Slow", 60.0) as launching:
        clock[0] = 2.0
        launching(50, 100)
    line, end = screen.getvalue().split("\r\x1b[2K")[1:]
    assert line.endswith("Slow: 50 of 100 blocks, about 2 s left") and "\n" not in line and end == ""


class Slow(tilus.Script):
    """Does nothing, slowly; a block whose number is `wall` traps."""

    def __call__(self, m: int32, wall: int32, x_ptr: ~float32):
        self.attrs.blocks = [m]
        self.attrs.warps = 4
        gx = self.global_view(x_ptr, dtype=float32, shape=[m, 128])
        acc = self.load_global(gx, offsets=[self.blockIdx.x, 0], shape=[1, 128])
        for _ in range(40):
            acc += self.sum(acc, dim=1, keepdim=True) * 1e-9
        if self.blockIdx.x == wall:
            acc = self.load_global(gx, offsets=[m * 1000000, 0], shape=[1, 128])
        self.store_global(gx, acc, offsets=[self.blockIdx.x, 0])


def test_the_blocks_of_a_launch_are_counted_while_it_runs(told, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(client, "TICK_S", 0.005)
    handle, x = Slow(), torch.ones(128, 128)
    handle(128, -1, x)
    *during, end = told.all
    assert end is None and during
    counts = [now.finished for now in during]
    assert counts == sorted(counts) and any(0 < count < 128 for count in counts)
    assert {now.total for now in during} == {128} and {now.script for now in during} == {"Slow"}
    told.all.clear()
    handle.check(blocks=100)
    assert {now.total for now in told.all if now is not None} == {100}
