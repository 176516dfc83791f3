# SPDX-License-Identifier: Apache-2.0
"""The first half runs everywhere, on a GPU made of Python; the second, marked `gpu`, on a real one."""

import ast
import ctypes
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.runtime import fake_gpu
from tests.runtime.fake_gpu import CUresult, FakeGpu
from tilekit import target
from tilekit.diag import ArgumentError, KernelError, LaunchError
from tilekit.dtypes import float32
from tilekit.runtime import device, driver, gpu_child, gpu_process, gpu_worker, launch_cuda, tensors
from tilekit.runtime.gpu_child import GpuChild
from tilekit.runtime.launch import NOTHING_LAUNCHED, LaunchStats
from tilekit.runtime.manifest import Manifest, Param, Workspace
from tilekit.runtime.tensors import CPU, Device, DeviceKind, TensorFacts

ROOT = pathlib.Path(__file__).parents[2]

SCALE = Manifest(
    kernel="scale",
    params=(
        Param("y", "~float32", written=True, read=False),
        Param("x", "~float32"),
        Param("a", "float32"),
        Param("n", "int32"),
    ),
    grid=("(n + 127) // 128", "1", "1"),
    block=128,
    shared_bytes=0,
    target="sm_90a",
)


class FakeTensor:
    """A CUDA tensor of floats: a view of an allocation that starts at an element."""

    def __init__(self, memory: fake_gpu.Allocation, n: int, at: int = 0, index: int = 0) -> None:
        pointer = memory.address + 4 * at
        self.facts = TensorFacts(
            pointer, float32, (n,), (1,), Device(DeviceKind.CUDA, index), (pointer, pointer + 4 * n)
        )
        self.values = np.frombuffer(memory.pages, np.float32, n, 4 * at)


def install(patch: pytest.MonkeyPatch) -> FakeGpu:
    """Make this the GPU of this process and of its children."""
    api = FakeGpu()
    patch.setattr(driver, "binding", lambda: api)
    patch.setattr(device, "survey", lambda: device.look(api))
    patch.setattr(tensors, "is_tensor", lambda argument: isinstance(argument, FakeTensor))
    patch.setattr(tensors, "facts", lambda argument: argument.facts)
    patch.setattr(gpu_process, "COMMAND", (sys.executable, "-P", str(pathlib.Path(fake_gpu.__file__))))
    return api


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGpu]:
    launch_cuda.context.cache_clear()
    yield install(monkeypatch)
    launch_cuda.context.cache_clear()


@pytest.fixture
def child(gpu: FakeGpu) -> Iterator[GpuChild]:
    made = GpuChild(0)
    yield made
    made.close()


@dataclass
class Case:
    """Tensors of a call in one allocation, with other tensors around them."""

    memory: fake_gpu.Allocation
    y: FakeTensor
    x: FakeTensor
    n: int

    @property
    def arguments(self) -> list[Any]:
        return [self.y, self.x, 3.0, self.n]

    def snapshot(self) -> bytes:
        return self.memory.pages[:]


@pytest.fixture
def case(gpu: FakeGpu) -> Case:
    n = random.randint(100, 2000)
    memory = gpu.allocate(1 << 16)
    memory.pages[:] = os.urandom(1 << 16)
    y, x = FakeTensor(memory, n, at=random.randint(1, 64)), FakeTensor(memory, n, at=4096)
    x.values[:] = np.random.randn(n)
    return Case(memory, y, x, n)


def binary(text: str) -> bytes:
    return f"def kernel(gpu):\n{textwrap.indent(textwrap.dedent(text), '    ')}".encode()


SCALES = """
    n, a = gpu.number(3), gpu.number(2, "f")
    y, x = gpu.array(0, n), gpu.array(1, n)
    for i in range(n):
        y[i] = a * x[i]
"""
ENDLESS = binary("gpu.array(0, 1)[0] = 7\nraise Endless()")


def is_gone(pid: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0]
    except FileNotFoundError:
        return True
    return state == "Z"


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happens"
        time.sleep(0.01)


# ---------------------------------------------------------------------------------------------- what goes well


def test_what_the_kernel_writes_comes_back(child: GpuChild, case: Case) -> None:
    before = case.snapshot()
    expected = np.float32(3.0) * case.x.values
    stats = child.run(SCALE, binary(SCALES), case.arguments)
    assert np.array_equal(case.y.values, expected)
    assert stats.seconds == 0.0015 and stats.copy_seconds >= 0
    offset = case.y.facts.pointer - case.memory.address
    assert case.snapshot() == before[:offset] + expected.tobytes() + before[offset + expected.nbytes :]


def test_the_process_is_kept_and_its_memory_is_not(child: GpuChild, case: Case) -> None:
    pids = set()
    for _ in range(3):
        stats = child.run(SCALE, binary("print(len(gpu.live), len(gpu.mappings))"), case.arguments)
        assert stats.printed == "2 0\n", "two copies and no mapping while the kernel runs"
        pids.add(child.pid)
    assert len(pids) == 1 and None not in pids


