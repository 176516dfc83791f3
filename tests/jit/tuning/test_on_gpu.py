# SPDX-License-Identifier: Apache-2.0
"""Tuning where a GPU is: the first half on one made of Python, the second, marked `gpu`, on a real one."""

import dataclasses
import json
import threading
import time
import warnings

import pytest
import torch

import tilekit
from tests.caches import in_force, new_cache
from tests.jit.tuning.gpus import REFUSED, AtOnce, Call, doubling, gpu
from tests.kernels.matmul import scripts
from tests.runtime.fake_gpu import CUresult
from tests.runtime.test_gpu_child import SCALE
from tilekit import config, float32, int32, option
from tilekit.diag import ArgumentError, KernelError
from tilekit.jit.tuning import elsewhere, measure, session
from tilekit.jit.tuning.space import State
from tilekit.runtime import gpu_child
from tilekit.runtime.gpu_child import GpuChild
from tilekit.utils import cdiv

__all__ = ["gpu"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    children: dict[int, GpuChild] = {}
    monkeypatch.setattr(gpu_child, "child", lambda index: children.setdefault(index, GpuChild(index)))
    with in_force(new_cache(tmp_path / "cache")) as folder:
        option.autotune(True)
        option.bench_repeat(10)
        option.bench_warmup(2)
        yield folder
    for child in children.values():
        child.close()


@pytest.fixture
def call(gpu) -> Call:
    return Call(gpu, 1000)


def states(found) -> dict[int, State]:
    return {row.schedule["block"]: row.state for row in found.rows}


def test_the_first_call_tunes_and_runs_the_fastest(call):
    handle = doubling(256, 64, 129)
    handle(*call.arguments)
    assert handle.last.schedule == {"block": 64} and call.is_right()
    found = handle.schedules
    assert found.best is not None and found.best.median == pytest.approx(0.64e-3)
    assert found.best.registers == 32 + 64 % 7
    assert states(found) == {256: State.MEASURED, 64: State.MEASURED, 129: State.HOPELESS}


def test_no_tensor_changes_while_schedules_are_measured(call):
    before = call.memory.pages[:]
    doubling(64, 128).tune(*call.arguments)
    assert call.memory.pages[:] == before


def test_a_schedule_that_crashes_hangs_or_strays_costs_a_row(call, monkeypatch):
    monkeypatch.setattr(measure, "RUN_TIMEOUT_S", 3.0)
    handle = doubling(77, 88, 99, 300, REFUSED, 128)
    handle(*call.arguments)
    assert handle.last.schedule == {"block": 128} and call.is_right()
    found = handle.schedules
    assert states(found) == {
        77: State.BROKEN,
        88: State.BROKEN,
        99: State.BROKEN,
        300: State.FAILED,
        REFUSED: State.FAILED,
        128: State.MEASURED,
    }
    errors = {row.schedule["block"]: row.error for row in found.rows}
    assert "it faulted on cuda:0" in errors[77]
    assert "it still ran after 3 s" in errors[88]
    assert "writes outside of x" in errors[99]
    assert errors[REFUSED] == "too many registers"
    where = next(row.where for row in found.rows if row.schedule["block"] == 300)
    assert where is not None and "gpus.py:" in where and "not so many" in str(found)


def test_a_hopeless_schedule_runs_a_few_times(call):
    found = doubling(64, 1000).tune(*call.arguments)
    assert states(found)[1000] is State.HOPELESS
    (hopeless,) = (row for row in found.rows if row.schedule["block"] == 1000)
    assert hopeless.median == pytest.approx(10e-3)


def test_those_that_lie_close_together_are_measured_again(call):
    handle = doubling(64, 65, 128)
    found = handle.tune(*call.arguments)
    (space,) = (space for instance in handle.jit_instances.values() for space in instance.spaces)
    ((_, results),) = space.measured.items()
    runs = [len(results[number].seconds) for number in range(3)]
    assert runs[0] == runs[1] == 3 * config.resolve().bench_repeat and runs[2] == config.resolve().bench_repeat
    assert found.best is not None and found.best.schedule == {"block": 64}


def test_another_size_is_tuned_for_itself_and_the_same_one_is_not(call, gpu, monkeypatch):
    handle = doubling(64, 128)
    tuned = []
    original = session.tune
    monkeypatch.setattr(
        session, "tune", lambda space, key, *rest, **more: (tuned.append(key), original(space, key, *rest, **more))[1]
    )
    other = Call(gpu, 500)
    for each in (call, call, other, call):
        handle(*each.arguments)
    assert tuned == [(("n", 1000),), (("n", 500),)]


def test_another_process_finds_what_was_tuned(call, cache, monkeypatch):
    doubling(64, 128)(*call.arguments)
    table = json.loads(next(cache.rglob("dispatch_table.json")).read_text())
    (entry,) = table["entries"]
    assert entry["key"] == {"n": 1000} and entry["schedule"] == {"block": 64} and entry["unit"] == "s"
    assert table["holds for"]["gpu"] == "Fake 0, 132 multiprocessors"
    monkeypatch.setattr(session, "tune", lambda *_, **__: pytest.fail("it was tuned again"))
    again = doubling(64, 128)
    again(*call.arguments)
    assert again.last.schedule == {"block": 64}


def test_what_was_found_on_another_gpu_counts_for_nothing(call, cache):
    doubling(64, 128)(*call.arguments)
    file = next(cache.rglob("dispatch_table.json"))
    table = json.loads(file.read_text())
    table["entries"][0]["schedule"] = {"block": 128}
    for gpu_name, chosen in (("another", 64), ("*", 128)):
        file.write_text(json.dumps({**table, "holds for": {**table["holds for"], "gpu": gpu_name}}))
        handle = doubling(64, 128)
        handle(*call.arguments)
        assert handle.last.schedule == {"block": chosen}


def test_where_copies_do_not_fit_a_call_says_so_and_goes_on(call, monkeypatch):
    monkeypatch.setenv("FAKE_GPU", json.dumps({"cuMemAlloc": CUresult.CUDA_ERROR_OUT_OF_MEMORY.value}))
    monkeypatch.setattr("tilekit.jit.held.nbytes", lambda arguments: 3_200_000_000)
    handle = doubling(128, 64)
    with pytest.warns(UserWarning, match=r"copies of its arguments, 3.2 GB, do not fit .* the first schedule that"):
        handle(*call.arguments)
    assert handle.last.schedule == {"block": 128} and call.is_right()
    with pytest.raises(ArgumentError) as caught:
        handle.tune(*call.arguments)
    assert caught.value.code == "TK636"


def test_if_every_schedule_fails_to_run_the_first_says_why(call):
    with pytest.raises(KernelError) as caught:
        doubling(77, 99)(*call.arguments)
    assert "it faulted on cuda:0" in caught.value.message
    assert "all 2 schedules that compile fail to run" in str(caught.value)


def test_one_schedule_is_not_tuned(call, monkeypatch):
    monkeypatch.setattr(session, "tune", lambda *_, **__: pytest.fail("there is nothing to choose"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        handle = doubling(128)
        handle(*call.arguments)
    assert call.is_right()


def test_an_interrupt_keeps_what_is_done(call, monkeypatch):
    handle = doubling(128, 64, 256)
    original = measure._time
    seen = []

    def interrupted(space, candidate, *rest):
        seen.append(candidate.number)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return original(space, candidate, *rest)

    monkeypatch.setattr(measure, "_time", interrupted)
    with pytest.raises(KeyboardInterrupt):
        handle.tune(*call.arguments)
    handle(*call.arguments)
    assert handle.last.schedule == handle.schedules.best.schedule
    assert len(seen) == 2, "the call uses the best of what is done"
    found = handle.tune(*call.arguments)
    assert found.best.schedule == {"block": 64}
    assert seen[0] not in seen[1:4], "what was measured is not measured again before the last rounds"


def test_a_budget_ends_a_tuning(call):
    found = doubling(64, 128, 256).tune(*call.arguments, budget=0.0)
    assert found.best is None and State.MEASURED not in states(found).values()


def test_who_does_not_want_to_wait_says_so(call, monkeypatch):
    monkeypatch.setattr(session, "tune", lambda *_, **__: pytest.fail("it was tuned"))
    option.autotune(False)
    handle = doubling(128, 64)
    handle(*call.arguments)
    assert handle.last.schedule == {"block": 128} and call.is_right()


# ---------------------------------------------------------------------------------------------------- an executor


@pytest.fixture
def away(call, monkeypatch, tmp_path):
    """An executor whose processes have this GPU too; gives the numbers of the candidates that are measured here."""
    made, here = [], []

    def make(arguments, index):
        made.append(arguments)
        return list(Call(call.gpu, 1000).arguments)

    monkeypatch.setattr(elsewhere, "make", make)
    monkeypatch.setattr(elsewhere.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(
        elsewhere, "_like", lambda value: value if isinstance(value, int) else elsewhere.Like("float32", (1000,), (1,))
    )
    original = measure._time
    monkeypatch.setattr(
        measure, "_time", lambda space, each, *rest: (here.append(each.number), original(space, each, *rest))[1]
    )
    return made, here


def test_an_executor_with_gpus_times_what_it_compiles_and_the_best_five_are_timed_here(call, away):
    made, here = away
    handle = doubling(64, 128, 200, 310, 301, 302, 303, 77)
    found = handle.tune(*call.arguments, executor=AtOnce())
    like = elsewhere.Like("float32", (1000,), (1,))
    assert made == [(1000, like, like)] * 8
    assert found.best.schedule == {"block": 64} and states(found)[77] is State.BROKEN
    assert sorted(set(here)) == [0, 1, 2, 4, 5], "the best five"
    here.clear()
    handle(*call.arguments)
    assert handle.last.schedule == {"block": 64} and call.is_right() and here == []


def test_what_was_timed_on_another_model_is_timed_again(call, away, monkeypatch):
    _, here = away
    run = elsewhere.run
    monkeypatch.setattr(
        elsewhere, "run", lambda *given: dataclasses.replace(run(*given), gpu="Another, 3 multiprocessors")
    )
    doubling(64, 128).tune(*call.arguments, executor=AtOnce())
    assert sorted(set(here)) == [0, 1]


def test_two_who_time_on_one_gpu_take_turns(gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(elsewhere.tempfile, "gettempdir", lambda: str(tmp_path))
    order = []

    def hold(name):
        with elsewhere._gpu_for(SCALE) as there:
            assert there is not None
            order.append(f"{name} begins")
            time.sleep(0.1)
            order.append(f"{name} ends")

    threads = [threading.Thread(target=hold, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [text.split()[1] for text in order] == ["begins", "ends"] * 2


def test_who_has_no_gpu_only_compiles():
    with elsewhere._gpu_for(SCALE) as there:
        assert there is None or there.capability[0] == 9


# ------------------------------------------------------------------------------------------------- on a real GPU


@tilekit.autotune("way", ["plain", "wild", "endless", "staged"])
class Doubles(tilekit.Script):
    """`y = x + x` in two good ways, in one that faults, and in one that does not end."""

    def __init__(self, way: str):
        super().__init__()
        self.way = way

    def __call__(self, n: int32, x: ~float32, y: ~float32):
        self.attrs.blocks = [cdiv(n, 128)]
        self.attrs.warps = 4
        start = self.blockIdx.x * 128
        gx = self.global_view(x, dtype=float32, shape=[n])
        gy = self.global_view(y, dtype=float32, shape=[n])
        tile = self.load_global(gx, offsets=[start], shape=[128])
        if self.way == "endless":
            i: int32 = 0
            while i < n:
                self.store_global(gy, tile, offsets=[start])
                i = 0
        if self.way == "wild":
            far = self.global_view(y, dtype=float32, shape=[n * 1000000])
            self.store_global(far, tile, offsets=[n * 900000])
        if self.way == "staged":
            staged = self.shared_tensor(dtype=float32, shape=[128])
            self.store_shared(staged, tile)
            self.sync()
            tile = self.load_shared(staged)
        self.store_global(gy, tile + tile, offsets=[start])


@pytest.mark.gpu
class TestOnGpu:
    def test_the_first_call_tunes_while_bad_schedules_cost_rows(self, cache, monkeypatch) -> None:
        monkeypatch.setattr(measure, "RUN_TIMEOUT_S", 3.0)
        n = 1000
        x, y, bystander = (
            torch.randn(n, device="cuda"),
            torch.zeros(n, device="cuda"),
            torch.ones(1 << 20, device="cuda"),
        )
        handle = Doubles()
        handle(n, x, y)
        print(handle.schedules)
        assert torch.equal(y, x + x) and bystander.sum().item() == 1 << 20
        by_way = {row.schedule["way"]: row.state for row in handle.schedules.rows}
        assert by_way["wild"] is by_way["endless"] is State.BROKEN
        assert handle.last.schedule["way"] in ("plain", "staged")
        (entry,) = json.loads(next(cache.rglob("dispatch_table.json")).read_text())["entries"]
        assert entry["schedule"] == handle.last.schedule and entry["unit"] == "s" and entry["cost"] > 0

    def test_the_chosen_schedule_is_about_as_fast_as_the_fastest(self) -> None:
        m, n, k = 2048, 2048, 1024
        a, b = torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half()
        c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.half)
        handle = scripts.pipelined()
        begin = time.monotonic()
        found = handle.tune(m, n, k, a, b, c)
        print(f"tuned in {time.monotonic() - begin:.1f} s\n{found}")
        (space,) = (space for instance in handle.jit_instances.values() for space in instance.spaces)
        again = measure.measure_on(space, (m, a, b, c))
        medians = {each.number: again(each, None).median for each in space.runnable}
        best = min(median for median in medians.values() if median is not None)
        assert medians[found.best.number] <= 1.03 * best
        handle(m, n, k, a, b, c)
        assert handle.last.schedule == found.best.schedule
        error = (c.float() - a.float() @ b.float()).norm() / c.float().norm()
        assert error < 1e-3

    def test_likes_of_arguments_are_made_from_shape_dtype_and_seed(self) -> None:
        given = (7, torch.randn(64, 32, device="cuda").half().t(), torch.arange(10, device="cuda"))
        trial = elsewhere.trial_of(given, 5, 1, 3.0)
        first, second = elsewhere.make(trial.arguments, 0), elsewhere.make(trial.arguments, 0)
        assert first[0] == 7
        assert first[1].shape == (32, 64) and first[1].stride() == given[1].stride() and first[1].dtype is torch.half
        assert 0.8 < first[1].float().std().item() < 1.2
        assert first[2].dtype is torch.int64 and set(first[2].tolist()) <= {0, 1}
        assert all(torch.equal(a, b) for a, b in zip(first[1:], second[1:], strict=True))
