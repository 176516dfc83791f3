# SPDX-License-Identifier: Apache-2.0
"""A call like an earlier one goes straight to its kernel, and means exactly what the long way means."""

import gc
import shutil
import sys
import threading
import time
import weakref

import numpy as np
import pytest
import torch

import tilekit as tilus
from tests.caches import in_force, new_cache
from tilekit import config, float32, int32
from tilekit.diag import ArgumentError, KernelError
from tilekit.jit import arguments, dispatch, observer, session
from tilekit.jit import kernel as kernels
from tilekit.runtime.launch import LAUNCHED
from tilekit.runtime.launch_cuda import CudaKernel


class Scale(tilus.Script):
    """Multiplies n elements by a constant of the call."""

    def __call__(self, n: int32, factor: float, x: ~float32, y: ~float32):
        self.attrs.blocks = [(n + 127) // 128]
        self.attrs.warps = 1
        at = self.blockIdx.x * 128
        gx = self.global_view(x, dtype=float32, shape=[n])
        gy = self.global_view(y, dtype=float32, shape=[n])
        self.store_global(gy, self.load_global(gx, offsets=[at], shape=[128]) * factor, offsets=[at])


@pytest.fixture(scope="module")
def scale():
    handle = Scale()
    x, y = torch.randn(100), torch.empty(100)
    handle(100, 2.0, x, y)
    return handle


@pytest.fixture
def long_ways(monkeypatch) -> list[str]:
    """The calls that take the long way."""
    found: list[str] = []
    check = arguments.check

    def counted(script, *args, **kwargs):
        found.append(script)
        return check(script, *args, **kwargs)

    monkeypatch.setattr(arguments, "check", counted)
    return found


def is_scaled(handle, factor: float, n: int = 100, offset: int = 0) -> bool:
    x, y = torch.randn(n + offset)[offset:], torch.full((n,), float("nan"))
    handle(n, factor, x, y)
    return torch.equal(y, x * factor)


def test_a_call_like_an_earlier_one_is_not_checked_again(scale, long_ways):
    assert all(is_scaled(scale, 2.0) for _ in range(3))
    assert long_ways == []
    assert scale.last.launches >= 4


@pytest.mark.parametrize("change", [{"factor": 3.0}, {"factor": -0.0}, {"n": 112}, {"offset": 1}])
def test_what_could_change_the_kernel_takes_the_long_way_once(scale, long_ways, change):
    call = {"factor": 2.0, **change}
    assert is_scaled(scale, **call) and is_scaled(scale, **call)
    assert len(long_ways) <= 1
    assert {kernel.specialized.text for kernel in scale.kernels} >= {scale.last.specialized.text}


def test_0_and_minus_0_are_two_constants(scale):
    one = torch.ones(100)
    signs = []
    for factor in (0.0, -0.0, 0.0, -0.0):
        y = torch.empty(100)
        scale(100, factor, one, y)
        signs.append(bool(torch.signbit(y).any()))
    assert signs == [False, True, False, True]


X, Y = torch.ones(100), torch.ones(100)
WRONG = {
    "a bool for an integer": (True, 2.0, X, Y),
    "a float for an integer": (100.0, 2.0, X, Y),
    "an integer too large": (2**31, 2.0, X, Y),
    "text for a number": (100, "2", X, Y),
    "another dtype": (100, 2.0, X.double(), Y),
    "a tensor with gaps": (100, 2.0, torch.ones(200)[::2], Y),
    "no tensor": (100, 2.0, [1.0], Y),
    "a meta tensor": (100, 2.0, X.to("meta"), Y),
    "too few": (100, 2.0, X),
    "too many": (100, 2.0, X, Y, Y),
}


@pytest.mark.parametrize("given", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_still_refused_in_words(scale, given):
    assert is_scaled(scale, 2.0)
    with pytest.raises(ArgumentError):
        scale(*given)


def test_other_ways_to_give_the_same_still_work(scale):
    x, y = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    scale(100, 2.0, x, y)
    assert (y == 2 * x).all()
    x, y = torch.randn(100), torch.empty(100)
    scale(np.int64(100), 2, x=x, y=y)
    assert torch.equal(y, 2 * x)


def test_an_option_that_changes_between_two_calls_is_heeded(scale, tmp_path):
    assert is_scaled(scale, 2.0)
    with in_force(new_cache(tmp_path / "cache")) as folder:
        assert is_scaled(scale, 2.0)
        assert scale.last.machine.config.cache_dir == folder
    assert is_scaled(scale, 2.0)
    assert scale.last.machine.config.cache_dir != tmp_path / "cache"


def test_a_target_that_changes_between_two_calls_is_heeded(scale):
    assert is_scaled(scale, 2.0)
    before = scale.last.machine.target
    scale.use_target("sm_80")
    assert is_scaled(scale, 2.0) and scale.last.machine.target.name == "sm_80"
    scale.use_target(None)
    assert is_scaled(scale, 2.0) and scale.last.machine.target == before


def test_an_edit_between_two_calls_is_heeded(scale):
    assert is_scaled(scale, 2.0)
    kernel = scale.last
    kernel.recompile(kernel.source.replace("2.0", "4.0").replace("2.f", "4.f"))
    assert kernel.patched
    x, y = torch.randn(100), torch.empty(100)
    scale(100, 2.0, x, y)
    assert torch.equal(y, 4 * x)
    kernel.revert()
    assert is_scaled(scale, 2.0)


def test_the_arguments_are_remembered_and_their_memory_is_not_kept(scale):
    x, y = torch.randn(100), torch.empty(100)
    for _ in range(2):
        scale(100, 2.0, x, y)
    assert [value is kept for value, kept in zip(scale.last._recalled(), (100, x, y), strict=True)] == [True] * 3
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_a_kernel_called_with_ever_new_constants_does_not_grow_without_end(scale, monkeypatch):
    monkeypatch.setattr(dispatch, "_MOST_KNOWN", 3)
    x, y = torch.randn(100), torch.empty(100)
    for factor in (2.0, *map(float, range(20, 30)), 2.0):
        scale._dispatch.learn((100, factor, x, y), scale.last, scale._dispatch.circumstances())
        assert len(scale._dispatch.known.ready) <= 3
    scale._dispatch.forget()
    assert is_scaled(scale, 2.0) and is_scaled(scale, 2.0)


@pytest.mark.parametrize("change", ["target", "option", "cell"])
def test_what_changes_while_a_kernel_is_found_decides_the_next_call(scale, long_ways, monkeypatch, change):
    """Another thread does it, while this one compiles."""
    changes = {
        "target": lambda: scale.use_target("sm_80"),
        "option": lambda: config.set_session_default("bench_repeat", 7),
        "cell": session.begin_cell,
    }
    x, y = torch.randn(100), torch.empty(100)
    scale._dispatch.forget()
    with monkeypatch.context() as during:
        launch = kernels.Kernel.launch
        during.setattr(kernels.Kernel, "launch", lambda *args: (launch(*args), changes[change]()))
        scale(100, 2.0, x, y)
    try:
        assert scale._dispatch.launch((100, 2.0, x, y)) is None
        assert is_scaled(scale, 2.0) and len(long_ways) == 2
        assert is_scaled(scale, 2.0) and len(long_ways) == 2
    finally:
        scale.use_target(None)
        config._session.pop("bench_repeat", None)
        config.begin_era()


def test_threads_may_call_the_same_kernel(scale):
    wrong: list[int] = []

    def work(number: int) -> None:
        if not all(is_scaled(scale, 2.0, n=64 + number) for _ in range(10)):
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_short_way_to_a_gpu_is_a_handful_of_function_calls(scale, monkeypatch):
    """A count, for times depend on the machine: what a GPU's launch costs in Python before the driver is asked."""
    monkeypatch.setattr(observer, "present", [])  # a notebook's are called, too

    class Counting(CudaKernel):
        def __init__(self):
            self.started = []
            self.fault = None

        def start(self, values, index, stream=None):
            if self.fault is not None:
                raise self.fault
            self.started.append(values)
            return LAUNCHED

        def pack(self, values, index):
            return None

    assert is_scaled(scale, 2.0)
    kernel, runner = scale.last, scale.last.runner
    x, y = torch.randn(100), torch.empty(100)
    try:
        kernel.__dict__["_runner"] = counting = Counting()
        scale._dispatch.learn((100, 2.0, x, y), kernel, scale._dispatch.circumstances())
        scale(100, 2.0, x, y)
        calls: list[str] = []
        sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_qualname) if event == "call" else None)
        try:
            scale(100, 2.0, x, y)
        finally:
            sys.setprofile(None)
        counting.fault = KernelError("TK629", "it faulted", data={"kind": "fault", "printed": "so far\n"})
        with pytest.raises(KernelError):
            scale(100, 2.0, x, y)
        assert kernel.report.kind == "fault" and kernel.printed == "so far\n"
    finally:
        kernel.report = None
        kernel.__dict__["_runner"] = runner
        scale._dispatch.forget()
    assert counting.started == [[100, x.data_ptr(), y.data_ptr()]] * 2
    assert len(calls) <= 16, calls