def test_an_allocation_is_mapped_once_for_all_its_tensors(child: GpuChild, case: Case) -> None:
    assert child.run(SCALE, binary("print(gpu.opened)"), case.arguments).printed == "1\n"
    assert child.run(SCALE, binary("print(gpu.opened)"), case.arguments).printed == "3\n", "one more to write back"


def test_what_the_manifest_says_is_only_read_does_not_come_back(child: GpuChild, case: Case) -> None:
    before = case.x.values.copy()
    child.run(SCALE, binary("gpu.array(1, 1)[0] = 7"), case.arguments)
    assert np.array_equal(case.x.values, before)
    params = (SCALE.params[0], replace(SCALE.params[1], written=True), *SCALE.params[2:])
    child.run(replace(SCALE, params=params), binary("gpu.array(1, 1)[0] = 7"), case.arguments)
    assert case.x.values[0] == 7 and np.array_equal(case.x.values[1:], before[1:])


def test_overlapping_tensors_overlap_there(child: GpuChild, gpu: FakeGpu) -> None:
    memory = gpu.allocate(4096)
    whole = FakeTensor(memory, 100)
    whole.values[:] = np.arange(100)
    y, x = FakeTensor(memory, 50, at=10), FakeTensor(memory, 50)
    child.run(SCALE, binary(SCALES), [y, x, 2.0, 50])
    expected = np.arange(100, dtype=np.float32)
    for i in range(50):
        expected[10 + i] = 2 * expected[i]
    assert np.array_equal(whole.values, expected)


@pytest.mark.parametrize("at", [0, 1, 3, 5, 1023])
def test_a_copy_is_aligned_as_its_original_is(child: GpuChild, gpu: FakeGpu, at: int) -> None:
    memory = gpu.allocate(1 << 14)
    tensor = FakeTensor(memory, 16, at=at)
    stats = child.run(SCALE, binary("print(gpu.number(0, 'Q'))"), [tensor, tensor, 1.0, 16])
    assert int(stats.printed) % gpu_worker.ALIGNMENT == tensor.facts.pointer % gpu_worker.ALIGNMENT


def test_an_empty_tensor_is_passed(child: GpuChild, gpu: FakeGpu) -> None:
    tensor = FakeTensor(gpu.allocate(64), 0)
    assert child.run(SCALE, binary("print(gpu.grid)"), [tensor, tensor, 1.0, 300]).printed == "(3, 1, 1)\n"


def test_a_kernel_without_parameters_is_launched(child: GpuChild) -> None:
    manifest = replace(SCALE, params=(), grid=("4", "2", "1"))
    assert child.run(manifest, binary("print(gpu.grid)"), []).printed == "(4, 2, 1)\n"


LENDING = replace(SCALE, workspaces=(Workspace("turns", "4 * n", clean=True), Workspace("sums", "4 * n", clean=False)))


def test_a_workspace_is_lent_there_and_clean_ones_are_zero(child: GpuChild, case: Case) -> None:
    sums = """
        n = gpu.number(3)
        y, turns, sums = gpu.array(0, n), gpu.array(4, n, kind=ctypes.c_int32), gpu.array(5, n)
        for i in range(n):
            sums[i] = gpu.array(1, n)[i] + turns[i]
            y[i] = sums[i]
    """
    child.run(LENDING, binary(sums), case.arguments)
    assert np.array_equal(case.y.values, case.x.values)


