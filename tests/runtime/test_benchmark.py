# SPDX-License-Identifier: Apache-2.0
import pytest
import torch

from tilekit.runtime import benchmark
from tilekit.runtime.benchmark import Batch, ClockTimer, CudaTimer, Timing, measure
from tilekit.runtime.tensors import CPU, Device, DeviceKind


class World:
    """A clock that only programs move."""

    def __init__(self):
        self.now = 0.0
        self.ran = []

    def program(self, name, *seconds):
        """One that takes these seconds in turn, and the last for ever."""
        left = list(seconds)

        def launch():
            self.ran.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return launch

    @property
    def timer(self):
        return ClockTimer(lambda: self.now)


@pytest.fixture
def world():
    return World()


def test_a_batch_has_the_seconds_of_every_call(world):
    assert world.timer.batch(world.program("a", 1.0, 2.0, 4.0), 3) == Batch((1.0, 2.0, 4.0))


def test_a_value_is_the_median_of_the_rounds_medians():
    timing = Timing((Batch((1.0, 900.0, 2.0)), Batch((3.0, 3.0)), Batch((8.0, 9.0, 7.0))))
    assert (timing.median, timing.low, timing.high) == (3.0, 2.0, 8.0)
    assert (timing.best, timing.calls, timing.queued) == (1.0, 8, True)
    assert not Timing((Batch((1.0,)), Batch((1.0,), queued=False))).queued


def test_programs_take_turns_with_as_many_calls_as_each_should_have(world):
    launches = {"a": world.program("a", 1.0), "b": world.program("b", 5.0)}
    found = list(benchmark.in_turn(launches, world.timer, {"a": 2, "b": 1}, rounds=2))
    assert found == [("a", Batch((1.0, 1.0))), ("b", Batch((5.0,)))] * 2
    assert world.ran == ["a", "a", "b"] * 2


def test_a_program_that_fails_is_left_out_and_the_others_go_on(world):
    def fails():
        world.ran.append("b")
        raise RuntimeError("no")

    launches = {"a": world.program("a", 1.0), "b": fails}
    found = list(benchmark.in_turn(launches, world.timer, {"a": 1, "b": 1}, rounds=3))
    assert [name for name, _ in found] == ["a", "b", "a", "a"] and str(found[1][1]) == "no"
    assert world.ran == ["a", "b", "a", "a"]


def test_an_interrupt_leaves_what_came_before(world):
    launch = world.program("a", 1.0)

    def interrupted():
        raise KeyboardInterrupt

    turns = benchmark.in_turn({"a": launch, "b": interrupted}, world.timer, {"a": 1, "b": 1})
    assert next(turns) == ("a", Batch((1.0,)))
    with pytest.raises(KeyboardInterrupt):
        next(turns)


@pytest.mark.parametrize("seconds, calls", [(10.0, 1), (0.01, 5), (1e-9, 100), (0.0, 100)])
def test_short_calls_are_many_in_a_batch_and_long_ones_few(seconds, calls):
    assert benchmark.calls_in_a_batch(seconds, ClockTimer()) == calls


def test_every_repetition_is_timed_and_no_warmup(world):
    timing = measure(world.program("a", 1.0), device=CPU, warmup=3, repeat=4)
    assert len(world.ran) == 7
    assert timing.calls == 4


def test_without_a_gpu_the_cpu_is_meant(world, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(benchmark, "ClockTimer", lambda: world.timer)
    assert measure(world.program("a", 9.0, 2.0), repeat=1).best == 2.0


# ---------------------------------------------------------------------------------------------------- a GPU, as if


class Event:
    def __init__(self, gpu):
        self.gpu = gpu

    def record(self):
        self.gpu.log.append("event")

    def query(self):
        return self.gpu.is_ahead

    def synchronize(self):
        self.gpu.log.append("half")

    def elapsed_time(self, end):
        assert end is not self
        return 2.0  # milliseconds


class Gpu:
    """As much of torch as a timer uses; it writes down in which order."""

    def __init__(self):
        self.log = []
        self.is_ahead = False
        self.cuda = self

    class device:
        def __init__(self, index):
            self.index = index

        def __enter__(self):
            pass

        def __exit__(self, *_):
            pass

    def ones(self, count, device):
        return f"{4 * count >> 20} MB"

    def empty(self, shape, device):
        return None

    def sum(self, slab, dim, out):
        self.log.append(f"read {slab}")

    def Event(self, enable_timing):
        return Event(self)

    def _sleep(self, cycles):
        self.log.append("sleep" if cycles else "nothing")

    def synchronize(self, index=0):
        self.log.append("wait")


def cuda_timer(gpu, **options):
    made = CudaTimer(0, **options)
    made.__dict__["_torch"] = gpu
    return made


def test_calls_on_a_gpu_wait_in_its_queue_and_begin_with_a_cold_cache():
    gpu = Gpu()
    timer = cuda_timer(gpu, watch=lambda: gpu.log.append("watch"))
    assert timer.batch(lambda: gpu.log.append("launch"), 2) == Batch((2e-3, 2e-3))
    call = ["read 512 MB", "event", "launch", "event"]
    assert gpu.log == ["sleep", *call, *call, "half", "watch", "wait"]


def test_a_cache_that_may_be_warm_is_not_emptied():
    gpu = Gpu()
    cuda_timer(gpu, cold=False).batch(lambda: None, 1)
    assert gpu.log == ["sleep", "event", "event", "wait"]


def test_a_gpu_that_has_waited_for_the_host_is_told_of():
    gpu = Gpu()
    gpu.is_ahead = True
    assert not cuda_timer(gpu).batch(lambda: None, 3).queued


def test_the_floor_is_what_an_empty_kernel_takes():
    gpu = Gpu()
    assert cuda_timer(gpu).floor() == 2e-3
    assert "nothing" in gpu.log and ClockTimer().floor() is None


@pytest.mark.gpu
def test_a_copy_on_the_gpu_takes_as_long_as_its_bandwidth_allows():
    x = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    y = torch.empty_like(x)
    seconds = measure(lambda: y.copy_(x), device=Device(DeviceKind.CUDA, 0), warmup=3, repeat=9).median
    assert 2 * x.nbytes / 20e12 < seconds < 2 * x.nbytes / 0.1e12


@pytest.mark.gpu
def test_launches_wait_in_the_queue_and_a_call_that_waits_for_the_gpu_is_told_of():
    x = torch.zeros(1 << 20, device="cuda")
    timer = CudaTimer(0)
    timer.batch(lambda: x.add_(1), 1)  # loads the kernel, and waits for that
    assert timer.batch(lambda: x.add_(1), 20).queued
    assert not timer.batch(lambda: x.sum().item(), 3).queued
    floor = timer.floor()
    assert floor is not None and 0 < floor < 50e-6
