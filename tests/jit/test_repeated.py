# SPDX-License-Identifier: Apache-2.0
"""A call with the very same tensors is launched as it was before, and whatever could have changed is noticed.

The GPU is a driver that only remembers; tensors of the CPU stand for its own.
"""

import gc
import itertools
import math
import random
import shutil
import struct
import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

import tilekit as tilus
from tests.caches import options_kept
from tests.runtime.fake_driver import CUresult, FakeDriver
from tilekit import boolean, config, float32, int32, target
from tilekit.diag import ArgumentError, KernelError, LaunchError
from tilekit.jit import observer, repeated, session
from tilekit.runtime import device, driver, launch_cuda
from tilekit.runtime.launch import LAUNCHED
from tilekit.runtime.launch_cuda import CudaKernel

TIMES, FACTOR = 1, 2.0


class Blend(tilus.Script):
    """Each kind of argument once."""

    def __call__(self, n: int32, times: int, factor: float, shift: float32, adds: boolean, x: ~float32, y: ~float32):
        self.attrs.blocks = [(n + 127) // 128]
        self.attrs.warps = 1
        at = self.blockIdx.x * 128
        gx = self.global_view(x, dtype=float32, shape=[n])
        gy = self.global_view(y, dtype=float32, shape=[n])
        value = self.load_global(gx, offsets=[at], shape=[128]) * (factor * times)
        if adds:
            value = value + shift
        self.store_global(gy, value, offsets=[at])


@dataclass
class Gpu:
    """What the handle launches on."""

    handle: Any
    kernel: Any
    driver: FakeDriver
    stream: list[int]

    @property
    def repeated(self) -> Any:
        return self.handle._dispatch.known.repeated

    def call(self, x: torch.Tensor, y: torch.Tensor, *, n: Any = 100, shift: Any = 0.5, adds: Any = True) -> tuple:
        return n, TIMES, FACTOR, shift, adds, x, y

    def learned(self, x: torch.Tensor, y: torch.Tensor, **more: Any) -> tuple[Any, ...]:
        """A call that is repeated from now on."""
        call = self.call(x, y, **more)
        for _ in range(2):
            assert self.repeated.again(call) is None
            self.handle(*call)
        assert self.repeated.again(call) is self.kernel
        return call

    @property
    def launched(self) -> tuple[Any, ...]:
        """The arguments that the driver saw last."""
        n, shift, adds, x, y = self.driver.launches[-1][5]
        return (
            struct.unpack("i", n[:4])[0],
            struct.unpack("f", shift[:4])[0],
            bool(adds[0]),
            struct.unpack("Q", x)[0],
            struct.unpack("Q", y)[0],
        )


@pytest.fixture(scope="module")
def blend() -> Any:
    handle = Blend()
    handle(100, TIMES, FACTOR, 0.5, True, torch.ones(100), torch.ones(100))
    return handle


def install(blend: Any, monkeypatch: pytest.MonkeyPatch, gpus: int = 1) -> Gpu:
    api, streams, kernel = FakeDriver(capabilities=[(9, 0)] * gpus, parameters=5), [0], blend.kernels[0]

    def stream(_: int) -> int:
        return streams[0]

    monkeypatch.setattr(driver, "binding", lambda: api)
    monkeypatch.setattr(device, "survey", lambda: device.look(api))
    monkeypatch.setattr(launch_cuda, "stream_getter", lambda: stream)
    launch_cuda.context.cache_clear()
    runner = CudaKernel(replace(kernel.compiled.manifest, target="sm_90a"), b"cubin")
    runner._functions[-1] = runner._load(0)  # the index of a tensor of the CPU
    monkeypatch.setitem(kernel.__dict__, "_runner", runner)
    blend._dispatch.forget()
    call = 100, TIMES, FACTOR, 0.5, True, torch.ones(100), torch.ones(100)
    blend._dispatch.learn(call, kernel, blend._dispatch.circumstances())
    return Gpu(blend, kernel, api, streams)


@pytest.fixture
def gpu(blend: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    """The kernel of the handle, moved to a GPU."""
    yield install(blend, monkeypatch)
    blend._dispatch.forget()
    launch_cuda.context.cache_clear()


def pair(n: int = 100) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(n), torch.randn(n)


def test_a_repeated_call_launches_the_same_and_counts(gpu: Gpu) -> None:
    x, y = pair()
    call = gpu.learned(x, y)
    launches, before = len(gpu.driver.launches), gpu.kernel.launches
    gpu.kernel.history.last_run = None
    for _ in range(3):
        gpu.handle(*call)
    assert gpu.kernel.launches == before + 3 and gpu.kernel.last_run is LAUNCHED
    assert gpu.handle.last is gpu.kernel
    assert len(gpu.driver.launches) == launches + 3 and len(set(gpu.driver.launches[launches - 2 :])) == 1
    assert gpu.launched == (100, 0.5, True, x.data_ptr(), y.data_ptr())
    recalled = gpu.kernel._recalled()
    assert recalled[3] is x and recalled[4] is y


def test_a_repeated_call_is_two_functions_of_python(gpu: Gpu) -> None:
    """A count, for times depend on the machine."""

    def launch(*_: Any) -> CUresult:
        return CUresult.CUDA_SUCCESS

    gpu.driver.cuLaunchKernelEx = launch
    call = gpu.learned(*pair())
    watching, observer.present[:] = observer.present[:], []  # a notebook's are called, too
    calls: list[str] = []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        gpu.handle(*call)
    finally:
        sys.setprofile(None)
        observer.present[:] = watching
    assert calls == ["__call__", "again", "stream", "launch"], "the last two stand for CUDA"


def test_who_observes_is_told_of_each(gpu: Gpu) -> None:
    call, told = gpu.learned(*pair()), []

    class Watcher(observer.Observer):
        def launched(self, kernel: Any) -> None:
            told.append(kernel)

    with observer.observing(Watcher()):
        gpu.handle(*call)
    gpu.handle(*call)
    assert told == [gpu.kernel]


def test_every_value_has_its_own_launch(gpu: Gpu) -> None:
    """-0.0 and 0.0 are equal, as are 1 and True, and still not the same."""
    x, y = pair()
    for shift, adds, n in itertools.product((0.0, -0.0, 0.25), (True, False), (100, 50)):
        gpu.learned(x, y, shift=shift, adds=adds, n=n)
        assert gpu.launched[0] == n and gpu.launched[2] is adds
        assert struct.pack("f", gpu.launched[1]) == struct.pack("f", shift)
    gpu.learned(x, y, n=1)
    for given in ({"n": True}, {"n": 1.0}, {"adds": 1}, {"adds": 0}, {"shift": True}):
        assert gpu.repeated.again(gpu.call(x, y, **given)) is None
    assert gpu.repeated.again((100, True, FACTOR, 0.25, True, x, y)) is None


def test_other_counts_of_arguments_are_none_of_its_business(gpu: Gpu) -> None:
    call = gpu.learned(*pair())
    for wrong in (call[:-1], (*call, 1)):
        with pytest.raises(ArgumentError):
            gpu.handle(*wrong)


def test_other_tensors_are_no_repetition(gpu: Gpu) -> None:
    x, y = pair()
    gpu.learned(x, y)
    assert gpu.repeated.again(gpu.call(y, x)) is None
    other = torch.randn(100)
    gpu.handle(*gpu.call(other, y))
    assert gpu.launched[3:] == (other.data_ptr(), y.data_ptr())
    gpu.learned(y, x)
    assert gpu.launched[3:] == (y.data_ptr(), x.data_ptr())


def test_a_view_that_torch_negates_as_it_is_read_takes_the_way_that_refuses_it(gpu: Gpu) -> None:
    x, y = pair()
    gpu.learned(x, y)
    for strange in ((torch._neg_view(x), y), (x, torch._neg_view(y))):
        launches = len(gpu.driver.launches)
        with pytest.raises(ArgumentError, match="resolve_neg"):
            gpu.handle(*gpu.call(*strange))
        assert len(gpu.driver.launches) == launches


def test_a_tensor_that_dies_takes_its_entry_with_it(gpu: Gpu) -> None:
    x, y = pair()
    gpu.learned(x, y)
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None and not gpu.repeated._entries


def test_nothing_is_not_a_tensor_that_died(gpu: Gpu) -> None:
    x, y = pair()
    gpu.learned(x, y)
    del x
    gc.collect()
    launches = len(gpu.driver.launches)
    with pytest.raises(ArgumentError):
        gpu.handle(100, TIMES, FACTOR, 0.5, True, None, y)
    assert len(gpu.driver.launches) == launches


def test_calls_that_take_turns_are_each_launched_as_they_were(gpu: Gpu) -> None:
    (x, y), held = pair(), pair()
    calls = [gpu.learned(*tensors) for tensors in ((x, y), (y, x), held)]
    calls += [gpu.learned(x, y, **given) for given in ({"n": 50}, {"shift": 0.0}, {"shift": -0.0}, {"adds": False})]
    for _ in range(100):
        call = random.choice(calls)
        assert gpu.repeated.again(call) is gpu.kernel
        assert gpu.launched[:3] == (call[0], call[3], call[4])
        assert math.copysign(1, gpu.launched[1]) == math.copysign(1, call[3])
        assert gpu.launched[3:] == (call[5].data_ptr(), call[6].data_ptr())


def test_views_that_live_are_repeated_and_do_not_keep_their_memory(gpu: Gpu) -> None:
    base, y = torch.randn(200), torch.randn(100)
    view = base[100:]
    gpu.learned(view, y)
    assert gpu.launched[3] == view.data_ptr()
    assert torch.equal(gpu.kernel._recalled()[3], view)
    gone = weakref.ref(base)
    del base, view
    gc.collect()
    assert gone() is None and not gpu.repeated._entries


def test_ever_new_views_leave_no_entries_though_their_ids_return(gpu: Gpu) -> None:
    x, y = pair()
    ids = set()
    for _ in range(50):
        view = x[:]
        ids.add(id(view))
        gpu.handle(*gpu.call(view, y))
        assert gpu.launched[3:] == (x.data_ptr(), y.data_ptr())
        del view
    assert not gpu.repeated._entries


def test_a_transposition_in_place_is_refused(gpu: Gpu) -> None:
    x, y = torch.randn(10, 10), torch.randn(10, 10)
    call = gpu.learned(x, y)
    y.t_()
    launches = len(gpu.driver.launches)
    with pytest.raises(ArgumentError, match="contiguous"):
        gpu.handle(*call)
    assert len(gpu.driver.launches) == launches
    y.t_()
    gpu.handle(*call)
    assert len(gpu.driver.launches) == launches + 1


@pytest.mark.parametrize("change", ["resize", "data"])
def test_other_memory_of_the_same_tensor_is_launched_on(gpu: Gpu, change: str) -> None:
    x, y = pair()
    call, before = gpu.learned(x, y), y.data_ptr()
    if change == "resize":
        y.resize_(100_000)
    else:
        y.data = torch.empty(100)
    assert y.data_ptr() != before
    for _ in range(4):
        gpu.handle(*call)
        assert gpu.launched[3:] == (x.data_ptr(), y.data_ptr())
    assert gpu.repeated.again(call) is gpu.kernel
    assert gpu.launched[3:] == (x.data_ptr(), y.data_ptr())


def test_each_launch_goes_to_the_stream_in_force(gpu: Gpu) -> None:
    call = gpu.learned(*pair())
    for stream in (77, 77, 0, 78, 77):
        gpu.stream[0] = stream
        assert gpu.repeated.again(call) is gpu.kernel
        assert gpu.driver.launches[-1][4] == stream


def test_a_thread_without_a_context_gets_one_for_the_launch(gpu: Gpu) -> None:
    call = gpu.learned(*pair())
    gpu.driver.current = 0
    for _ in range(2):
        launches = len(gpu.driver.launches)
        gpu.handle(*call)
        assert len(gpu.driver.launches) == launches + 1, "what was refused is made once"
        assert gpu.driver.launches[-1][6] == 0x1000 and gpu.driver.current == 0


def test_with_several_gpus_the_right_context_is_current(blend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = install(blend, monkeypatch, gpus=2)
    try:
        call = gpu.learned(*pair())
        gpu.driver.current = 0x1001
        gpu.handle(*call)
        assert gpu.driver.launches[-1][6] == 0x1000 and gpu.driver.current == 0x1001
    finally:
        blend._dispatch.forget()
        launch_cuda.context.cache_clear()


def test_a_refused_launch_is_an_error_in_words(gpu: Gpu) -> None:
    call = gpu.learned(*pair())
    gpu.driver.answers["cuLaunchKernel"] = CUresult.CUDA_ERROR_INVALID_VALUE
    before = gpu.kernel.launches
    with pytest.raises(LaunchError, match="CUDA_ERROR_INVALID_VALUE"):
        gpu.handle(*call)
    assert gpu.kernel.launches == before


class Tracer:
    def wants(self, script: str) -> bool:
        return False


TRACER = Tracer()


@pytest.mark.parametrize(
    "change",
    [
        lambda: config.set_session_default("bench_repeat", 7),
        lambda: config.clear_session_defaults(),
        session.begin_cell,
        lambda: session.set_pipeline_changes(()),
        lambda: observer.trace(TRACER),
        lambda: observer.trace_anew(TRACER),
        lambda: observer.untrace(TRACER),
    ],
    ids=["an option", "no options", "a cell", "a pipeline", "a trace", "a trace anew", "no trace"],
)
def test_what_changes_for_everybody_takes_a_longer_way(gpu: Gpu, change: Any) -> None:
    call = gpu.learned(*pair())
    with options_kept():
        try:
            change()
            assert gpu.repeated.again(call) is None
        finally:
            observer.untrace(TRACER)


@pytest.mark.parametrize(
    "block",
    [lambda: session.default_target(target.SM80), lambda: session.changed_pipeline(())],
    ids=["a target", "a pipeline"],
)
def test_so_does_what_holds_for_a_block_at_both_its_ends(gpu: Gpu, block: Any) -> None:
    call = gpu.learned(*pair())
    with block():
        assert gpu.repeated.again(call) is None
    assert gpu.repeated.again(call) is None
    for _ in range(2):
        gpu.handle(*call)
    assert gpu.repeated.again(call) is gpu.kernel


def test_a_target_of_the_handle_forgets_its_calls(gpu: Gpu) -> None:
    call = gpu.learned(*pair())
    gpu.handle.use_target("sm_80")
    assert gpu.repeated.again(call) is None
    gpu.handle.use_target(None)
    assert gpu.repeated.again(call) is None


def test_an_edit_runs_at_the_next_call(gpu: Gpu) -> None:
    x, y = pair()
    call, runner = gpu.learned(x, y), gpu.kernel.runner
    launches = len(gpu.driver.launches)
    gpu.kernel.recompile(gpu.kernel.source + "\n// edited\n")
    try:
        gpu.handle(*call)  # its own device is the CPU
        assert len(gpu.driver.launches) == launches
        assert torch.allclose(y, 2 * x + 0.5)
    finally:
        gpu.kernel.revert()
        gpu.kernel.__dict__["_runner"] = runner  # for monkeypatch to take away


def test_what_is_wrong_with_a_kernel_takes_a_longer_way(gpu: Gpu) -> None:
    call = gpu.learned(*pair())
    error = KernelError("TK629", "it faulted", data={"kind": "fault"})
    gpu.kernel.failed(error, checked=False)
    try:
        assert gpu.repeated.again(call) is None
    finally:
        gpu.kernel.report = None


def test_a_deleted_cache_is_written_again(gpu: Gpu) -> None:
    call = gpu.learned(*pair())
    folder = gpu.kernel.compiled.entry.folder
    shutil.rmtree(folder)
    for ready in gpu.handle._dispatch.known.ready.values():
        ready.next_look = 0.0  # time goes by
    assert gpu.repeated.again(call) is gpu.kernel
    assert (folder / "module" / "source.cu").is_file()


def test_the_arguments_live_as_long_as_the_launch(gpu: Gpu) -> None:
    x, y = pair()
    launch, late = gpu.driver.cuLaunchKernelEx, [False]

    def launch_late(*given: Any) -> CUresult:
        if late[0]:
            gpu.handle._dispatch.forget()
            gc.collect()
            assert [bytes(100_000) for _ in range(10)]  # whoever wants memory now gets that of the dead
        return launch(*given)

    gpu.driver.cuLaunchKernelEx = launch_late
    call, repeated = gpu.learned(x, y), gpu.repeated
    late[0] = True
    assert repeated.again(call) is gpu.kernel
    assert gpu.launched == (100, 0.5, True, x.data_ptr(), y.data_ptr())


def test_threads_do_not_mix_their_arguments(gpu: Gpu) -> None:
    calls = [gpu.learned(*pair(), n=10 * number, shift=float(number)) for number in range(1, 5)]
    wanted = {(n, shift, x.data_ptr(), y.data_ptr()) for n, _, _, shift, _, x, y in calls}
    before, start = len(gpu.driver.launches), threading.Barrier(len(calls))

    def work(call: tuple[Any, ...]) -> None:
        start.wait()
        for _ in range(200):
            gpu.handle(*call)

    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = gpu.driver.launches[before:]
    seen = set()
    for launch in found:
        gpu.driver.launches.append(launch)
        n, shift, _, x, y = gpu.launched
        assert launch[1] == (-(-n // 128), 1, 1)
        seen.add((n, shift, x, y))
    assert len(found) == 200 * len(calls) and seen == wanted


def test_neither_entries_nor_notes_grow_without_end(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "_MOST", 3)
    x, y = pair()
    for n in range(1, 9):
        gpu.learned(x, y, n=n)
        assert len(gpu.repeated._entries) <= 3
    for n in range(9, 17):
        gpu.handle(*gpu.call(x, y, n=n))
        assert len(gpu.repeated._noted) <= 3