def test_a_write_beside_a_workspace_is_found(child: GpuChild, case: Case) -> None:
    nbytes = -(-4 * case.n // 128) * 128
    with pytest.raises(KernelError) as caught:
        beside = f"gpu.array(5, 1, at={nbytes // 4 + 2}, kind=ctypes.c_int32)"
        child.run(LENDING, binary(f"{beside}[0] = ~{beside}[0]"), case.arguments)
    assert caught.value.code == "TK702"
    assert (caught.value.data["tensor"], caught.value.data["byte_offset"]) == ("sums", nbytes + 8)


def test_a_grid_with_a_zero_starts_no_process(child: GpuChild, case: Case) -> None:
    assert child.run(SCALE, binary("raise Fault()"), [case.y, case.x, 1.0, 0]) is NOTHING_LAUNCHED
    assert child.pid is None


# ------------------------------------------------------------------------------------ where nothing can be mapped


def test_what_has_no_handle_travels_through_memory(child: GpuChild, gpu: FakeGpu, case: Case) -> None:
    gpu.answers["cuIpcGetMemHandle"] = CUresult.CUDA_ERROR_INVALID_VALUE
    test_what_the_kernel_writes_comes_back(child, case)
    assert child.run(SCALE, binary("print(gpu.opened)"), case.arguments).printed == "0\n"


def test_a_tensor_that_spans_allocations_travels_through_memory(
    child: GpuChild, gpu: FakeGpu, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with expandable segments, of which the driver knows the first only."""
    monkeypatch.setattr(gpu, "cuMemGetAddressRange", lambda address: (CUresult.CUDA_SUCCESS, case.memory.address, 64))
    test_what_the_kernel_writes_comes_back(child, case)
    assert child.run(SCALE, binary("print(gpu.opened)"), case.arguments).printed == "0\n"


def test_a_process_that_cannot_map_is_not_asked_twice(
    child: GpuChild, gpu: FakeGpu, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPU", f'{{"cuIpcOpenMemHandle": {CUresult.CUDA_ERROR_INVALID_HANDLE.value}}}')
    test_what_the_kernel_writes_comes_back(child, case)
    gpu.answers["cuIpcGetMemHandle"] = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS  # and no handle is asked for
    test_what_the_kernel_writes_comes_back(child, case)


def test_tensors_with_and_without_a_handle_go_together(child: GpuChild, gpu: FakeGpu, case: Case) -> None:
    other = FakeTensor(fake_gpu.Allocation(8192), case.n)
    child.run(SCALE, binary(SCALES), [other, case.x, 3.0, case.n])
    assert np.array_equal(other.values, np.float32(3.0) * case.x.values)
    other.values[:] = np.random.randn(case.n)
    child.run(SCALE, binary(SCALES), [case.y, other, 2.0, case.n])
    assert np.array_equal(case.y.values, np.float32(2.0) * other.values)


# ---------------------------------------------------------------------------------------------- what goes wrong


@pytest.fixture(params=["mapped", "through memory"])
def way(request: pytest.FixtureRequest, gpu: FakeGpu) -> None:
    if request.param != "mapped":
        gpu.answers["cuIpcGetMemHandle"] = CUresult.CUDA_ERROR_INVALID_VALUE


@dataclass(frozen=True)
class Stray:
    """A write beside a tensor: the parameter, the element, and the tensor that is named."""

    param: int
    element: int  # from the tensor's end, if not negative

    def kernel(self) -> bytes:
        at = str(self.element) if self.element < 0 else f"gpu.number(3) + {self.element}"
        return binary(f"{SCALES}\n    gpu.array({self.param}, 1, {at})[0] = 1.25")


STRAYS = [Stray(param, element) for param in (0, 1) for element in (0, 1, 1000, 65535, -1, -2, -65536)]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("stray", STRAYS, ids=lambda stray: f"param {stray.param} at {stray.element}")
def test_a_write_beside_a_tensor_is_found_and_harms_nothing(child: GpuChild, case: Case, stray: Stray) -> None:
    before = case.snapshot()
    with pytest.raises(KernelError) as caught:
        child.run(SCALE, stray.kernel(), case.arguments)
    name = "yx"[stray.param]
    element = stray.element if stray.element < 0 else case.n + stray.element
    assert caught.value.code == "TK702" and caught.value.kind == "out_of_bounds"
    assert caught.value.message == (
        f"kernel 'scale': it writes outside of {name}, a float32[{case.n}], at element {element}"
    )
    assert caught.value.data["tensor"] == name and caught.value.data["index"] == (element,)
    assert "no tensor has changed" in str(caught.value)
    assert case.snapshot() == before


def test_a_single_byte_is_enough(child: GpuChild, case: Case) -> None:
    before = case.snapshot()
    flips = binary("byte = gpu.array(0, 1, 4 * gpu.number(3), ctypes.c_uint8)\nbyte[0] ^= 1")
    with pytest.raises(KernelError) as caught:
        child.run(SCALE, flips, case.arguments)
    assert caught.value.data["byte_offset"] == 4 * case.n
    assert case.snapshot() == before


def test_the_nearest_stray_write_is_told(child: GpuChild, case: Case) -> None:
    for first, second, told in ((5, 900, case.n + 5), (-900, -5, -5)):
        kernel = binary(f"e = gpu.number(3) if {first} > 0 else 0\nfor k in ({first}, {second}): "
                        "gpu.array(0, 1, e + k)[0] = 1.25")  # fmt: skip
        with pytest.raises(KernelError) as caught:
            child.run(SCALE, kernel, case.arguments)
        assert caught.value.data["index"] == (told,)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("status", [CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, CUresult.CUDA_ERROR_UNKNOWN])
def test_a_fault_costs_a_sentence(child: GpuChild, case: Case, status: CUresult) -> None:
    before = case.snapshot()
    with pytest.raises(KernelError) as caught:
        child.run(SCALE, binary(f"gpu.array(0, 1)[0] = 7\nraise Fault(CUresult({status.value}))"), case.arguments)
    assert caught.value.code == "TK629" and caught.value.kind == status.name
    assert caught.value.message.startswith("kernel 'scale': it faulted on cuda:0 (Fake 0, sm_90): ")
    assert "no tensor has changed, and the GPU goes on working" in str(caught.value)
    assert case.snapshot() == before
    launch_cuda.synchronize(0)
    test_what_the_kernel_writes_comes_back(child, case)


@pytest.mark.usefixtures("way")
def test_a_kernel_that_does_not_end_is_ended(child: GpuChild, case: Case) -> None:
    child.run(SCALE, binary(SCALES), case.arguments)
    before, pid = case.snapshot(), child.pid
    assert pid is not None
    begin = time.monotonic()
    with pytest.raises(KernelError) as caught:
        child.run(SCALE, ENDLESS, case.arguments, timeout_s=0.3)
    assert time.monotonic() - begin < 20
    assert caught.value.code == "TK703" and caught.value.kind == "timeout"
    assert "it still ran after 0.3 s" in caught.value.message
    assert is_gone(pid)
    assert case.snapshot() == before
    test_what_the_kernel_writes_comes_back(child, case)


def when_running(child: GpuChild, act: Callable[[], object]) -> threading.Thread:
    """Do something as soon as a kernel runs."""

    def wait() -> None:
        wait_until(lambda: child._stoppable is not None)
        time.sleep(0.2)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_an_interrupt_from_another_thread_ends_it(child: GpuChild, case: Case) -> None:
    before = case.snapshot()
    thread = when_running(child, child.interrupt)
    begin = time.monotonic()
    with pytest.raises(KernelError) as caught:
        child.run(SCALE, ENDLESS, case.arguments)
    assert time.monotonic() - begin < 5.0
    thread.join()
    assert caught.value.code == "TK716" and caught.value.kind == "interrupted"
    assert case.snapshot() == before
    child.interrupt()  # too late, and so of no effect
    test_what_the_kernel_writes_comes_back(child, case)


def test_an_interrupt_of_the_notebook_ends_it(child: GpuChild, case: Case) -> None:
    before = case.snapshot()
    pids: list[int | None] = []

    def press() -> None:
        pids.append(child.pid)
        os.kill(os.getpid(), signal.SIGINT)

    thread = when_running(child, press)
    with pytest.raises(KeyboardInterrupt):
        child.run(SCALE, ENDLESS, case.arguments)
    thread.join()
    assert pids[0] is not None and is_gone(pids[0])
    assert case.snapshot() == before
    test_what_the_kernel_writes_comes_back(child, case)


def test_an_interrupt_while_results_are_written_comes_after_them(
    child: GpuChild, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPU", '{"slow_s": 0.3}')
    expected = np.float32(3.0) * case.x.values
    take_back = gpu_child._Launch.take_back

    def interrupted(self: Any, worker: Any) -> Any:
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        return take_back(self, worker)

    monkeypatch.setattr(gpu_child._Launch, "take_back", interrupted)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        child.run(SCALE, binary(SCALES), case.arguments)
    assert np.array_equal(case.y.values, expected)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_process_that_dies_is_named_and_replaced(child: GpuChild, case: Case) -> None:
    before = case.snapshot()
    with pytest.raises(KernelError) as caught:
        child.run(SCALE, binary("import os, sys\nsys.stderr.write('words')\nos._exit(3)"), case.arguments)
    assert caught.value.code == "TK719" and "the process that it ran in ended with status 3" in str(caught.value)
    assert "note: words" in str(caught.value)
    with pytest.raises(KernelError, match="was killed by SIGKILL"):
        child.run(SCALE, binary("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"), case.arguments)
    assert case.snapshot() == before
    child.run(SCALE, binary(SCALES), case.arguments)
    assert child.pid is not None
    os.kill(pid := child.pid, signal.SIGKILL)  # between two launches
    wait_until(lambda: is_gone(pid))
    test_what_the_kernel_writes_comes_back(child, case)


def test_copies_that_do_not_fit_are_refused_with_advice(
    child: GpuChild, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPU", '{"cuMemAlloc": 2}')
    with pytest.raises(LaunchError) as caught:
        child.run(SCALE, binary(SCALES), case.arguments)
    assert caught.value.code == "TK628"
    assert "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY" in str(caught.value) and "empty_cache" in str(caught.value)


def test_a_launch_that_the_driver_refuses_is_no_fault(
    child: GpuChild, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPU", '{"cuLaunchKernel": 1}')
    with pytest.raises(LaunchError, match="scale: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE"):
        child.run(SCALE, binary(SCALES), case.arguments)


def test_a_mapping_that_cannot_be_closed_stops_everything(
    child: GpuChild, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For then the kernel could reach what it must not."""
    monkeypatch.setenv("FAKE_GPU", '{"cuIpcCloseMemHandle": 1}')
    before = case.snapshot()
    with pytest.raises(LaunchError, match="cuIpcCloseMemHandle"):
        child.run(SCALE, binary(SCALES), case.arguments)
    assert case.snapshot() == before


def test_a_gpu_that_the_process_does_not_see_is_a_sentence(child: GpuChild, gpu: FakeGpu, case: Case) -> None:
    gpu.uuid = bytes(15) + b"\1"
    with pytest.raises(LaunchError) as caught:
        child.run(SCALE, binary(SCALES), case.arguments)
    assert "the process for launches on cuda:0 (Fake 0, sm_90) does not start" in str(caught.value)
    assert f"no GPU here has the UUID {gpu.uuid.hex()}" in str(caught.value)


def test_a_process_that_does_not_start_says_why(child: GpuChild, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_process, "COMMAND", (sys.executable, "-c", "raise SystemExit('no such luck')"))
    with pytest.raises(LaunchError, match="note: no such luck"):
        child.run(SCALE, binary(SCALES), case.arguments)


# -------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (4096, "scale: x is the address 4096, and this launch needs a tensor"),
        (None, "scale: x is a NoneType, and this launch needs a tensor"),
    ],
)
def test_what_is_no_tensor_is_refused(child: GpuChild, case: Case, wrong: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        child.run(SCALE, binary(SCALES), [case.y, wrong, 1.0, case.n])
    assert caught.value.message == message
    assert child.pid is None


@pytest.mark.parametrize("where", [CPU, Device(DeviceKind.CUDA, 1)], ids=str)
def test_a_tensor_from_elsewhere_is_refused(child: GpuChild, case: Case, where: Device) -> None:
    case.x.facts = replace(case.x.facts, device=where)
    with pytest.raises(ArgumentError, match=f"scale: x is on {where}, and the kernel is launched on cuda:0"):
        child.run(SCALE, binary(SCALES), case.arguments)


def test_numbers_and_sizes_are_checked_before_anything_starts(child: GpuChild, case: Case) -> None:
    for manifest, arguments, code in (
        (SCALE, case.arguments[:3], "TK626"),
        (SCALE, [case.y, case.x, "a", 1], "TK625"),
        (replace(SCALE, target="sm_80"), case.arguments, "TK627"),
        (replace(SCALE, shared_bytes=1 << 20), case.arguments, "TK628"),
    ):
        with pytest.raises((ArgumentError, LaunchError)) as caught:
            child.run(manifest, binary(SCALES), arguments)
        assert caught.value.code == code
    assert child.pid is None


@pytest.mark.parametrize("shared", [0, 48 << 10, (48 << 10) + 4])
def test_much_shared_memory_is_asked_for(child: GpuChild, case: Case, shared: int) -> None:
    asks = binary("print([call[3] for call in gpu.calls if call[0] == 'attribute'])")
    manifest = replace(SCALE, shared_bytes=shared)
    # the fake driver writes down what it is asked by the name that it gave the function
    printed = child.run(manifest, asks, case.arguments).printed
    assert printed == (f"[{shared}]\n" if shared > 48 << 10 else "[]\n")


def test_small_floats_and_every_width_arrive(child: GpuChild) -> None:
    kinds = ("int8", "float64", "bool", "bfloat16", "int64")
    manifest = replace(SCALE, params=tuple(Param(f"p{i}", kind) for i, kind in enumerate(kinds)), grid=("1", "1", "1"))
    shows = binary("print(gpu.number(0, 'b'), gpu.number(1, 'd'), gpu.number(2, '?'), gpu.number(3, 'H'), "
                   "gpu.number(4, 'q'))")  # fmt: skip
    (bits,) = struct.unpack("<I", struct.pack("<f", 1.5))
    assert (
        child.run(manifest, shows, [-3, 0.1, True, 1.5, -(2**40)]).printed == f"-3 0.1 True {bits >> 16} {-(2**40)}\n"
    )


# ------------------------------------------------------------------------------------------------ the process


def test_the_worker_imports_the_standard_library_and_the_driver_alone() -> None:
    tree = ast.parse(pathlib.Path(gpu_worker.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in names if name.split(".")[0] not in sys.stdlib_module_names}
    assert ours == {"cuda.bindings"}


def test_each_launch_is_told_what_it_printed_itself(
    child: GpuChild, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what lies in the buffers of C, as the driver's does."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # it leaves those without a buffer
    for number in range(3):
        prints = f"print('in Python {number}')\nctypes.CDLL(None).printf(b'in C {number}\\n')"
        stats = child.run(SCALE, binary(prints), case.arguments)
        assert sorted(stats.printed.splitlines()) == [f"in C {number}", f"in Python {number}"]


def test_the_process_finds_modules_where_we_do(
    child: GpuChild, case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "only_here.py").write_text("word = 'found'\n")
    monkeypatch.syspath_prepend(tmp_path)
    stats = child.run(SCALE, binary("import only_here\nprint(only_here.word)"), case.arguments)
    assert stats.printed == "found\n"


@pytest.mark.parametrize("forks", [False, True], ids=["alone", "with a forked process that lives on"])
def test_a_killed_notebook_leaves_no_kernel_behind(forks: bool) -> None:
    program = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
import pytest
from tests.runtime import test_gpu_child as t
gpu = t.install(pytest.MonkeyPatch())
child = t.GpuChild(0)
tensor = t.FakeTensor(gpu.allocate(64), 1)
child.run(t.SCALE, t.binary("pass"), [tensor, tensor, 1.0, 1])
forked = os.fork() if {forks} else 0
if {forks} and forked == 0:
    time.sleep(60)
    os._exit(0)
print(child.pid, forked, flush=True)
child.run(t.SCALE, t.ENDLESS, [tensor, tensor, 1.0, 1])
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as notebook:
        assert notebook.stdout is not None
        pid, forked = map(int, notebook.stdout.readline().split())
        try:
            time.sleep(0.5)
            assert not is_gone(pid)
            notebook.kill()
            notebook.wait()
            wait_until(lambda: is_gone(pid), 2.0)
        finally:
            if forked:
                os.kill(forked, signal.SIGKILL)


def test_a_forked_child_leaves_the_process_to_its_parent(child: GpuChild, case: Case) -> None:
    child.run(SCALE, binary(SCALES), case.arguments)
    pid = child.pid
    forked = os.fork()
    if forked == 0:
        child.close()
        os._exit(0 if child.pid is None else 1)
    _, status = os.waitpid(forked, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    test_what_the_kernel_writes_comes_back(child, case)
    assert child.pid == pid


def test_threads_take_turns(child: GpuChild, gpu: FakeGpu) -> None:
    tensors_of = [(FakeTensor(gpu.allocate(4096), 10), FakeTensor(gpu.allocate(4096), 10)) for _ in range(3)]
    for number, (_, x) in enumerate(tensors_of):
        x.values[:] = number

    def launch(y: FakeTensor, x: FakeTensor) -> None:
        for _ in range(10):
            child.run(SCALE, binary(SCALES), [y, x, 2.0, 10])

    threads = [threading.Thread(target=launch, args=pair) for pair in tensors_of]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, (y, _) in enumerate(tensors_of):
        assert np.array_equal(y.values, np.full(10, 2.0 * number, np.float32))


def test_a_handle_keeps_its_bytes() -> None:
    """Of the real binding, whose object has had different fields in different versions."""
    bindings = pytest.importorskip("cuda.bindings.driver")
    handle, content = bindings.CUipcMemHandle(), os.urandom(64)
    ctypes.memmove(handle.getPtr(), content, 64)
    assert gpu_worker.handle_bytes(handle) == content
    assert len(gpu_worker.uuid_of(bindings, bindings.CUuuid())) == 16


# ------------------------------------------------------------------------------------------------- on a real GPU

SOURCE = """\
#include <tk/tk.h>

extern "C" __global__ void __launch_bounds__(128)
scale(float* y, float* x, float a, int32_t n)
{
  int32_t i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}

extern "C" __global__ void __launch_bounds__(128)
beyond(float* y, float* x, float a, int32_t n)
{
  int32_t i = blockIdx.x * 128 + threadIdx.x;
  if (i <= n) y[i] = a * x[i];
}

extern "C" __global__ void __launch_bounds__(128)
before(float* y, float* x, float a, int32_t n)
{
  int32_t i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i - 1] = a * x[i];
}

extern "C" __global__ void __launch_bounds__(128)
wild(float* y, float* x, float a, int32_t n)
{
  int32_t i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) y[i] = -1.0f;
  if (i < n) y[(int64_t)(i + 1) << 34] = a * x[i];
}

extern "C" __global__ void __launch_bounds__(128)
trap(float* y, float* x, float a, int32_t n)
{
  y[threadIdx.x] = -1.0f;
  __threadfence();
  asm volatile("trap;");
}

extern "C" __global__ void __launch_bounds__(128)
endless(float* y, float* x, float a, int32_t n)
{
  y[threadIdx.x] = -1.0f;
  while (*(volatile float*)x != 12345.0f) x[1] = -1.0f;
}

extern "C" __global__ void __launch_bounds__(128)
says(float* y, float* x, float a, int32_t n)
{
  if (threadIdx.x == 0) printf("x[0] is %g\\n", x[0]);
}

extern "C" __global__ void __launch_bounds__(128)
reverse(float* y, float* x, float a, int32_t n)
{
  float* tile = tk::shared_ptr<float>(0);
  for (int32_t i = threadIdx.x; i < n; i += 128) tile[i] = x[i];
  __syncthreads();
  for (int32_t i = threadIdx.x; i < n; i += 128) y[i] = tile[n - 1 - i];
}
"""

Launch = Callable[..., LaunchStats]


@pytest.fixture(scope="module")
def real() -> Iterator[tuple[GpuChild, Launch]]:
    """A child on the GPU that is here, and a function that runs a kernel of SOURCE in it, by name."""
    made = GpuChild(0)
    yield made, launcher(made)
    made.close()


def launcher(made: GpuChild) -> Launch:
    from tilekit.cpusim.build import INCLUDE
    from tilekit.toolchain import nvrtc
    from tilekit.toolchain.binary import Options

    here = target.best_for(device.require().gpus[0].capability)
    with tempfile.TemporaryDirectory() as headers:
        cubin = nvrtc.compile(SOURCE, here, include=INCLUDE, options=Options(pathlib.Path(headers))).cubin

    def launch(name: str, *arguments: Any, timeout_s: float | None = None, **manifest: Any) -> LaunchStats:
        whole = replace(SCALE, kernel=name, target=here.name, **manifest)
        return made.run(whole, cubin, arguments, timeout_s)

    return launch


@dataclass
class Bystanders:
    """Tensors of every size, the call's own among them, and what they held."""

    tensors: list[torch.Tensor]
    held: list[torch.Tensor]

    @property
    def y(self) -> torch.Tensor:
        return self.tensors[0]

    @property
    def x(self) -> torch.Tensor:
        return self.tensors[1]

    def assert_untouched(self) -> None:
        for tensor, held in zip(self.tensors, self.held, strict=True):
            assert torch.equal(tensor.view(torch.int32).cpu(), held)

    def assert_usable(self) -> None:
        a = torch.randn(256, 256, device="cuda")
        assert torch.allclose((a @ a).cpu(), a.cpu() @ a.cpu(), atol=1e-3)
        torch.cuda.synchronize()


@pytest.fixture
def bystanders() -> Bystanders:
    sizes = (1000, 1000, 1, 7, 1000, 1 << 20, 5_000_001)
    made = [torch.randn(n, device="cuda") for n in sizes]
    return Bystanders(made, [tensor.view(torch.int32).cpu() for tensor in made])


@pytest.mark.gpu
class TestOnGpu:
    @pytest.mark.parametrize("n", [1, 127, 128, 100_003, 20_000_000])
    def test_what_the_kernel_writes_comes_back(self, real: tuple[GpuChild, Launch], n: int) -> None:
        _, launch = real
        x, y = torch.randn(n, device="cuda"), torch.full((n + 2,), 7.0, device="cuda")
        stats = launch("scale", y[1:-1], x, 3.0, n)
        print(f"{n} floats: kernel {stats.seconds} s, copies {stats.copy_seconds} s")
        assert torch.equal(y[1:-1], 3.0 * x)
        assert y[0].item() == y[-1].item() == 7.0
        assert stats.seconds is not None and 0 < stats.seconds < 1

    def test_it_comes_after_what_every_stream_had_to_do(self, real: tuple[GpuChild, Launch]) -> None:
        _, launch = real
        n = 1 << 20
        x, y = torch.ones(n, device="cuda"), torch.zeros(n, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(200_000_000)
            x.mul_(5.0)
        launch("scale", y, x, 1.0, n)
        assert torch.equal(y, torch.full_like(y, 5.0))

    def test_a_call_in_place_is_one(self, real: tuple[GpuChild, Launch]) -> None:
        _, launch = real
        x = torch.randn(1000, device="cuda")
        expected = 2.0 * x
        launch("scale", x, x, 2.0, 1000)
        assert torch.equal(x, expected)

    @pytest.mark.parametrize("kernel", ["beyond", "before"])
    def test_one_element_outside_is_found_and_harms_nothing(
        self, real: tuple[GpuChild, Launch], bystanders: Bystanders, kernel: str
    ) -> None:
        _, launch = real
        with pytest.raises(KernelError) as caught:
            launch(kernel, bystanders.y, bystanders.x, 3.0, 1000)
        bystanders.assert_untouched()
        assert caught.value.kind == "out_of_bounds"
        index = 1000 if kernel == "beyond" else -1
        assert caught.value.message == (
            f"kernel '{kernel}': it writes outside of y, a float32[1000], at element {index}"
        )
        self.assert_next_launch_is_quick(launch, bystanders)

    @pytest.mark.parametrize("kernel", ["wild", "trap"])
    def test_a_fault_costs_a_sentence(self, real: tuple[GpuChild, Launch], bystanders: Bystanders, kernel: str) -> None:
        _, launch = real
        with pytest.raises(KernelError) as caught:
            launch(kernel, bystanders.y, bystanders.x, 3.0, 1000)
        print(caught.value)
        bystanders.assert_untouched()
        assert caught.value.code == "TK629" and caught.value.message.startswith(f"kernel '{kernel}': it faulted on ")
        self.assert_next_launch_is_quick(launch, bystanders)

    def test_a_kernel_that_does_not_end_is_ended(self, real: tuple[GpuChild, Launch], bystanders: Bystanders) -> None:
        child, launch = real
        launch("scale", bystanders.x, bystanders.x, 1.0, 1000)  # warm
        pid = child.pid
        begin = time.monotonic()
        with pytest.raises(KernelError) as caught:
            launch("endless", bystanders.y, bystanders.x, 3.0, 1000, timeout_s=0.5)
        took = time.monotonic() - begin - 0.5
        print(f"stopped {took:.3f} s after the time-out")
        assert took < 2.0
        assert caught.value.kind == "timeout" and pid is not None and is_gone(pid)
        bystanders.assert_untouched()
        self.assert_next_launch_is_quick(launch, bystanders)

    def test_an_interrupt_ends_it(self, real: tuple[GpuChild, Launch], bystanders: Bystanders) -> None:
        _, launch = real
        launch("scale", bystanders.x, bystanders.x, 1.0, 1000)  # warm
        pressed: list[float] = []

        def press() -> None:
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(1.0, press)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            launch("endless", bystanders.y, bystanders.x, 3.0, 1000)
        took = time.monotonic() - pressed[0]
        print(f"stopped {took:.3f} s after the interrupt")
        assert took < 2.0
        bystanders.assert_untouched()
        self.assert_next_launch_is_quick(launch, bystanders)

    def test_the_notebook_computes_while_a_kernel_spins(
        self, real: tuple[GpuChild, Launch], bystanders: Bystanders
    ) -> None:
        child, launch = real
        thread = when_running(child, lambda: (bystanders.assert_usable(), child.interrupt()))
        with pytest.raises(KernelError, match="it was interrupted"):
            launch("endless", bystanders.y, bystanders.x, 3.0, 1000)
        thread.join()
        bystanders.assert_untouched()

    def test_what_it_prints_is_told(self, real: tuple[GpuChild, Launch]) -> None:
        _, launch = real
        x = torch.full((1,), 2.5, device="cuda")
        assert launch("says", x, x, 1.0, 1).printed == "x[0] is 2.5\n"
        assert launch("scale", x, x, 1.0, 1).printed == ""

    @pytest.mark.parametrize("kib", [1, 48, 99])
    def test_dynamic_shared_memory_is_there(self, real: tuple[GpuChild, Launch], kib: int) -> None:
        _, launch = real
        n = kib * 256
        x, y = torch.randn(n, device="cuda"), torch.zeros(n, device="cuda")
        launch("reverse", y, x, 1.0, n, shared_bytes=4 * n, grid=("1", "1", "1"))
        assert torch.equal(y, x.flip(0))

    def test_a_launch_that_the_driver_refuses_is_no_fault(self, real: tuple[GpuChild, Launch]) -> None:
        _, launch = real
        x = torch.zeros(1, device="cuda")
        with pytest.raises(LaunchError, match="scale: cuLaunchKernel: "):
            launch("scale", x, x, 1.0, 1, block=2048)
        with pytest.raises(LaunchError, match="nothing_like_it: cuModuleGetFunction: CUDA_ERROR_NOT_FOUND"):
            launch("nothing_like_it", x, x, 1.0, 1)

    def test_the_process_has_no_torch_and_gives_memory_back(self, real: tuple[GpuChild, Launch]) -> None:
        child, launch = real
        x = torch.zeros(1 << 20, device="cuda")
        launch("scale", x, x, 1.0, 1)
        assert "libtorch" not in pathlib.Path(f"/proc/{child.pid}/maps").read_text()
        free = torch.cuda.mem_get_info()[0]
        for _ in range(20):
            launch("scale", x, x, 1.0, 1)
        assert torch.cuda.mem_get_info()[0] >= free - (2 << 20)

    def test_a_warm_launch_is_quick(self, real: tuple[GpuChild, Launch]) -> None:
        child, launch = real
        x = torch.zeros(1 << 20, device="cuda")
        child.close()
        begin = time.perf_counter()
        launch("scale", x, x, 1.0, 1)
        cold = time.perf_counter() - begin
        times = []
        for _ in range(20):
            begin = time.perf_counter()
            launch("scale", x, x, 1.0, 1 << 20)
            times.append(time.perf_counter() - begin)
        print(f"cold {cold:.3f} s, warm {sorted(times)[10] * 1e3:.1f} ms")
        assert cold < 3.0 and sorted(times)[10] < 0.1

    @pytest.mark.parametrize("allocator", ["expandable_segments:True", "backend:cudaMallocAsync", ""])
    def test_every_allocator_of_torch_will_do(self, allocator: str) -> None:
        environment = os.environ | {"PYTORCH_CUDA_ALLOC_CONF": allocator, "PYTHONPATH": str(ROOT)}
        environment = {name: value for name, value in environment.items() if value}
        command = [sys.executable, "-c", ALLOCATORS]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "all is well"

    @staticmethod
    def assert_next_launch_is_quick(launch: Launch, bystanders: Bystanders) -> None:
        bystanders.assert_usable()
        y = torch.zeros(1000, device="cuda")
        begin = time.monotonic()
        launch("scale", y, bystanders.x, 2.0, 1000)
        took = time.monotonic() - begin
        print(f"the next launch took {took:.3f} s")
        assert torch.equal(y, 2.0 * bystanders.x)
        assert took < 3.0
        bystanders.assert_untouched()


ALLOCATORS = """
import torch
from tests.runtime import test_gpu_child as t
from tilekit.diag import KernelError

child = t.GpuChild(0)
launch = t.launcher(child)
around = torch.randn(3, 1_000_000, device="cuda")
x, y = around[0], around[1]
expected = 3.0 * x
launch("scale", y, x, 3.0, 1_000_000)
assert torch.equal(y, expected)
held = around.cpu()
for kernel, kind in (("beyond", "out_of_bounds"), ("wild", "CUDA_ERROR_"), ("endless", "timeout")):
    try:
        launch(kernel, y, x, 2.0, 1_000_000, timeout_s=1.0)
    except KernelError as error:
        assert error.kind.startswith(kind), error
    else:
        raise AssertionError(kernel)
    assert torch.equal(around.cpu(), held)
launch("scale", y, x, 2.0, 1_000_000)
assert torch.equal(y, 2.0 * x)
child.close()
print("all is well")
"""