# ------------------------------------------------------------------------------------------------------------ on a GPU


def is_scaled_on_gpu(handle, factor: float, n: int = 1024, offset: int = 0) -> bool:
    x = torch.randn(n + offset, device="cuda")[offset:]
    y = torch.full((n,), float("nan"), device="cuda")
    handle(n, factor, x, y)
    return torch.equal(y, x * factor)


@pytest.mark.gpu
def test_on_a_gpu_a_call_like_an_earlier_one_is_not_checked_again(scale, long_ways):
    assert is_scaled_on_gpu(scale, 2.0)
    before, kernel = len(long_ways), scale.last
    assert all(is_scaled_on_gpu(scale, 2.0, n) for n in (1024, 2048, 1024))
    assert len(long_ways) == before and scale.last is kernel
    assert is_scaled_on_gpu(scale, 2.0, offset=1) and scale.last is not kernel
    assert is_scaled(scale, 2.0) and scale.last.machine.device.kind.value == "cpu"
    assert is_scaled_on_gpu(scale, 2.0) and scale.last is kernel


@pytest.mark.gpu
def test_on_a_gpu_the_short_way_goes_to_the_stream_in_force(scale):
    stream = torch.cuda.Stream()
    x, y = torch.randn(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        for _ in range(3):
            torch.cuda._sleep(10**7)  # what follows on the stream waits for it
            x.normal_()
            scale(1 << 20, 2.0, x, y)
            copy = y.clone()
            assert torch.equal(copy, x * 2.0)


@pytest.mark.gpu
def test_on_a_gpu_threads_may_call_the_same_kernel(scale):
    assert is_scaled_on_gpu(scale, 2.0)
    wrong: list[int] = []

    def work(number: int) -> None:
        if not all(is_scaled_on_gpu(scale, 2.0, n=1024 * (1 + number)) for _ in range(50)):
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.gpu
def test_on_a_gpu_a_rerun_after_a_deletion_writes_the_source_again(scale):
    assert is_scaled_on_gpu(scale, 2.0)
    folder = scale.last.compiled.entry.folder
    shutil.rmtree(folder)
    time.sleep(2 * dispatch._LOOK_SECONDS)
    assert is_scaled_on_gpu(scale, 2.0)
    assert (folder / "module" / "source.cu").is_file()
