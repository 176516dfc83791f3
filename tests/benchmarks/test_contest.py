# SPDX-License-Identifier: Apache-2.0
"""The plumbing of the contests with peers, without a GPU: fake programs, and a clock that only they move."""

import json
import sys

import pytest

from benchmarks import contest, peers, report
from benchmarks.contest import Candidate, Case, DeviceLost, Plan, State, Wanted
from tilekit.runtime.benchmark import Batch


class World:
    """Programs that take as long as they say, an output that they write, and a device that can be lost."""

    least = 7

    def __init__(self):
        self.now = 0.0
        self.output = None
        self.is_lost = False
        self.order = []

    def batch(self, launch, calls):
        found = []
        for _ in range(calls):
            begin = self.now
            launch()
            found.append(self.now - begin)
        return Batch(tuple(found))

    def wait(self):
        if self.is_lost:
            raise RuntimeError("an illegal memory access was encountered")

    def clock(self):
        return self.now

    def program(self, peer, label, seconds, *, writes=1.0, builds=0.0, breaks=None):
        def launch():
            self.now += seconds
            self.output = writes
            self.order.append(f"{peer} {label}")
            if breaks == "device":
                self.is_lost = True
                raise RuntimeError("launch failed")

        def build():
            self.now += builds
            if breaks == "build":
                raise ValueError("no such instruction\n  on this target")
            return launch

        return Candidate(peer, label, build)

    def case(self, *candidates, **more):
        def poison():
            self.output = float("nan")

        return Case(candidates, poison, lambda result: abs(self.output - 1), 1e-3, 2e9, "GB/s", **more)


@pytest.fixture
def world():
    return World()


def measured(world, path, *candidates, seconds=1e9, **more):
    state = State(path / "state.json")
    contest.hold([Plan("case", lambda: world.case(*candidates, **more))], state, world, seconds, world.clock)
    return state.cases["case"]


def test_every_schedule_is_tried_and_the_best_of_each_peer_is_timed_in_turn(world, tmp_path):
    slow, fast = world.program("tilekit", "slow", 4e-3), world.program("tilekit", "fast", 2e-3)
    case = measured(
        world, tmp_path, slow, fast, world.program("torch", "", 1e-3), wanted=Wanted(peer="torch", part=0.4)
    )
    rows = case["rows"]
    assert rows["tilekit slow"]["glance_ms"] == 4 and "rate" not in rows["tilekit slow"]
    assert rows["tilekit fast"]["ms"] == rows["tilekit fast"]["low"] == 2
    assert rows["tilekit fast"]["rate"] == 1000 and rows["torch"]["rate"] == 2000
    assert case["reached"] is True
    last = world.order[-60:]
    assert last == ["tilekit fast"] * 30 + ["torch "] * 30
    text = contest.table("case", case)
    assert "0.500 of the best peer" in text and "wanted: 0.4 x torch -> True" in text


def test_a_wrong_program_is_a_row_and_is_not_timed(world, tmp_path):
    wrong = world.program("tilekit", "wrong", 1e-3, writes=2.0)
    silent = Candidate("tilekit", "writes nothing", lambda: lambda: None)
    case = measured(world, tmp_path, wrong, silent, world.program("torch", "", 1e-3))
    assert case["rows"]["tilekit wrong"]["failed"].startswith("wrong: its relative error is 1")
    assert "nan" in case["rows"]["tilekit writes nothing"]["failed"]
    assert "ms" not in case["rows"]["tilekit wrong"]
    assert case["done"]


def test_a_program_that_does_not_compile_is_a_row(world, tmp_path):
    case = measured(
        world, tmp_path, world.program("triton", "x", 1, breaks="build"), world.program("tilekit", "", 1e-3)
    )
    assert case["rows"]["triton x"]["failed"] == "ValueError: no such instruction / on this target"
    assert "failed (1): triton x: ValueError" in contest.table("case", case)


def test_candidates_behind_the_deadline_are_named(world, tmp_path):
    programs = [world.program("tilekit", str(i), 1e-3, builds=10) for i in range(4)]
    rows = measured(world, tmp_path, *programs, seconds=15)["rows"]
    assert ["failed" in row for row in rows.values()] == [False, False, True, True]
    assert rows["tilekit 3"]["failed"] == "not tried: the time was up"


def test_a_case_that_follows_another_tries_its_best(world, tmp_path):
    def case(**more):
        return world.case(*(world.program("tilekit", str(ms), ms * 1e-3) for ms in (5, 1, 3, 2)), **more)

    state = State(tmp_path / "state.json")
    plans = [Plan("first", case), Plan("second", lambda: case(follows="first"))]
    contest.hold(plans, state, world, 1e9, world.clock)
    assert set(state.cases["second"]["rows"]) == {"tilekit 1", "tilekit 2"}


