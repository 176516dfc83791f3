# SPDX-License-Identifier: Apache-2.0
"""The handle of a kernel: what makes one, what it compiles, what hangs on it."""

import copy
import math
import pickle
import threading
from typing import ClassVar

import pytest
import torch

import tilekit as tilus
from tilekit import float32, int32, spec
from tilekit.diag import ArgumentError, LanguageError
from tilekit.jit.instantiated import InstantiatedScript


class Fill(tilus.Script):
    """Writes `value + offset` to the first n elements."""

    def __init__(self, offset: float = 0.0, block: int = 256):
        super().__init__()
        self.offset = offset
        self.block = block

    def __call__(self, n: int32, value: float, x_ptr: ~float32):
        self.attrs.blocks = [(n + self.block - 1) // self.block]
        self.attrs.warps = 4
        g = self.global_view(x_ptr, dtype=float32, shape=[n])
        tile = self.register_tensor(dtype=float32, shape=[self.block], init=value + self.offset)
        self.store_global(g, tile, offsets=[self.blockIdx.x * self.block])


def filled(handle, n=100, value=1.5):
    x = torch.full((n,), float("nan"))
    handle(n, value, x)
    return x


def test_making_a_script_gives_a_handle_and_runs_no_init():
    class Loud(tilus.Script):
        def __init__(self):
            raise AssertionError("not before the kernel is needed")

        def __call__(self, x: ~float32):
            pass

    assert isinstance(Loud(), InstantiatedScript)


def test_the_same_arguments_give_the_same_handle():
    assert Fill(1.0) is Fill(1.0)
    assert Fill(offset=1.0) is not Fill(offset=2.0)
    assert Fill(1) is not Fill(1.0) is not Fill(True)


@pytest.mark.parametrize("make", [list, lambda values: {0: values}, lambda values: (values,)])
def test_a_list_that_changes_behind_a_handle_does_not_change_it(make):
    class FillFirst(Fill):
        def __init__(self, offsets):
            first = offsets[0]
            super().__init__(first if isinstance(first, float) else first[0])

    values = [1.0]
    given = make(values)
    handle = FillFirst(given)
    values[0] = 5.0
    if isinstance(given, list):
        given[0] = 5.0
    assert (filled(handle) == 2.5).all()
    assert FillFirst(make([1.0])) is handle


def test_a_copy_of_a_handle_is_the_handle_also_of_what_holds_it():
    handle = Fill(1.0, block=64)
    filled(handle)
    assert copy.deepcopy([handle])[0] is handle
    assert copy.copy(handle) is handle
    assert pickle.loads(pickle.dumps(handle)) is handle


@pytest.mark.parametrize(("ask", "inside"), [("check", "kernel.Kernel.check"), ("bench", "bench.bench")])
def test_an_interrupt_shows_the_call_and_nothing_below_it(monkeypatch, ask, inside):
    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"tilekit.jit.{inside}", stop)
    with pytest.raises(KeyboardInterrupt) as stopped:
        getattr(Fill(), ask)(100, 1.5, torch.zeros(100))
    assert [entry.name for entry in stopped.traceback][1:] == [ask]


def test_compile_time_arguments_select_a_kernel_by_type_and_value():
    handle = Fill(0.25)
    assert (filled(handle, value=1.5) == 1.75).all()
    assert (filled(handle, value=2.5) == 2.75).all()
    assert (filled(handle, value=1.5) == 1.75).all()
    assert len(handle.kernels) == 2


def test_last_is_what_ran_last_and_kernels_are_in_the_order_of_compiling():
    handle = Fill(0.5)
    filled(handle, value=1.0)
    first = handle.last
    filled(handle, value=2.0)
    filled(handle, value=1.0)
    assert handle.last is first
    assert handle.kernels[0] is first
    assert first.launches == 2


def test_a_size_that_divides_by_16_never_cuts_a_vector():
    handle = Fill(0.75, block=512)
    filled(handle, n=1600)
    whole = handle.source
    filled(handle, n=1601)
    assert "tk::store_global_16" in whole and "} else {" not in whole
    assert "tk::store_global_16" in handle.source and "} else {" in handle.source


def test_what_hangs_on_a_kernel_says_so_before_any_compile():
    handle = Fill(99.0)
    assert repr(handle) == "Fill: 1 schedule, compiles at its first call"
    with pytest.raises(ArgumentError, match=r"^TK631: Fill has not been compiled yet, so it has no source\n"):
        _ = handle.source
    filled(handle)
    assert "fill_kernel" in handle.source
    assert "layout_inference" in handle.trace.text()
    assert [row.tensor for row in handle.layouts] == ["tile"]
    assert "Fill(offset=99.0, block=256)" in repr(handle)


def test_keywords_and_defaults_bind_as_in_python():
    handle = Fill(0.125)
    x = torch.zeros(10)
    handle(x_ptr=x, value=1.0, n=10)
    assert (x == 1.125).all()


@pytest.mark.parametrize("device", ["gpu", "cuda:0", "meta"])
def test_a_device_that_is_none_of_ours_is_refused(device):
    handle = Fill(7.0)
    for asked in (handle.compile, handle.explain):
        with pytest.raises(ArgumentError, match=f"TK630.* is compiled for cuda or cpu, not for '{device}'"):
            asked(1000, 1.0, spec(float32, (1000,)), device=device)


