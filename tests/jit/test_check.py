# SPDX-License-Identifier: Apache-2.0
"""A kernel under check: what is wrong is told at its line, with the line of the other access."""

import copyreg
import gc
import inspect
import re
import weakref

import pytest
import torch

import tilekit as tilus
from tilekit import config, float16, float32, int32
from tilekit.diag import ArgumentError, KernelError
from tilekit.jit import session
from tilekit.runtime.launch_cpu import choose_blocks


class Turned(tilus.Script):
    """Rows become columns, with the barrier between or without."""

    def __init__(self, synchronized: bool):
        super().__init__()
        self.synchronized = synchronized

    def __call__(self, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [2]
        self.attrs.warps = 4
        at = self.blockIdx.x * 32
        gx = self.global_view(x_ptr, dtype=float32, shape=[64, 32])
        gy = self.global_view(y_ptr, dtype=float32, shape=[64, 32])
        s = self.shared_tensor(dtype=float32, shape=[32, 32])
        self.store_shared(s, self.load_global(gx, offsets=[at, 0], shape=[32, 32]))
        if self.synchronized:
            self.sync()
        self.store_global(gy, self.load_shared(s.transpose()), offsets=[at, 0])


class Divided(tilus.Script):
    """A number is divided inside of an access, and a tile in each lane."""

    def __call__(self, n: int32, scalar: int32, lanes: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        gx = self.global_view(x_ptr, dtype=float32, shape=[n])
        gy = self.global_view(y_ptr, dtype=float32, shape=[n])
        parts = self.register_tensor(dtype=int32, shape=[32], init=lambda i: n // (i % lanes)) // lanes
        x = self.load_global(gx, offsets=[n // scalar], shape=[32])
        self.store_global(gy, x + parts.to(float32), offsets=[0])


class Staged(tilus.Script):
    """A copy into one stage of two; `reads` and `waits` are as they should be, or not."""

    def __init__(self, waits: bool):
        super().__init__()
        self.waits = waits

    def __call__(self, stage: int32, x_ptr: ~float16, y_ptr: ~float16):
        self.attrs.blocks = [1]
        self.attrs.warps = 2
        gx = self.global_view(x_ptr, dtype=float16, shape=[32, 32])
        gy = self.global_view(y_ptr, dtype=float16, shape=[32, 32])
        before = self.shared_tensor(dtype=float16, shape=[32, 32])
        stages = self.shared_tensor(dtype=float16, shape=[2, 32, 32])
        self.copy_async(gx, before, offsets=[0, 0])
        self.copy_async(gx, stages[stage], offsets=[0, 0])
        if self.waits or stage > 1:  # nobody knows before it runs
            self.copy_async_wait_all()
        self.sync()
        self.store_global(gy, self.load_shared(stages[stage]) + self.load_shared(before), offsets=[0, 0])


class Partial(tilus.Script):
    """Blocks that leave sums in a workspace, of which `written` were written."""

    def __init__(self, written: int):
        super().__init__()
        self.written = written

    def __call__(self, y_ptr: ~float32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        work = self.global_tensor(dtype=float32, shape=[64], requires_clean=False)
        self.store_global(work, self.register_tensor(dtype=float32, shape=[32], init=1.0), offsets=[self.written - 32])
        self.sync()
        gy = self.global_view(y_ptr, dtype=float32, shape=[32])
        self.store_global(gy, self.load_global(work, offsets=[16], shape=[32]), offsets=[0])


class Together(tilus.Script):
    """All blocks write one row."""

    def __call__(self, y_ptr: ~float32):
        self.attrs.blocks = [3]
        self.attrs.warps = 1
        gy = self.global_view(y_ptr, dtype=float32, shape=[4, 32])
        self.store_global(gy, self.register_tensor(dtype=float32, shape=[1, 32], init=1.0), offsets=[2, 0])


def line_of(script: type, text: str) -> int:
    """The distance of a line from its def."""
    body = inspect.getsource(script.__call__).splitlines()
    (line,) = [number for number, row in enumerate(body) if text in row]
    return line


def fault(handle, *arguments, **options) -> KernelError:
    with pytest.raises(KernelError) as caught:
        handle.check(*arguments, **options)
    return caught.value


def test_a_kernel_that_is_right_says_what_was_checked():
    x, y = torch.randn(64, 32), torch.zeros(64, 32)
    for seed in (0, 3):
        report = Turned(True).check(x, y, seed=seed)
        assert str(report) == f"checked all 2 blocks, seed {seed}: nothing wrong"
    assert not y.any(), "a check changes no tensor"
    assert re.fullmatch(r"checked block [01] of 2, seed 0: nothing wrong", str(Turned(True).check(x, y, blocks=1)))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_missing_barrier_is_told_with_both_lines(seed):
    error = fault(Turned(False), torch.randn(64, 32), torch.zeros(64, 32), seed=seed)
    if error.kind == "uninitialized":  # an order in which the reader was first
        assert error.data["tensor"] == "s"
        return
    assert error.kind == "race" and error.data["tensor"] == "s"
    lines = [error.data[end]["span"].line for end in ("first", "second")]
    assert sorted(lines) == [line_of(Turned, "store_shared"), line_of(Turned, "load_shared")]
    assert error.diagnostic.help.startswith("self.sync()") and "missing between the two" in error.diagnostic.help
    assert len(error.data["index"]) == 2 and f"s[{error.data['index'][0]}, " in error.message
    assert error.data["second"]["instruction"].split(" = ")[-1].startswith(("load_shared", "store_shared"))
    text = str(error)
    assert all(f"line {inspect.getsourcelines(Turned.__call__)[1] + line}" in text for line in lines)


def test_a_missing_wait_is_told():
    x, y = torch.randn(32, 32).half(), torch.zeros(32, 32).half()
    assert Staged(True).check(1, x, y).blocks == 1
    error = fault(Staged(False), 1, x, y)
    assert error.kind == "in_flight"
    assert error.data["second"]["span"].line == line_of(Staged, "load_shared")
    assert "copy_async_wait_all()" in error.diagnostic.help


def test_a_stage_that_there_is_not_is_out_of_the_buffer():
    x, y = torch.randn(32, 32).half(), torch.zeros(32, 32).half()
    error = fault(Staged(True), -1, x, y)
    assert (error.kind, error.data["tensor"]) == ("out_of_bounds", "stages")
    assert error.diagnostic.at.line == line_of(Staged, "stages[stage], offsets")


def test_a_workspace_holds_nothing_before_it_is_written():
    y = torch.zeros(32)
    assert Partial(48).check(y).blocks == 1
    error = fault(Partial(32), y)
    assert (error.kind, error.data["tensor"]) == ("uninitialized", "work")
    assert 32 <= error.data["byte_offset"] // 4 < 48
    assert error.diagnostic.at.line == line_of(Partial, "load_global(work")


@pytest.mark.parametrize("rows", [48, 32])
def test_an_access_outside_of_a_tensor_has_the_index_that_it_would_have(rows):
    error = fault(Turned(True), torch.randn(rows, 32), torch.zeros(64, 32))
    assert error.kind == "out_of_bounds"
    assert error.data["index"][0] >= rows and error.data["byte_offset"] >= rows * 128
    assert error.message.startswith(f"out-of-bounds access to x_ptr[{', '.join(map(str, error.data['index']))}]: byte")


def test_a_scalar_is_not_divided_by_zero_in_a_line_of_tiles():
    x, y = torch.randn(64), torch.full((64,), torch.nan)
    assert "nothing wrong" in str(Divided().check(64, 2, 0, x, y)), "0 in lanes: nobody may look at it"
    error = fault(Divided(), 64, 0, 1, x, y)
    assert (error.diagnostic.code, error.kind) == ("TK714", "division_by_zero")
    assert error.diagnostic.at.line == line_of(Divided, "offsets=[n // scalar]")


def test_blocks_that_write_one_place_race():
    error = fault(Together(), torch.zeros(4, 32))
    assert (error.kind, error.data["tensor"], error.data["index"][0]) == ("global_race", "y_ptr", 2)
    assert error.data["first"]["block"] != error.data["second"]["block"]
    assert "y_ptr[2, " in error.message


def test_a_kernel_keeps_what_was_found_until_a_check_finds_nothing():
    handle = Turned(True)
    x, y = torch.randn(64, 32), torch.zeros(64, 32)
    handle(x, y)
    kernel = handle.last
    kernel.recompile(kernel.source.replace("__syncthreads();", ""))
    for _ in range(2):
        with pytest.raises(KernelError) as caught:
            kernel.check(x, y)
        assert kernel.report.to_text() == caught.value.to_text() and kernel.report.data == caught.value.data
        handle(x, y)
        assert kernel.report is not None, "a launch without checks found nothing, and knows nothing"
    kernel.recompile(kernel.generated.source + "\n")
    assert kernel.report is None
    kernel.report = caught.value
    kernel.check(x, y)
    assert kernel.report is None
    kernel.revert()


def test_a_report_keeps_no_tensor_alive(monkeypatch):
    def with_frames(error: KernelError) -> tuple[object, ...]:
        make, arguments, *state = error.__reduce__()
        return lambda: make(*arguments).with_traceback(error.__traceback__), (), *state

    # Dask, once it is imported, has errors copied with their frames
    monkeypatch.setitem(copyreg.dispatch_table, KernelError, with_frames)
    handle = Turned(False)
    x, y = torch.randn(64, 32), torch.zeros(64, 32)
    fault(handle, x, y)
    held = weakref.ref(x)
    del x
    gc.collect()
    assert handle.last.report is not None and held() is None


def test_a_report_says_both_lines_of_each_access():
    error = fault(Turned(False), torch.randn(64, 32), torch.zeros(64, 32))
    first_line = inspect.getsourcelines(Turned.__call__)[1]
    for end in ("first", "second"):
        access = error.data[end]
        assert access["cell_line"] == first_line + access["span"].line
        assert access["code"] in Turned(False).source.splitlines()[access["line"] - 1]
    assert error.message.startswith("race, ") and "source.cu" not in error.message
    folded = error._repr_html_()
    assert folded.index("</pre>") < folded.index("<details ") < folded.index(" reads it")
    assert error.notes_title in ("the two accesses: thread 0 reads, then thread 4 writes",
                                 "the two accesses: thread 4 writes, then thread 0 reads")  # fmt: skip


def test_a_hint_offers_what_can_be_written():
    handle, x, y = Turned(False), torch.randn(64, 32), torch.zeros(64, 32)
    error = fault(handle, x, y)
    assert error.kind == "race" and "self.sync() is missing between the two" in error.data["hint"]
    assert "__syncwarp" not in error.data["hint"], "no cell can say it"
    handle.last.recompile(handle.last.source + "// edited\n")
    with pytest.raises(KernelError) as caught:
        handle.last.check(x, y)
    handle.last.revert()
    assert "self.sync(), or __syncwarp() in source.cu, is missing" in caught.value.data["hint"]


def test_the_last_call_can_be_checked():
    handle = Turned(True)
    x, y = torch.randn(64, 32), torch.zeros(64, 32)
    handle(x, y)
    assert handle.check().of == handle.last.check().of == 2
    with pytest.raises(ArgumentError, match="how many"):
        handle.check(blocks=0)


def test_a_check_of_no_call_stands_at_its_line():
    class Unused(Turned):
        pass

    with pytest.raises(ArgumentError, match=r"TK631 in a call of Unused, .*has not been compiled yet"):
        Unused(True).check()


def test_launches_can_be_checked_in_passing():
    x, y = torch.randn(64, 32), torch.zeros(64, 32)
    handle = Turned(True)
    with session.checking():
        handle(x, y)
    assert torch.equal(y.reshape(2, 32, 32), x.reshape(2, 32, 32).transpose(1, 2))
    assert handle.last.summary().endswith("checked all 2 blocks, seed 0: nothing wrong")
    with session.checking(), pytest.raises(KernelError):
        Turned(False)(x, y)


def test_an_edit_is_checked_as_it_is():
    handle = Turned(True)
    handle(torch.randn(64, 32), torch.zeros(64, 32))
    kernel = handle.last
    assert kernel.source.count("__syncthreads();") == 1
    x, y = torch.randn(64, 32), torch.zeros(64, 32)
    kernel.recompile(kernel.source.replace("__syncthreads();", ""))
    with pytest.raises(KernelError):
        kernel.check(x, y)
    with pytest.raises(ArgumentError, match=r"recompile takes the text of a source\.cu, not 3"):
        kernel.recompile(3)
    kernel.revert()
    assert kernel.check(x, y).of == 2


def test_a_sample_has_the_corners_first():
    assert choose_blocks((4, 3, 1), 4, 7) == [0, 3, 8, 11]
    assert choose_blocks((4, 3, 1), 99, 7) == list(range(12))
    for count in (1, 2, 6):
        chosen = choose_blocks((40, 30, 2), count, 7)
        assert len(chosen) == len(set(chosen)) == count and chosen == choose_blocks((40, 30, 2), count, 7)
    assert choose_blocks((400, 300, 1), 20, 1) != choose_blocks((400, 300, 1), 20, 2)


@pytest.fixture
def sampling():
    config.set_session_default("cpu.check_blocks", 5)
    yield
    config.clear_session_defaults()


def test_a_first_launch_checks_some_blocks(sampling):
    class Sampled(Turned):
        pass

    handle = Sampled(True)
    x, y = torch.randn(64, 32), torch.zeros(64, 32)
    handle(x, y)
    assert torch.equal(y.reshape(2, 32, 32), x.reshape(2, 32, 32).transpose(1, 2))
    assert re.search(r"checked all 2 blocks, seed \d+: nothing wrong", handle.last.summary())
    y.zero_()
    with pytest.raises(KernelError):
        Sampled(False)(x, y)
    assert not y.any(), "what is found wrong is not launched"


def test_a_first_launch_of_an_edit_checks_some_blocks(sampling):
    class Changed(Turned):
        pass

    handle = Changed(True)
    x, y = torch.randn(64, 32), torch.zeros(64, 32)
    handle(x, y)
    kernel, before = handle.last, y.clone()
    kernel.recompile(kernel.source.replace("__syncthreads();", ""))
    x.neg_()
    with pytest.raises(KernelError) as caught:
        handle(x, y)
    assert torch.equal(y, before) and "check_blocks(0)" in caught.value.diagnostic.help
    kernel.recompile(kernel.generated.source + "// once more\n")
    handle(x, y)
    assert torch.equal(y, -before) and re.fullmatch(r"checked all 2 blocks, seed \d+: nothing wrong", kernel.sample)


def test_a_kernel_that_adds_to_its_output_adds_once(sampling):
    class AddOne(tilus.Script):
        def __call__(self, n: int32, x_ptr: ~float32):
            self.attrs.blocks = [40]
            self.attrs.warps = 1
            at = self.blockIdx.x * 32
            gx = self.global_view(x_ptr, dtype=float32, shape=[n])
            self.store_global(gx, self.load_global(gx, offsets=[at], shape=[32]) + 1.0, offsets=[at])

    handle, x = AddOne(), torch.zeros(40 * 32)
    handle(40 * 32, x)
    assert (x == 1).all()
    assert re.search(r"checked blocks 0, [\d, ]+39 of 40, seed \d+: nothing wrong", handle.last.summary())