def test_inputs_that_cannot_be_made_cost_their_case_alone(world, tmp_path):
    def fails():
        raise MemoryError("no room")

    state = State(tmp_path / "state.json")
    plans = [Plan("large", fails), Plan("small", lambda: world.case(world.program("tilekit", "", 1e-3)))]
    contest.hold(plans, state, world, 1e9, world.clock)
    assert state.cases["large"]["failed"] == "MemoryError: no room"
    assert "MemoryError" in contest.table("large", state.cases["large"])
    assert state.cases["small"]["rows"]["tilekit"]["rate"] > 0


def test_a_lost_device_ends_the_process_and_the_next_one_leaves_the_culprit_out(world, tmp_path):
    def plans():
        bad = world.program("tilekit", "bad", 1e-3, breaks="device")
        return [Plan("case", lambda: world.case(bad, world.program("tilekit", "good", 1e-3)))]

    state = State(tmp_path / "state.json")
    with pytest.raises(DeviceLost):
        contest.hold(plans(), state, world, 1e9, world.clock)
    assert peers.blame(State(state.path), "cuda error")
    world.is_lost = False
    again = State(state.path)
    contest.hold(plans(), again, world, 1e9, world.clock)
    rows = again.cases["case"]["rows"]
    assert "the process ended" in rows["tilekit bad"]["failed"]
    assert rows["tilekit good"]["rate"] > 0


# a group's process: it keeps its state, and comes to the end that its name says
_PROCESS = """
import json, os, sys, time
from pathlib import Path
group, path = sys.argv[1], Path(sys.argv[2])
from benchmarks.contest import State
state = State(path)
rows = {"tilekit a": {"peer": "tilekit", "schedule": "a"}}
state.cases["case"] = {"rows": rows, "unit": "GB/s", "wanted": "", "done": False}
if group == "no start": sys.exit("no GPU")
if not state.lost:
    state.run("case", "tilekit a")
    if group == "dies": os.kill(os.getpid(), 9)
    time.sleep(60)
state.cases["case"]["done"] = True
state.running = None
state.keep()
"""


@pytest.mark.parametrize("group", ["dies", "stands still"])
def test_a_process_that_dies_or_stands_still_costs_what_was_running(group, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "GRACE", -4.0)
    path = tmp_path / "state.json"
    cases = peers.supervise(group, path, 6.0, [sys.executable, "-c", _PROCESS])
    assert State(path).lost == [["case", "tilekit a"]]
    assert cases["case"]["done"] is (group == "dies") or State(path).running is None


def test_a_group_whose_process_does_not_start_is_tried_once(tmp_path):
    cases = peers.supervise("no start", tmp_path / "state.json", 20.0, [sys.executable, "-c", _PROCESS])
    assert "no GPU" in cases["before the first case"]["failed"]
    assert "no GPU" in contest.table("matmul", cases["before the first case"])


def test_groups_are_written_one_after_another(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    row = {"peer": "tilekit", "schedule": "", "ms": 1.0, "low": 1.0, "high": 1.0, "rate": 5.0}
    done = {"case": {"rows": {"tilekit": row}, "unit": "GB/s", "wanted": "", "done": True}}
    monkeypatch.setattr(peers, "supervise", lambda *args: done)
    assert peers.main(["--only", "matmul"]) == 0
    assert peers.main(["--only", "softmax,attention"]) == 0
    (path,) = tmp_path.iterdir()
    assert set(json.loads(path.read_text())["peers"]) == {"versions", "matmul", "softmax", "attention"}
    assert "5.0 GB/s" in capsys.readouterr().out


def test_an_unknown_group_is_refused():
    with pytest.raises(SystemExit):
        peers.main(["--only", "convolution"])


def test_a_peer_that_is_not_installed_is_one_row_that_says_so(world, tmp_path):
    (candidate,) = peers._theirs("missing", "softmax", "CONFIGS")
    case = measured(world, tmp_path, candidate)
    assert "missing cannot be imported: ModuleNotFoundError" in case["rows"]["missing"]["failed"]


def test_an_error_names_files_without_where_they_lie():
    error = ValueError('no schedule\n\n  File "/home/who/some kernels/rows.py", line 3\n"/" and "a/b" / stay\nmore')
    assert contest.describe(error) == 'ValueError: no schedule / File "rows.py", line 3 / "/" and "a/b" / stay'
