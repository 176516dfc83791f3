# SPDX-License-Identifier: Apache-2.0
"""An edit for a GPU is checked on the CPU before it is launched there; the GPU here is a list of its launches."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import tilekit as tilus
from tests.jit.test_check import Turned, line_of
from tilekit import config
from tilekit.diag import KernelError
from tilekit.jit import held, precheck
from tilekit.jit.kernel import Kernel
from tilekit.runtime.launch import LAUNCHED, LaunchStats

pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")

BARRIER = "__syncthreads();"


class Recorder:
    """In place of a GPU: it keeps what it is asked to launch."""

    def __init__(self) -> None:
        self.launched: list[list[Any]] = []

    def launch(self, arguments: list[Any], /) -> LaunchStats:
        self.launched.append(arguments)
        return LAUNCHED

    def interrupt(self) -> None:
        pass


@pytest.fixture(scope="module")
def compiled() -> Kernel:
    """A kernel for a GPU that nobody has here."""
    handle: Any = Turned(True)
    f32 = tilus.spec(tilus.float32, (64, 32))
    handle.compile(f32, f32, device="cuda")
    assert handle.last.source.count(BARRIER) == 1
    return handle.last


@pytest.fixture(autouse=True)
def sampling() -> Iterator[None]:
    config.set_session_default("cpu.check_blocks", 2)
    yield
    config.clear_session_defaults()


@pytest.fixture
def arguments() -> list[torch.Tensor]:
    return [torch.randn(64, 32), torch.zeros(64, 32)]


@pytest.fixture
def edited(compiled: Kernel, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Recorder]:
    def edit(old: str, new: str) -> Recorder:
        source = compiled.generated.source if compiled.generated else ""
        assert old in source
        compiled.recompile(source.replace(old, new, 1))
        compiled.__dict__["_runner"] = gpu = Recorder()
        return gpu

    return edit


def test_a_race_in_an_edit_refuses_its_launch_and_says_how_to_launch_it_anyway(compiled, edited, arguments):
    gpu = edited(BARRIER, "")
    before = [tensor.clone() for tensor in arguments]
    with pytest.raises(KernelError) as caught:
        compiled.launch(arguments)
    assert not gpu.launched and caught.value.data == compiled.report.data
    assert all(map(torch.equal, arguments, before))
    assert caught.value.kind in ("race", "uninitialized") and caught.value.data["checked"]
    assert caught.value.diagnostic.at.line in (line_of(Turned, "store_shared"), line_of(Turned, "load_shared"))
    assert "\n" + precheck.LAUNCH_ANYWAY in "\n" + caught.value.diagnostic.help
    with pytest.raises(KernelError):
        compiled.launch(arguments)
    tilus.option.cpu.check_blocks(0)
    compiled.launch(arguments)
    assert len(gpu.launched) == 1


def test_a_comparison_is_a_launch_too(compiled, edited, arguments):
    edited("x_ptr[", "x_ptr[")
    compiled.launch(arguments)
    gpu = edited(BARRIER, "")
    with pytest.raises(KernelError):
        compiled.compare()
    assert not gpu.launched and compiled.report is not None


def test_a_mended_edit_is_launched_and_its_report_is_gone(compiled, edited, arguments):
    edited(BARRIER, "")
    with pytest.raises(KernelError):
        compiled.launch(arguments)
    gpu = edited(BARRIER, f"{BARRIER} {BARRIER}")
    assert compiled.report is None
    compiled.launch(arguments)
    compiled.launch(arguments)
    assert [len(values) for values in gpu.launched] == [2, 2]
    assert compiled.sample.startswith("checked all 2 blocks, seed ")
    assert compiled.facts()[-1] == compiled.sample


def test_generated_source_for_a_gpu_is_launched_as_it_is(compiled, arguments):
    compiled.revert()
    compiled.__dict__["_runner"] = gpu = Recorder()
    compiled.launch(arguments)
    assert gpu.launched and compiled.sample == ""


def test_what_takes_too_long_to_compile_is_launched_and_says_so(compiled, edited, arguments, monkeypatch):
    gpu = edited(BARRIER, f"{BARRIER} {BARRIER} {BARRIER}")
    monkeypatch.setattr(precheck, "EDIT_TIMEOUT_S", 0.2)
    load, go_on = compiled._load_checked, threading.Event()
    monkeypatch.setattr(compiled, "_load_checked", lambda: (go_on.wait(60), load())[1])
    compiled.launch(arguments)
    assert gpu.launched
    go_on.set()
    assert compiled.sample == "not checked: its compile for the CPU took longer than 0.2 s"


def test_what_does_not_end_is_launched_in_time_and_says_so(compiled, edited, arguments, monkeypatch):
    gpu = edited("{\n", "{\n  while (*(volatile float *)x_ptr == *(volatile float *)x_ptr) {}\n")
    compiled._load_checked()
    monkeypatch.setattr(precheck, "EDIT_TIMEOUT_S", 0.5)
    begin = time.monotonic()
    compiled.launch(arguments)
    assert time.monotonic() - begin < 20.0 and gpu.launched
    assert compiled.sample.startswith("not checked: 2 blocks took longer than 0.")


def test_what_is_no_code_for_the_cpu_is_launched_and_says_so(compiled, edited, arguments):
    gpu = edited("{\n", '{\n  unsigned lane; asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));\n')
    compiled.launch(arguments)
    assert gpu.launched and compiled.sample.startswith("not checked on the CPU: ")


def test_large_tensors_are_not_copied(compiled, edited, arguments, monkeypatch):
    gpu = edited(BARRIER, "")
    monkeypatch.setattr(precheck, "LARGEST_EDIT_BYTES", 10_000)
    compiled.launch(arguments)
    assert gpu.launched and compiled.sample == "not checked: its tensors have 0.0164 MB"


def test_memory_that_tensors_share_counts_once_and_stays_shared():
    whole, array = torch.arange(100.0), np.arange(50, dtype=np.int16)
    values = [3, whole[10:], whole[:40], array[5:20], array]
    assert held.nbytes(values) == 400 + 100
    number, first, second, part, _ = held.copies(values, on_cpu=True)
    assert number == 3 and torch.equal(first, whole[10:])
    first[0], part[0] = -1.0, -1
    assert second[10] == -1 and whole[10] == 10 and array[5] == 5
