# SPDX-License-Identifier: Apache-2.0
"""The first half runs everywhere, on a driver that only remembers; the second, marked `gpu`, on the real one."""

import ctypes
import os
import random
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.runtime.fake_driver import CUresult, FakeDriver
from tilekit import target
from tilekit.diag import ArgumentError, KernelError, LaunchError
from tilekit.runtime import device, driver, launch_cuda
from tilekit.runtime.launch import NOTHING_LAUNCHED
from tilekit.runtime.launch_cuda import CudaKernel, runs_on
from tilekit.runtime.manifest import Manifest, Param, Workspace

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
    """What a launch asks of a CUDA tensor."""

    def __init__(self, address: int, index: int = 0) -> None:
        self.address = address
        self.index = index

    def get_device(self) -> int:
        return self.index

    def data_ptr(self) -> int:
        return self.address


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    api = FakeDriver(capabilities=[(9, 0), (9, 0), (8, 9)], parameters=len(SCALE.params))
    monkeypatch.setattr(driver, "binding", lambda: api)
    monkeypatch.setattr(device, "survey", lambda: device.look(api))
    launch_cuda.context.cache_clear()
    yield api
    launch_cuda.context.cache_clear()


def test_every_argument_reaches_its_parameter(fake: FakeDriver) -> None:
    y, x, a, n = random.randrange(2**47), random.randrange(2**47), 0.1, random.randint(1, 100_000)
    CudaKernel(SCALE, b"cubin").launch([FakeTensor(y), FakeTensor(x), a, n], stream=77)
    ((function, grid, block, shared, stream, values, context),) = fake.launches
    assert (function, grid, block, shared, stream) == ("scale", (-(-n // 128), 1, 1), (128, 1, 1), 0, 77)
    assert values[:2] == (struct.pack("<Q", y), struct.pack("<Q", x))
    assert values[2][:4] == struct.pack("<f", a)
    assert values[3][:4] == struct.pack("<i", n)
    assert context == 0x1000


def test_an_address_is_taken_as_it_is(fake: FakeDriver) -> None:
    CudaKernel(SCALE, b"cubin").launch([4096, FakeTensor(8192), 1.0, 1], stream=0)
    assert fake.launches[0][5][:2] == (struct.pack("<Q", 4096), struct.pack("<Q", 8192))


def test_the_cubin_is_loaded_once_for_each_gpu(fake: FakeDriver) -> None:
    kernel = CudaKernel(SCALE, b"cubin")
    for index in (0, 1, 0, 1, 0):
        kernel.launch([FakeTensor(1, index), FakeTensor(2, index), 1.0, 1], stream=0)
    assert [call for call in fake.calls if call[0] == "load"] == [
        ("load", 0x1000, b"cubin"),
        ("load", 0x1001, b"cubin"),
    ]
    assert [launch[6] for launch in fake.launches] == [0x1000, 0x1001, 0x1000, 0x1001, 0x1000]


@pytest.mark.parametrize("current", [0, 0x1001], ids=["a new thread", "another GPU"])
def test_the_current_context_is_as_it_was_afterwards(fake: FakeDriver, current: int) -> None:
    fake.current = current
    CudaKernel(SCALE, b"cubin").launch([FakeTensor(1), FakeTensor(2), 1.0, 1], stream=0)
    assert fake.launches[0][6] == 0x1000
    assert fake.current == current


def test_a_grid_with_a_zero_launches_nothing(fake: FakeDriver) -> None:
    assert CudaKernel(SCALE, b"cubin").launch([FakeTensor(1), FakeTensor(2), 1.0, 0], stream=0) is NOTHING_LAUNCHED
    assert fake.launches == []


@pytest.mark.parametrize("shared", [0, 48 << 10, (48 << 10) + 4, 232448])
def test_much_shared_memory_is_asked_for(fake: FakeDriver, shared: int) -> None:
    CudaKernel(replace(SCALE, shared_bytes=shared), b"").launch([FakeTensor(1), FakeTensor(2), 1.0, 1], stream=0)
    asked = [call[1:] for call in fake.calls if call[0] == "attribute"]
    assert asked == ([("scale", 8, shared)] if shared > 48 << 10 else [])
    assert fake.launches[0][3] == shared


def test_more_shared_memory_than_there_is_is_a_sentence(fake: FakeDriver) -> None:
    with pytest.raises(LaunchError) as caught:
        CudaKernel(replace(SCALE, shared_bytes=232449), b"").launch([FakeTensor(1), FakeTensor(2), 1.0, 1], stream=0)
    expected = "scale needs 232449 bytes of shared memory, and cuda:0 (Fake 0, sm_90) has 232448"
    assert caught.value.message == expected


@pytest.mark.parametrize(
    ("built_for", "capability", "runs"),
    [
        (target.SM90A, (9, 0), True),
        (target.SM90A, (10, 0), False),
        (target.SM90, (9, 0), True),
        (target.SM80, (8, 0), True),
        (target.SM80, (8, 9), True),
        (target.SM89, (8, 6), False),
        (target.SM80, (9, 0), False),
        (target.SM100A, (10, 3), False),
        (target.parse("sm_100f"), (10, 3), True),
        (target.parse("sm_100f"), (12, 0), False),
    ],
    ids=str,
)
def test_a_cubin_runs_on_its_own_generation(built_for: target.Target, capability: tuple[int, int], runs: bool) -> None:
    assert runs_on(built_for, capability) is runs


def test_a_cubin_for_another_gpu_is_refused_by_name(fake: FakeDriver) -> None:
    with pytest.raises(LaunchError) as caught:
        CudaKernel(SCALE, b"cubin").launch([FakeTensor(1, 2), FakeTensor(2, 2), 1.0, 1], stream=0)
    assert str(caught.value) == (
        "TK627: scale is compiled for sm_90a, which cuda:2 (Fake 2, sm_89) does not run\n"
        "  help: compile it for sm_89, or pass CPU tensors to run it on the CPU"
    )
    assert not fake.launches


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (torch.zeros(3), "scale: x is on cpu, and the kernel is launched on a GPU"),
        (np.zeros(3), "scale: x is on cpu, and the kernel is launched on a GPU"),
        (None, "scale: x is no tensor, and the kernel is launched on a GPU"),
        ("text", "scale: x is no tensor, and the kernel is launched on a GPU"),
    ],
    ids=["cpu tensor", "array", "none", "text"],
)
def test_what_is_no_tensor_of_the_gpu_never_reaches_it(fake: FakeDriver, wrong: Any, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        CudaKernel(SCALE, b"cubin").launch([FakeTensor(1), wrong, 1.0, 1], stream=0)
    assert caught.value.message == message
    assert not fake.launches


def test_tensors_of_two_gpus_are_refused(fake: FakeDriver) -> None:
    with pytest.raises(ArgumentError, match="scale: x "):
        CudaKernel(SCALE, b"cubin").launch([FakeTensor(1, 0), FakeTensor(2, 1), 1.0, 1], stream=0)


def test_a_gpu_that_is_not_there_is_a_sentence(fake: FakeDriver) -> None:
    with pytest.raises(LaunchError, match="there is no GPU 3: this machine has 3"):
        CudaKernel(SCALE, b"cubin").launch([1, 2, 1.0, 1], gpu=3, stream=0)


def test_a_refused_launch_names_the_call_and_the_launch(fake: FakeDriver) -> None:
    fake.answers["cuLaunchKernel"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(LaunchError) as caught:
        CudaKernel(SCALE, b"cubin").launch([1, 2, 1.0, 1], gpu=0, stream=0)
    assert caught.value.message == (
        "scale (grid (1, 1, 1), 128 threads, 0 bytes): cuLaunchKernel: CUDA_ERROR_INVALID_VALUE, it went wrong"
    )


def test_a_fault_is_explained_once_and_then_named(fake: FakeDriver) -> None:
    kernel = CudaKernel(SCALE, b"cubin")
    kernel.launch([1, 2, 1.0, 1], gpu=0, stream=0)
    fake.answers["cuCtxSynchronize"] = fake.answers["cuLaunchKernel"] = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(KernelError) as first:
        launch_cuda.synchronize(0)
    assert str(first.value) == (
        "TK629: scale faulted on cuda:0 (Fake 0, sm_90): an illegal memory access was encountered\n"
        "  note: the CUDA context of this process is poisoned: no GPU work and no CUDA tensor can be used any more\n"
        "  help: restart the kernel; on the CPU the same call shows the line"
    )
    assert first.value.kind == "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(KernelError) as second:
        kernel.launch([1, 2, 1.0, 1], gpu=0, stream=0)
    assert str(second.value) == "TK629: cuda:0 (Fake 0, sm_90) has faulted before: restart the kernel"


ARGUMENTS = (4096, 8192, 1.0, 1)


def test_what_a_kernel_prints_is_collected_and_the_rest_goes_its_way(fake: FakeDriver, capfd) -> None:
    fake.prints = "x is 3\n"
    kernel = CudaKernel(SCALE, b"cubin", prints=True)
    print("before", end=", ")
    assert kernel.launch(ARGUMENTS, gpu=0, stream=0).printed == "x is 3\n"
    os.write(1, b"after\n")
    assert capfd.readouterr().out == "before, after\n"
    fake.prints = "\n" * 1_000_000
    assert kernel.launch(ARGUMENTS, gpu=0, stream=0).printed == fake.prints


def test_a_kernel_that_prints_nothing_waits_for_nothing(fake: FakeDriver) -> None:
    fake.prints = "of somebody else"
    assert CudaKernel(SCALE, b"cubin").launch(ARGUMENTS, gpu=0, stream=0).printed == ""
    assert ("synchronize", 0x1000) not in fake.calls


def test_while_a_graph_is_captured_nothing_is_waited_for(fake: FakeDriver) -> None:
    fake.capturing, fake.prints = {77}, "later\n"
    kernel = CudaKernel(SCALE, b"cubin", prints=True)
    assert kernel.launch(ARGUMENTS, gpu=0, stream=77).printed == "" and len(fake.launches) == 1
    assert ("synchronize", 0x1000) not in fake.calls
    assert kernel.launch(ARGUMENTS, gpu=0, stream=78).printed == "later\n"


def test_what_was_printed_before_a_fault_is_told_with_it(fake: FakeDriver, capfd) -> None:
    fake.prints = "so far\n"
    fake.answers["cuCtxSynchronize"] = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    with pytest.raises(KernelError) as caught:
        CudaKernel(SCALE, b"cubin", prints=True).launch(ARGUMENTS, gpu=0, stream=0)
    assert caught.value.data["printed"] == "so far\n"
    fake.answers["cuLaunchKernel"] = CUresult.CUDA_ERROR_INVALID_VALUE
    with pytest.raises(LaunchError):
        CudaKernel(SCALE, b"cubin", prints=True).launch(ARGUMENTS, gpu=0, stream=0)
    os.write(1, b"on\n")
    assert capfd.readouterr().out == "on\n", "the descriptor is the one that it was"


def test_without_a_standard_output_a_kernel_still_runs() -> None:
    code = (
        "import os\nfrom tilekit.runtime.stdout import Collecting\nos.close(1)\n"
        "with Collecting() as prints: os.write(2, b'ran')\n"
        "os.write(2, repr(prints.text).encode())\n"
        "try: os.fstat(1)\nexcept OSError: os.write(2, b' closed')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "ran'' closed"


def test_threads_do_not_mix_their_arguments(fake: FakeDriver) -> None:
    kernel = CudaKernel(SCALE, b"cubin")

    def launch(number: int) -> None:
        for _ in range(200):
            kernel.launch([number, number, float(number), number], gpu=0, stream=0)

    threads = [threading.Thread(target=launch, args=(number,)) for number in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for *_, values, _ in fake.launches:
        y, x, n = (int.from_bytes(values[i][:4], "little") for i in (0, 1, 3))
        assert y == x == n


def test_what_is_packed_for_good_is_launched_as_it_was(fake: FakeDriver) -> None:
    kernel = CudaKernel(SCALE, b"cubin")
    packed = kernel.pack([4096, 8192, 0.5, 1000], 0)
    assert packed is not None
    kernel.start([1, 2, 3.0, 4], 0, 7)
    kernel.start([4096, 8192, 0.5, 1000], 0, 77)
    assert fake.cuLaunchKernelEx(*packed.on(77)) == 0
    other, wanted, found = fake.launches
    assert found == wanted != other


@pytest.mark.parametrize("why", ["it prints", "it is lent memory", "its grid is empty"])
def test_what_takes_more_than_a_launch_is_not_packed_for_good(fake: FakeDriver, why: str) -> None:
    lent = (Workspace("partial", "4 * n", clean=False),) if why == "it is lent memory" else ()
    kernel = CudaKernel(replace(SCALE, workspaces=lent), b"cubin", prints=why == "it prints")
    assert kernel.pack([4096, 8192, 0.5, 0 if why == "its grid is empty" else 1000], 0) is None


@pytest.mark.parametrize("current", [0, 0x1001], ids=["a new thread", "a context of somebody else"])
def test_on_a_machine_with_one_gpu_its_context_is_pushed_once_a_launch_was_refused(
    fake: FakeDriver, current: int
) -> None:
    fake.capabilities = [(9, 0)]
    fake.current = current
    CudaKernel(SCALE, b"cubin").launch([FakeTensor(1), FakeTensor(2), 1.0, 1], stream=0)
    assert [launch[6] for launch in fake.launches] == [0x1000] and fake.current == current


def test_a_kernel_without_parameters_is_launched(fake: FakeDriver) -> None:
    fake.parameters = 0
    CudaKernel(replace(SCALE, params=(), grid=("4", "2", "1")), b"cubin").launch([], gpu=0, stream=0)
    assert fake.launches[0][1] == (4, 2, 1)


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
reverse(float* y, float* x, int32_t n)
{
  float* tile = tk::shared_ptr<float>(0);
  for (int32_t i = threadIdx.x; i < n; i += 128) tile[i] = x[i];
  __syncthreads();
  for (int32_t i = threadIdx.x; i < n; i += 128) y[i] = tile[n - 1 - i];
}

extern "C" __global__ void __launch_bounds__(128)
small(half* y, __nv_bfloat16* z, half a, __nv_bfloat16 b, int8_t c, double d, bool e)
{
  y[threadIdx.x] = __float2half(__half2float(a) + c);
  z[threadIdx.x] = e ? b : __float2bfloat16((float)d);
}

extern "C" __global__ void __launch_bounds__(128)
say(int32_t n)
{
  for (int32_t i = 0; i < n; ++i) if (threadIdx.x == 0) printf("line %d\\n", i);
}

extern "C" __global__ void __launch_bounds__(128)
wild(float* y, int64_t far)
{
  y[far + threadIdx.x] = 1.0f;
}
"""

Load = Callable[..., CudaKernel]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Compile SOURCE for the GPU that is here."""
    from tilekit.cpusim.build import INCLUDE
    from tilekit.toolchain import nvrtc
    from tilekit.toolchain.binary import Options

    here = target.best_for(device.require().gpus[0].capability)
    binary = nvrtc.compile(SOURCE, here, include=INCLUDE, options=Options(tmp_path_factory.mktemp("headers")))
    return lambda manifest, **options: CudaKernel(replace(manifest, target=here.name), binary.cubin, **options)


@pytest.mark.gpu
class TestOnGpu:
    @pytest.mark.parametrize("n", [1, 127, 128, 100_003])
    def test_a_kernel_writes_its_output(self, load: Load, n: int) -> None:
        x, y = torch.randn(n, device="cuda"), torch.full((n + 1,), 7.0, device="cuda")
        load(SCALE).launch([y[:n], x, 3.0, n])
        launch_cuda.synchronize(0)
        assert torch.equal(y[:n], 3.0 * x)
        assert y[n].item() == 7.0

    def test_it_runs_on_the_current_stream_of_torch(self, load: Load) -> None:
        kernel, n = load(SCALE), 1 << 20
        x, y = torch.ones(n, device="cuda"), torch.zeros(n, device="cuda")
        kernel.launch([y, x, 1.0, n])
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)  # about 0.1 s, on this stream alone
            x.mul_(5.0)
            kernel.launch([y, x, 1.0, n])
        assert not stream.query(), "a launch waits for nothing"
        torch.cuda.current_stream().synchronize()
        stream.synchronize()
        assert torch.equal(y, torch.full_like(y, 5.0)), "and comes after what the stream had to do"

    def test_it_runs_in_a_thread_that_torch_has_not_seen(self, load: Load) -> None:
        kernel = load(SCALE)
        x, y = torch.ones(100, device="cuda"), torch.zeros(100, device="cuda")
        thread = threading.Thread(target=lambda: kernel.launch([y, x, 2.0, 100]))
        thread.start()
        thread.join()
        torch.cuda.synchronize()
        assert torch.equal(y, 2 * x)

    def test_it_is_captured_in_a_graph(self, load: Load) -> None:
        kernel = load(SCALE)
        x, y = torch.ones(100, device="cuda"), torch.zeros(100, device="cuda")
        kernel.launch([y, x, 0.0, 100])
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kernel.launch([y, x, 4.0, 100])
        assert not y.any(), "capturing runs nothing"
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(y, 4 * x)

    def test_what_it_prints_is_collected(self, load: Load, capfd) -> None:
        kernel = load(Manifest("say", (Param("n", "int32"),), ("1", "1", "1"), 128, 0, "sm_90a"), prints=True)
        for n in (3, 0, 2000):
            assert kernel.launch([n]).printed == "".join(f"line {i}\n" for i in range(n))
        assert capfd.readouterr().out == ""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            assert kernel.launch([2]).printed == ""
        graph.replay()
        torch.cuda.synchronize()
        ctypes.CDLL(None).fflush(None)
        assert capfd.readouterr().out == "line 0\nline 1\n"

    @pytest.mark.parametrize("kib", [1, 48, 99])
    def test_dynamic_shared_memory_is_there(self, load: Load, kib: int) -> None:
        n = kib * 256
        params = (Param("y", "~float32", True), Param("x", "~float32"), Param("n", "int32"))
        kernel = load(Manifest("reverse", params, ("1", "1", "1"), 128, 4 * n, "sm_90a"))
        x, y = torch.randn(n, device="cuda"), torch.zeros(n, device="cuda")
        kernel.launch([y, x, n])
        launch_cuda.synchronize(0)
        assert torch.equal(y, x.flip(0))

    def test_scalars_of_every_width_arrive(self, load: Load) -> None:
        params = (
            Param("y", "~float16", True),
            Param("z", "~bfloat16", True),
            Param("a", "float16"),
            Param("b", "bfloat16"),
            Param("c", "int8"),
            Param("d", "float64"),
            Param("e", "bool"),
        )
        kernel = load(Manifest("small", params, ("1", "1", "1"), 128, 0, "sm_90a"))
        y = torch.zeros(128, dtype=torch.float16, device="cuda")
        z = torch.zeros(128, dtype=torch.bfloat16, device="cuda")
        for e, expected in ((True, -0.1), (False, 0.3)):
            kernel.launch([y, z, 0.1, -0.1, -3, 0.3, e])
            launch_cuda.synchronize(0)
            assert torch.equal(y, (torch.full_like(y, 0.1).float() - 3).half())
            assert torch.equal(z, torch.full_like(z, expected))

    def test_an_empty_launch_is_none(self, load: Load) -> None:
        y = torch.zeros(1, device="cuda")
        assert load(SCALE).launch([y, y, 1.0, 0]) is NOTHING_LAUNCHED

    def test_a_cubin_of_another_generation_is_refused_by_name(self, load: Load) -> None:
        y = torch.zeros(1, device="cuda")
        other = "sm_80" if device.require().gpus[0].capability[0] != 8 else "sm_90a"
        with pytest.raises(LaunchError, match=f"scale is compiled for {other}, which cuda:0 "):
            CudaKernel(replace(SCALE, target=other), b"").launch([y, y, 1.0, 1])

    def test_a_launch_costs_microseconds(self, load: Load) -> None:
        import time

        kernel = load(SCALE)
        y = torch.zeros(1, device="cuda")
        arguments = [y, y, 1.0, 1]
        kernel.launch(arguments)
        best = 1.0
        for _ in range(20):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(100):
                kernel.launch(arguments)
            best = min(best, (time.perf_counter() - begin) / 100)
        print(f"one launch: {best * 1e6:.2f} us")
        assert best < 50e-6

    def test_a_fault_is_a_sentence(self) -> None:
        """In a process of its own, because the fault ends all work on the GPU there."""
        run = subprocess.run(
            [sys.executable, "-c", FAULT], capture_output=True, text=True, cwd=Path(__file__).parents[2]
        )
        assert run.returncode == 0, run.stderr
        first, second, _ = run.stdout.split("---\n")
        assert first.startswith("TK629: wild faulted on cuda:0 (")
        assert "the CUDA context of this process is poisoned" in first
        assert "help: restart the kernel" in first
        assert "has faulted before: restart the kernel" in second


FAULT = """
import os, sys, tempfile
from pathlib import Path
import torch
from tests.runtime.test_launch_cuda import SOURCE
from tilekit import target
from tilekit.cpusim.build import INCLUDE
from tilekit.diag import KernelError
from tilekit.runtime import device, launch_cuda
from tilekit.runtime.manifest import Manifest, Param, Workspace
from tilekit.toolchain import nvrtc
from tilekit.toolchain.binary import Options

here = target.best_for(device.require().gpus[0].capability)
binary = nvrtc.compile(SOURCE, here, include=INCLUDE, options=Options(Path(tempfile.mkdtemp())))
params = (Param("y", "~float32", True), Param("far", "int64"))
kernel = launch_cuda.CudaKernel(Manifest("wild", params, ("1", "1", "1"), 128, 0, here.name), binary.cubin)
y = torch.zeros(128, device="cuda")
kernel.launch([y, 1 << 40])
for _ in range(2):
    try:
        launch_cuda.synchronize(0)
    except KernelError as error:
        print(error)
    print("---")
sys.stdout.flush()
os._exit(0)  # nothing on this GPU can be taken down in order any more
"""