def test_compile_needs_no_data():
    handle = Fill(7.0)
    instance = handle.compile(1000, 1.0, spec(float32, (1000,)), target="sm_80", device="cpu")
    assert handle.last in instance.kernels
    assert handle.last.machine.target.name == "sm_80"
    assert handle.last.launches == 0
    meta = torch.empty(1000, device="meta")
    assert handle.compile(1000, 1.0, meta, target="sm_80", device="cpu") is instance


def test_the_program_of_a_specialization_can_be_had():
    instance = Fill(3.0)._jit_instance_for(1000, 1.0, torch.empty(1000))
    assert "fill" in instance.transpiled_programs[0].functions
    assert instance.instance_name.startswith("Fill-1.0-d")


@tilus.autotune("block", [300, 77, 64])
@tilus.autotune("warps", [2])
class Picky(tilus.Script):
    def __init__(self, block: int, warps: int):
        super().__init__()
        self.block = block
        self.warps = warps

    def __call__(self, x_ptr: ~float32):
        self.static_assert(self.block == 64, "only 64 will do")
        self.attrs.blocks = [1]
        self.attrs.warps = self.warps
        g = self.global_view(x_ptr, dtype=float32, shape=[64])
        self.store_global(g, self.register_tensor(dtype=float32, shape=[64], init=1.0), offsets=[0])


def test_the_first_schedule_that_compiles_is_used():
    handle = Picky()
    x = torch.zeros(64)
    handle(x)
    assert (x == 1).all()
    assert handle.last.schedule == {"block": 64, "warps": 2}


def test_if_no_schedule_works_the_error_is_that_of_the_first():
    class NoneFits(Picky):
        debug_schedule = None

        def __call__(self, x_ptr: ~float32):
            self.static_assert(self.block == 0, f"{self.block} is not 0")

    with pytest.raises(LanguageError) as caught:
        NoneFits()(torch.zeros(64))
    assert "300 is not 0" in caught.value.message
    assert "all 3 schedules fail; this is the error of the first" in str(caught.value)


def test_debug_schedule_pins_one():
    class Pinned(Picky):
        debug_schedule: ClassVar = {"block": 64, "warps": 4}

    handle = Pinned()
    handle(torch.zeros(64))
    assert handle.last.schedule == {"block": 64, "warps": 4}
    assert len(handle.schedules) == 1
    Pinned.debug_schedule = {"block": 64, "warps": 2}
    assert Pinned() is not handle and len(Pinned().schedules) == 1
    Pinned()(torch.zeros(64))
    assert Pinned().last.schedule == {"block": 64, "warps": 2}


def test_a_script_without_a_kernel_is_refused():
    class Empty(tilus.Script):
        pass

    with pytest.raises(LanguageError, match="Empty has no __call__ method"):
        Empty()


def test_threads_may_call_the_same_kernel():
    handle = Fill(5.0)
    outputs = [torch.zeros(200) for _ in range(6)]
    threads = [threading.Thread(target=handle, args=(200, 1.0, x)) for x in outputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((x == 6).all() for x in outputs)
    assert len(handle.kernels) == 1


def test_a_view_with_strides_takes_a_tensor_with_gaps():
    class Column(tilus.Script):
        def __call__(self, n: int32, stride: int32, x_ptr: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            g = self.global_view(x_ptr, dtype=float32, shape=[n], strides=[stride])
            self.store_global(g, self.register_tensor(dtype=float32, shape=[64], init=3.0), offsets=[0])

    x = torch.zeros(10, 4)
    column = x[:, 1]
    Column()(10, column.stride(0), column)
    assert (x[:, 1] == 3).all()
    assert (x[:, [0, 2, 3]] == 0).all()


def test_help_shows_the_language():
    assert "out of bounds" in tilus.Script.load_global.__doc__
    assert "load_global" in dir(tilus.Script)
    with pytest.raises(AttributeError):
        _ = tilus.Script.load_globl


class Constant(tilus.Script):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale

    def __call__(self, value: float, y: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        tile = self.register_tensor(dtype=float32, shape=[2], init=value)
        scale = self.register_tensor(dtype=float32, shape=[2], init=self.scale)
        self.store_global(self.global_view(y, dtype=float32, shape=[4]), tile, offsets=[0])
        self.store_global(self.global_view(y, dtype=float32, shape=[4]), scale, offsets=[2])


def test_constants_that_are_equal_as_numbers_are_told_apart():
    for scale in (0.0, -0.0):
        for value in (0.0, -0.0):
            y = torch.ones(4)
            Constant(scale)(value, y)
            assert y.signbit().tolist() == [math.copysign(1, value) < 0] * 2 + [math.copysign(1, scale) < 0] * 2


def test_a_nan_is_found_again():
    y = torch.zeros(4)
    for _ in range(3):
        Constant(float("nan"))(float("nan"), y)
    handle = Constant(float("nan"))
    assert y.isnan().all() and len(handle.kernels) == 1
