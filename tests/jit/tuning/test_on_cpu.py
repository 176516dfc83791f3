# SPDX-License-Identifier: Apache-2.0
"""Tuning where no GPU is: the simulator's counters rank the schedules, which is an estimate and says so."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import tilekit
from tests.caches import in_force, new_cache
from tilekit import float32, int32
from tilekit.diag import ArgumentError, LanguageError
from tilekit.jit import observer, progress
from tilekit.jit.progress import TuningProgress
from tilekit.jit.tuning import measure, session, space
from tilekit.jit.tuning.space import State
from tilekit.utils import cdiv


@tilekit.autotune("block", [300, 32, 512])
@tilekit.autotune("passes", [4, 1])
class Staged(tilekit.Script):
    """`y = x`, by way of shared memory, once or several times."""

    def __init__(self, block: int, passes: int):
        super().__init__()
        self.block = block
        self.passes = passes

    def __call__(self, n: int32, x: ~float32, y: ~float32):
        self.attrs.blocks = [cdiv(n, self.block)]
        self.attrs.warps = 1
        self.static_assert(self.block != 300, "not so many")
        start = self.blockIdx.x * self.block
        gx = self.global_view(x, dtype=float32, shape=[n])
        gy = self.global_view(y, dtype=float32, shape=[n])
        tile = self.load_global(gx, offsets=[start], shape=[self.block])
        staged = self.shared_tensor(dtype=float32, shape=[self.block])
        for _ in self.range(self.passes):
            self.store_shared(staged, tile)
            self.sync()
            tile = self.load_shared(staged)
            self.sync()
        self.store_global(gy, tile, offsets=[start])


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with in_force(new_cache(tmp_path_factory.mktemp("tuning") / "cache")) as folder:
        yield folder


@pytest.fixture
def handle():
    """A handle that knows nothing yet; the cache knows its programs from the second test on."""
    Staged.__dict__.get("_handles", {}).clear()
    return Staged()


def arguments(n: int = 1000):
    return n, torch.randn(n), torch.zeros(n)


class Told:
    def __init__(self):
        self.all: list[TuningProgress | None] = []

    def compiling(self, script, stage): ...

    def compiled(self, kernel): ...

    def launched(self, kernel): ...

    def running(self, now):
        self.all.append(now)


def test_a_call_takes_the_first_schedule_that_compiles_until_somebody_tunes(handle):
    n, x, y = arguments()
    handle(n, x, y)
    assert handle.last.schedule == {"block": 32, "passes": 4} and torch.equal(x, y)
    y.zero_()
    found = handle.tune(n, x, y)
    assert y.count_nonzero() == 0, "tuning changes no tensor"
    handle(n, x, y)
    assert torch.equal(x, y)
    assert handle.last.schedule == found.best.schedule
    assert found.best.schedule["passes"] == 1, "less work is the better estimate"
    other = 999, *(tensor[:999] for tensor in (x, y))
    handle(*other)
    assert handle.last.schedule == {"block": 32, "passes": 4}, "another size was not tuned"


def test_the_result_says_that_it_is_an_estimate(handle, cache):
    n, x, y = arguments()
    found = handle.tune(n, x, y)
    assert found.is_estimate and found.best.median is None and found.best.estimate > 0
    assert "an estimate by the simulator's counters" in str(found) and "estimate" in found._repr_html_()
    assert {row.state for row in found.rows} == {State.FAILED, State.ESTIMATED}
    table = json.loads(next(cache.rglob("dispatch_table.json")).read_text())
    assert table["holds for"]["device"] == "cpu" and table["entries"][0]["unit"] == "cycles"


def test_a_failed_schedule_is_a_row_with_its_line(handle, cache):
    found = handle.tune(*arguments())
    failed = [row for row in found.rows if row.schedule["block"] == 300]
    assert len(failed) == 2
    for row in failed:
        assert row.state is State.FAILED and row.error == "static assertion failed: not so many"
        line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "static_assert(" in text)
        assert row.where.endswith(f"test_on_cpu.py:{line}")
    assert len(list(cache.rglob("failed/scheduling/*.txt"))) == 2


def test_schedules_is_still_the_list_that_it_was(handle):
    space = [{"block": block, "passes": passes} for block in (300, 32, 512) for passes in (4, 1)]
    assert handle.schedules == space and len(handle.schedules) == 6
    handle.tune(*arguments())
    assert handle.schedules == space
    handle(*arguments())
    assert handle.last.schedules == space and handle.last.schedules.best is not None


def test_a_schedule_that_a_call_compiled_is_no_longer_waiting(handle):
    handle(*arguments(777))  # nobody tunes for it
    rows = {row.number: row for row in handle.schedules.rows}
    assert rows[2].schedule == handle.last.schedule
    assert (rows[2].state, rows[2].shared_bytes) == (State.COMPILED, 128)
    assert rows[4].state is State.WAITING


def test_compile_compiles_every_schedule_and_runs_none(handle):
    vector = tilekit.spec(float32, (1000,))
    handle.compile(1000, vector, vector, device="cpu")
    assert [row.state for row in handle.schedules.rows] == [*[State.FAILED] * 2, *[State.COMPILED] * 4]


def test_a_report_of_each_tuning_key_lies_with_the_script(handle, cache):
    for n in (640, 704):
        handle.tune(*arguments(n))
    (first, second) = (next(cache.rglob(f"latency/n={n}")) for n in (640, 704))
    assert first.parent == second.parent
    assert "static assertion failed" in (first / "report.txt").read_text()
    assert (first / "best" / "module" / "source.cu").is_file()
    text = (first.parents[1] / "dispatch_table.txt").read_text()
    assert "n=640: block=" in text and "n=704: block=" in text


def test_a_new_process_uses_what_was_tuned(handle):
    chosen = handle.tune(*arguments(512)).best.schedule
    Staged._handles.clear()
    again = Staged()
    again(*arguments(512))
    assert again.last.schedule == chosen


def test_results_are_passed_on_in_a_file(handle, tmp_path):
    chosen = handle.tune(*arguments(896)).best.schedule
    assert "n=896: block=" in repr(handle.tuned)
    file = handle.tuned.export(tmp_path / "tuned.json")
    data = json.loads(file.read_text())
    ((entry,),) = [[e for e in table["entries"] if e["key"] == {"n": 896}] for table in data["tables"]]
    assert entry["schedule"] == chosen
    entry["schedule"] = {"block": 512, "passes": 4}
    entry["key"] = {"n": 897}
    file.write_text(json.dumps(data))
    Staged._handles.clear()
    other = Staged()
    n, x, y = arguments(897)
    other(n, x, y)
    assert other.last.schedule == {"block": 32, "passes": 4}
    # its n is not divisible by 16, so it is another specialization
    with_this_name = other.last.schedules.title.split(" ·")[0]
    data["tables"][0]["specialization"] = with_this_name
    file.write_text(json.dumps(data))
    assert other.tuned.load(file) >= 1
    other(n, x, y)
    assert other.last.schedule == {"block": 512, "passes": 4}


def test_a_file_that_does_not_hold_here_is_refused(handle, tmp_path):
    handle.tune(*arguments())
    file = handle.tuned.export(tmp_path / "tuned.json")
    data = json.loads(file.read_text())
    for table in data["tables"]:
        table["holds for"] |= {"device": "cpu", "gpu": "NVIDIA H200, 132 multiprocessors"}
    file.write_text(json.dumps(data))
    with pytest.raises(ArgumentError, match="gpu is NVIDIA H200, 132 multiprocessors there and none"):
        handle.tuned.load(file)
    for table in data["tables"]:
        table["holds for"]["device"] = "cuda"
    file.write_text(json.dumps(data))
    with pytest.raises(ArgumentError, match=r"nothing in .* holds here"):
        handle.tuned.load(file)
    for text, words in (
        ("{", "is no file of tuning results"),
        (json.dumps({**data, "script": "Other"}), "of Other, not"),
    ):
        file.write_text(text)
        with pytest.raises(ArgumentError, match=words) as caught:
            handle.tuned.load(file)
        assert caught.value.code == "TK637"
    with pytest.raises(ArgumentError, match="cannot be read"):
        handle.tuned.load(tmp_path / "nowhere.json")


def test_damage_of_a_table_is_a_miss(handle, cache):
    handle.tune(*arguments(576))
    (file,) = (f for f in cache.rglob("dispatch_table.json") if '"n": 576' in f.read_text())
    whole = file.read_text()
    for damaged in (
        "",
        "[]",
        whole[: len(whole) // 2],
        whole.replace('"cost": ', '"cost": "x", "c": '),
        '{"format": 1}',
    ):
        file.write_text(damaged)
        Staged._handles.clear()
        again = Staged()
        again(*arguments(576))
        assert again.last.schedule == {"block": 32, "passes": 4}


def test_an_interrupt_keeps_what_is_done(handle, monkeypatch):
    original, seen = measure._estimate, []

    def interrupted(space, candidate, values):
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(candidate.number)
        return original(space, candidate, values)

    monkeypatch.setattr(measure, "_estimate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        handle.tune(*arguments(832))
    handle(*arguments(832))
    assert handle.last.schedule == {"block": 32, "passes": 1}
    assert sum(row.state is State.ESTIMATED for row in handle.schedules.rows) == 2
    assert "best of 2 of 4" in repr(handle.tuned)


def test_a_tuning_tells_how_far_it_is(handle, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(session, "_TICK_S", 0.0)
    told = Told()
    with observer.observing(told):
        handle.tune(*arguments(1024))
    *during, end = told.all
    assert end is None
    assert [now.done for now in during] == [1, 2, 3, 4, 5, 6, 6], "and once more how it ended"
    assert during[-1].share == 1.0 and during[0].share < 0.5
    assert during[-1].words.startswith("Staged: 6 of 6 schedules tried, about 0 s left, best ")
    assert during[-1].table.best is not None


def test_a_compile_of_every_schedule_tells_it_too(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE_S", 0.0)
    monkeypatch.setattr(session, "_TICK_S", 0.0)

    class Again(Staged):
        debug_schedule = None

    told, vector = Told(), tilekit.spec(float32, (1000,))
    with observer.observing(told):
        Again().compile(1000, vector, vector, device="cpu")
    assert [now.done for now in told.all[:-1]] == [1, 2, 3, 4, 5, 6, 6] and told.all[-1] is None
    assert told.all[0].words.startswith("Again: 1 of 6 schedules compiled, about ")


@pytest.mark.parametrize(("budget", "seconds"), [("5 min", 300), ("90 s", 90), ("2h", 7200), (12, 12), (" 1.5 ", 1.5)])
def test_a_budget_reads_as_people_write_it(budget, seconds):
    assert session.seconds_of(budget) == seconds


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "two"])
def test_jobs_that_are_no_number_of_processes_are_refused(handle, jobs):
    with pytest.raises(ArgumentError, match=f"jobs is how many processes compile, from 1 on, not {jobs!r}"):
        handle.tune(*arguments(), jobs=jobs)


@pytest.mark.parametrize("budget", ["soon", "5 parsecs", "min", "", -1, float("nan")])
def test_a_budget_that_means_nothing_is_refused(handle, budget):
    with pytest.raises(ArgumentError, match="a budget is seconds"):
        handle.tune(*arguments(), budget=budget)


def test_if_no_schedule_compiles_one_error_names_the_first_and_how_many():
    class Never(Staged):
        debug_schedule = None

        def __call__(self, n: int32, x: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            self.static_assert(self.block < 0, "never")

    with pytest.raises(LanguageError) as caught:
        Never().tune(1, np.zeros(1, np.float32))
    assert "static assertion failed: never" in str(caught.value)
    assert "all 6 schedules fail" in str(caught.value)


def test_a_pinned_schedule_is_the_only_one():
    class Pinned(Staged):
        debug_schedule = dict(block=512, passes=1)  # noqa: C408, RUF012 - as people write it

    n, x, y = arguments()
    found = Pinned().tune(n, x, y)
    assert found == [{"block": 512, "passes": 1}] and found.best is not None


def test_the_states_of_a_measurement():
    assert space.Measurement((1.0, 2.0, 4.0)).median == 2.0
    assert space.Measurement((1.0, 2.0, 4.0)).spread == 0.5
    assert space.Measurement((1.0,), hopeless=True).state is State.HOPELESS
    assert space.Measurement(error=ArgumentError("TK636", "no")).cost is None
