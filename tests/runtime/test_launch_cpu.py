# SPDX-License-Identifier: Apache-2.0
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

from tilekit import config
from tilekit.cpusim.build import INCLUDE, Runtime
from tilekit.cpusim.client import LaunchRequest, LaunchResult
from tilekit.diag import ArgumentError, KernelError, LaunchError
from tilekit.runtime import launch_cpu
from tilekit.runtime.launch import COUNTERS
from tilekit.runtime.launch_cpu import CpuDevice, CpuKernel, merge
from tilekit.runtime.manifest import Manifest, Param
from tilekit.toolchain.host import HostCompiler, find_compiler

BLOCK = 128

Build = Callable[..., CpuKernel]


@pytest.fixture(scope="session")
def compiler() -> HostCompiler:
    found = find_compiler()
    if found is None:
        pytest.skip("there is no C++ compiler")
    return found


@pytest.fixture(scope="session")
def cpu(compiler: HostCompiler, tmp_path_factory: pytest.TempPathFactory) -> CpuDevice:
    return CpuDevice(tmp_path_factory.mktemp("cache"), compiler)


@pytest.fixture(scope="session")
def build(cpu: CpuDevice, tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compile the body of a kernel, with its parameters as (type, name, written)."""

    def compile_kernel(body: str, *params: tuple[str, str, bool], grid: str = "(n + 127) // 128") -> CpuKernel:
        folder = tmp_path_factory.mktemp("kernel")
        listed = ", ".join(f"{c_type(kind)} {name}" for kind, name, _ in params)
        (folder / "source.cu").write_text(
            f'#include <tk/tk.h>\n\nextern "C" __global__ void __launch_bounds__({BLOCK})\nk({listed})\n'
            f"{{\n  int i = blockIdx.x * {BLOCK} + threadIdx.x;\n  {body}\n}}\n\nTK_KERNEL(k)\n"
        )
        cpu.compiler.build_kernel(folder / "source.cu", folder / "lib.so", include=INCLUDE)
        rows = tuple(Param(name, kind, written) for kind, name, written in params)
        manifest = Manifest("k", rows, (grid, "1", "1"), BLOCK, 0, "sm_90a")
        return CpuKernel(manifest, folder / "lib.so", (folder / "lib.so").read_bytes(), cpu)

    return compile_kernel


def c_type(kind: str) -> str:
    base = {
        "float32": "float",
        "float64": "double",
        "float16": "half",
        "bfloat16": "nv_bfloat16",
        "bool": "bool",
        "void_p": "void*",
    }
    return f"{c_type(kind[1:])}*" if kind.startswith("~") else base.get(kind, f"{kind}_t")


INCREMENT = "if (i < n) y[i] = x[i] + 1.0f;"
INCREMENT_PARAMS = (("~float32", "y", True), ("~float32", "x", False), ("int32", "n", False))


@pytest.fixture(scope="session")
def increment(build: Build) -> CpuKernel:
    return build(INCREMENT, *INCREMENT_PARAMS)


@pytest.mark.parametrize("n", [1, 127, 128, 1000, random.randint(2, 5000)], ids=["1", "127", "128", "1000", "any"])
def test_a_kernel_writes_its_output(increment: CpuKernel, n: int) -> None:
    x, y = torch.randn(n), torch.full((n + 1,), 7.0)
    stats = increment.launch([y[:n], x, n])
    assert torch.equal(y[:n], x + 1)
    assert y[n] == 7.0
    assert stats.seconds is not None
    assert stats.counters["blocks"] == -(-n // BLOCK)
    assert stats.counters.keys() == COUNTERS.keys(), "each has its words"


def test_a_library_that_is_deleted_while_it_is_launched_is_written_again(build: Build, monkeypatch) -> None:
    kernel = build(INCREMENT, *INCREMENT_PARAMS)
    run = kernel.device.simulator.run

    def delete_and_run(request: LaunchRequest) -> LaunchResult:
        kernel._library.unlink()
        monkeypatch.undo()
        return run(request)

    monkeypatch.setattr(kernel.device.simulator, "run", delete_and_run)
    x, y = torch.randn(300), torch.zeros(300)
    kernel.launch([y, x, 300])
    assert torch.equal(y, x + 1)


@pytest.mark.parametrize("damage", [b"", b"no library", None], ids=["truncated", "overwritten", "cut"])
@pytest.mark.parametrize("loaded", [False, True], ids=["fresh", "loaded"])
def test_a_library_that_is_not_as_it_was_is_written_again(build: Build, damage: bytes | None, loaded: bool) -> None:
    kernel = build(INCREMENT, *INCREMENT_PARAMS)
    if loaded:
        kernel.launch([torch.zeros(300), torch.randn(300), 300])
    kernel._library.write_bytes(kernel._content[:-1] if damage is None else damage)
    x, y = torch.randn(300), torch.zeros(300)
    kernel.launch([y, x, 300])
    assert torch.equal(y, x + 1)


def test_arrays_and_tensors_may_be_mixed(increment: CpuKernel) -> None:
    x, y = np.random.default_rng().standard_normal(300, np.float32), torch.zeros(300)
    increment.launch([y, x, 300])
    assert np.array_equal(y.numpy(), x + 1)


def test_an_input_is_not_copied_back(build: Build) -> None:
    """The manifest decides: a kernel that writes what it called read-only changes nothing of the caller's."""
    kernel = build("if (i < n) { y[i] = 1.0f; x[i] = 2.0f; }", *INCREMENT_PARAMS)
    x, y = torch.zeros(100), torch.zeros(100)
    kernel.launch([y, x, 100])
    assert torch.equal(y, torch.ones(100))
    assert torch.equal(x, torch.zeros(100))


def test_what_the_kernel_leaves_alone_stays(increment: CpuKernel) -> None:
    x, y = torch.randn(200), torch.randn(200)
    before = y.clone()
    increment.launch([y, x, 50])
    assert torch.equal(y[50:], before[50:])


def test_a_call_in_place_means_what_it_means_on_a_gpu(increment: CpuKernel) -> None:
    x = torch.randn(777)
    expected = x + 1
    increment.launch([x, x, 777])
    assert torch.equal(x, expected)


@pytest.fixture(scope="session")
def shift(build: Build) -> CpuKernel:
    """One block: load, sync, store."""
    return build(
        "float v = i < n ? x[i] : 0.0f; __syncthreads(); if (i < n) y[i] = v + 1.0f;", *INCREMENT_PARAMS, grid="1"
    )


@pytest.mark.parametrize("direction", [1, -1])
def test_overlapping_views_share_their_bytes(shift: CpuKernel, direction: int) -> None:
    n = random.randint(2, 128)
    base = torch.randn(n + 1)
    before = base.clone()
    low, high = base[:-1], base[1:]
    shift.launch([high, low, n] if direction > 0 else [low, high, n])
    if direction > 0:
        assert torch.equal(base, torch.cat([before[:1], before[:-1] + 1]))
    else:
        assert torch.equal(base, torch.cat([before[1:] + 1, before[-1:]]))


def test_views_with_steps_share_their_bytes(build: Build) -> None:
    kernel = build("if (i < n) y[2 * i] = x[2 * i] * 2.0f;", *INCREMENT_PARAMS)
    base = torch.arange(20.0)
    kernel.launch([base[1::2], base[::2], 10])
    assert torch.equal(base[::2], torch.arange(0.0, 20.0, 2))
    assert torch.equal(base[1::2], 2 * torch.arange(0.0, 20.0, 2))


def test_windows_are_united_only_where_they_overlap() -> None:
    assert merge(iter([(0, 4), (4, 8), (6, 10), (20, 30), (22, 24), (40, 40)])) == [(0, 4), (4, 10), (20, 30), (40, 40)]
    assert merge(iter([(5, 5), (0, 10), (0, 10)])) == [(0, 10)]
    assert merge(iter([])) == []


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8", "int64", "float64"])
def test_every_element_type_travels(build: Build, kind: str) -> None:
    kernel = build("if (i < n) y[i] = x[i];", (f"~{kind}", "y", True), (f"~{kind}", "x", False), ("int32", "n", False))
    x = torch.randint(-100, 100, (333,)).to(getattr(torch, kind))
    y = torch.zeros_like(x)
    kernel.launch([y, x, 333])
    assert torch.equal(y, x)


def test_scalars_of_every_width_arrive(build: Build) -> None:
    kernel = build(
        "if (i == 0) { y[0] = a; y[1] = b; y[2] = (float)c; y[3] = (float)d; y[4] = e; y[5] = f; y[6] = g; }",
        ("~float64", "y", True),
        ("int8", "a", False),
        ("uint64", "b", False),
        ("float16", "c", False),
        ("bfloat16", "d", False),
        ("float32", "e", False),
        ("bool", "f", False),
        ("float64", "g", False),
        grid="1",
    )
    y = torch.zeros(7, dtype=torch.float64)
    values = [random.randint(-128, 127), random.randint(0, 2**53), 0.1, -0.1, 1e-3, True, random.random()]
    kernel.launch([y, *values])
    rounded = [
        values[0],
        values[1],
        float(np.float16(0.1)),
        float(ml_dtypes.bfloat16(-0.1)),
        float(np.float32(1e-3)),
        1,
        values[6],
    ]
    assert y.tolist() == [float(value) for value in rounded]


def test_a_bfloat16_array_is_a_bfloat16_tensor(build: Build) -> None:
    kernel = build(
        "if (i < n) y[i] = x[i];", ("~bfloat16", "y", True), ("~bfloat16", "x", False), ("int32", "n", False)
    )
    x = np.arange(64, dtype=ml_dtypes.bfloat16)
    y = torch.zeros(64, dtype=torch.bfloat16)
    kernel.launch([y, x, 64])
    assert torch.equal(y, torch.arange(64, dtype=torch.bfloat16))


@pytest.mark.parametrize("make", [lambda: torch.zeros(0), lambda: np.zeros(0, np.float32), lambda: torch.zeros(4)[2:2]])
def test_an_empty_tensor_is_a_tensor(increment: CpuKernel, make: Callable[[], object]) -> None:
    x = torch.ones(5)
    increment.launch([x, make(), 0])
    assert torch.equal(x, torch.ones(5)), "no blocks, no change"


def test_a_kernel_may_be_launched_on_nothing_but_empty_tensors(build: Build) -> None:
    kernel = build("if (i < n) y[i] = x[i];", *INCREMENT_PARAMS, grid="1")
    kernel.launch([torch.zeros(0), torch.zeros(0), 0])


def test_a_grid_with_a_zero_launches_nothing(increment: CpuKernel) -> None:
    y = torch.zeros(5)
    stats = increment.launch([y, torch.ones(5), 0])
    assert stats.seconds == 0.0
    assert not y.any()


@pytest.mark.parametrize(("n", "message"), [(-1000, "k: the grid has -7 blocks along x, negative")])
def test_a_grid_out_of_range_is_a_sentence(increment: CpuKernel, n: int, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        increment.launch([torch.zeros(1), torch.zeros(1), n])
    assert caught.value.message == message


def test_an_output_larger_than_64_megabytes_comes_back(build: Build) -> None:
    kernel = build("if (i == 0) { y[0] = 1; y[n - 1] = 2; }", ("~int8", "y", True), ("int64", "n", False), grid="1")
    n = (64 << 20) + random.randint(1, 5000)
    y = torch.zeros(n, dtype=torch.int8)
    stats = kernel.launch([y, n])
    assert (int(y[0]), int(y[-1]), int(y[1:-1].count_nonzero())) == (1, 2, 0)
    assert stats.seconds is not None
    assert stats.copy_seconds > stats.seconds, "copying is timed apart"


@pytest.mark.parametrize("offset", range(5))
def test_a_tensor_keeps_its_alignment(build: Build, offset: int) -> None:
    """Code compiled for aligned pointers gets aligned ones, and no others pass for aligned."""
    kernel = build(
        "if (i == 0) y[0] = (int64_t)(uint64_t)x % 16;", ("~int64", "y", True), ("~float32", "x", False), grid="1"
    )
    x, y = torch.zeros(64)[offset:], torch.zeros(1, dtype=torch.int64)
    kernel.launch([y, x])
    assert y.item() == x.data_ptr() % 16


def test_after_an_access_out_of_bounds_no_tensor_has_changed(build: Build) -> None:
    kernel = build(
        "y[i] = 1.0f;\n  z[i] = 2.0f;", *INCREMENT_PARAMS[:2], ("~float32", "z", True), ("int32", "n", False), grid="n"
    )
    y, z = torch.zeros(10_000), torch.zeros(2, 50)
    with pytest.raises(KernelError) as caught:
        kernel.launch([y, torch.zeros(1), z, 60])
    assert not y.any()
    assert not z.any()
    error = caught.value
    assert error.kind == "out_of_bounds"
    assert (error.data["tensor"], error.data["line"], error.data["shape"]) == ("z", 8, (2, 50))
    assert "note: z is float32[2, 50], 400 bytes" in str(error)
    kernel.launch([torch.zeros(10_000), torch.zeros(1), torch.zeros(60 * BLOCK), 60])


def test_after_an_endless_loop_no_tensor_has_changed_and_the_next_launch_works(
    build: Build, increment: CpuKernel
) -> None:
    endless = build("y[i] = 1.0f; while (x[0] == 0.0f) { }", *INCREMENT_PARAMS, grid="1")
    y = torch.zeros(BLOCK)
    with pytest.raises(KernelError) as caught:
        endless.launch([y, torch.zeros(1), 1], timeout_s=0.3)
    assert caught.value.kind == "timeout"
    assert not y.any()
    increment.launch([y, torch.zeros(BLOCK), BLOCK])
    assert torch.equal(y, torch.ones(BLOCK))


def test_threads_may_launch_at_the_same_time(increment: CpuKernel) -> None:
    tensors = [torch.full((500,), float(i)) for i in range(4)]

    def launch(x: torch.Tensor) -> None:
        for _ in range(10):
            increment.launch([x, x, 500])

    threads = [threading.Thread(target=launch, args=(x,)) for x in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [x.unique().tolist() for x in tensors] == [[i + 10.0] for i in range(4)]


def test_the_cache_may_be_deleted_between_two_launches(
    compiler: HostCompiler, increment: CpuKernel, tmp_path: Path
) -> None:
    cpu = CpuDevice(tmp_path / "cache", compiler)
    library = tmp_path / "programs" / "lib.so"
    library.parent.mkdir()
    content = increment._content
    library.write_bytes(content)
    kernel = CpuKernel(increment.manifest, library, content, cpu)
    y = torch.zeros(3)
    kernel.launch([y, y, 3])
    shutil.rmtree(tmp_path / "cache")
    shutil.rmtree(tmp_path / "programs")
    kernel.launch([y, y, 3])
    cpu.simulator.close()  # as after a crash: a new worker must start
    kernel.launch([y, y, 3])
    assert y.tolist() == [3.0] * 3
    cpu.simulator.close()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (140_000_000, "k: x is the address 140000000, and on the CPU a pointer must be given as a tensor"),
        (None, "k: x is a NoneType, and on the CPU a pointer must be given as a tensor"),
        (torch.zeros(1, device="meta"), "k: x is on meta, and the kernel is launched on the CPU"),
    ],
    ids=["address", "none", "meta"],
)
def test_what_is_no_tensor_of_the_cpu_is_refused(increment: CpuKernel, wrong: object, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        increment.launch([torch.zeros(1), wrong, 1])
    assert caught.value.message == message


def test_a_read_only_array_may_be_read_and_not_written(increment: CpuKernel) -> None:
    array = np.zeros(4, np.float32)
    array.setflags(write=False)
    y = torch.zeros(4)
    increment.launch([y, array, 4])
    assert torch.equal(y, torch.ones(4))
    with pytest.raises(ArgumentError) as caught:
        increment.launch([array, y, 4])
    assert caught.value.message == "k writes y, and that array is read-only"
    assert not array.any()


def test_too_few_arguments_are_counted(increment: CpuKernel) -> None:
    with pytest.raises(ArgumentError, match="k takes 3 arguments, and 2 were given"):
        increment.launch([torch.zeros(1), torch.zeros(1)])


def test_a_number_too_large_for_its_parameter_is_refused(increment: CpuKernel) -> None:
    with pytest.raises(ArgumentError, match=r"k: n = 2147483648 does not fit int32"):
        increment.launch([torch.zeros(1), torch.zeros(1), 2**31])


def test_what_a_kernel_prints_comes_back(build: Build) -> None:
    kernel = build('if (i == 0) printf("n = %d\\n", n);', *INCREMENT_PARAMS)
    assert kernel.launch([torch.zeros(5), torch.zeros(5), 5]).printed == "n = 5\n"


def test_where_the_cache_cannot_be_written_the_runtime_belongs_to_this_process(tmp_path, monkeypatch):
    asked: list[Path] = []

    def build(root: Path, compiler: HostCompiler) -> Runtime:
        asked.append(root)
        if len(asked) == 1:
            raise config.unwritable_cache(root, OSError(30, "Read-only file system"))
        return Runtime(root / "libtkcpu.so", 0.5)

    monkeypatch.setattr(launch_cpu, "build_runtime", build)
    monkeypatch.setattr(launch_cpu, "Simulator", lambda library: library)
    device = CpuDevice(tmp_path, HostCompiler(("c++",), "1", ()))
    assert asked == [tmp_path, config.private_folder()]
    assert device.build_seconds() == 0.5
