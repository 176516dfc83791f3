# SPDX-License-Identifier: Apache-2.0
"""Timing in the child process: the first half on a GPU made of Python, the second, marked `gpu`, on a real one."""

import json
import statistics
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.runtime.fake_gpu import CUresult
from tests.runtime.test_gpu_child import ENDLESS, SCALE, SCALES, SOURCE, Case, binary, case, child, gpu, when_running
from tilekit import target
from tilekit.cpusim.build import INCLUDE
from tilekit.diag import KernelError, LaunchError
from tilekit.runtime import benchmark, device
from tilekit.runtime.gpu_child import GpuChild, Times
from tilekit.runtime.launch_cuda import CudaKernel
from tilekit.toolchain import nvrtc
from tilekit.toolchain.binary import Options

__all__ = ["case", "child", "gpu"]  # the fixtures


def prints_calls(child: GpuChild, case: Case, calls: str) -> Any:
    """What the fake driver was asked so far."""
    shows = f"import json\nprint(json.dumps([call for call in gpu.calls if call[0] in {calls}]))"
    return json.loads(child.run(SCALE, binary(shows), case.arguments).printed)


def test_a_kernel_is_timed_and_nothing_comes_back(child: GpuChild, case: Case) -> None:
    before = case.snapshot()
    times = child.time(SCALE, binary(SCALES), case.arguments, repeat=20)
    assert times == Times((0.0015,) * 20)
    assert case.snapshot() == before


def test_runs_wait_behind_a_gate_and_begin_with_a_cold_cache(child: GpuChild, case: Case) -> None:
    kernel = binary(f"{SCALES}\n    gpu.calls.append(('run',))")
    child.time(SCALE, kernel, case.arguments, repeat=10)
    flush = ["flush", benchmark.FLUSH_BYTES // 16]
    first, few, others = [["run"]], [flush, ["run"]] * 3, [flush, ["run"]] * 7
    assert prints_calls(child, case, "('flush', 'run', 'gate')") == [*first, ["gate", 0], *few, ["gate", 0], *others]


def test_what_cools_the_cache_is_compiled_once(child: GpuChild, case: Case) -> None:
    for _ in range(3):
        child.time(SCALE, binary(SCALES), case.arguments, repeat=4)
    assert prints_calls(child, case, "('compile',)") == [["compile"]]


def test_runs_that_only_warm_up_do_not_count(child: GpuChild, case: Case) -> None:
    kernel = binary(f"{SCALES}\n    gpu.n = getattr(gpu, 'n', 0) + 1\n    gpu.elapsed_ms = float(gpu.n)")
    assert child.time(SCALE, kernel, case.arguments, repeat=3, warmup=4).seconds == (0.008,) * 3


def test_what_timing_took_is_given_back(child: GpuChild, case: Case) -> None:
    for _ in range(2):
        child.time(SCALE, binary(SCALES), case.arguments, repeat=5)
    assert child.run(SCALE, binary("print(len(gpu.live))"), case.arguments).printed == "2\n"


@pytest.mark.parametrize(("leader", "runs", "hopeless"), [(None, 12, False), (0.001, 12, False), (0.0005, 3, True)])
def test_a_kernel_that_is_far_behind_runs_a_few_times(
    child: GpuChild, case: Case, leader: float | None, runs: int, hopeless: bool
) -> None:
    assert child.time(SCALE, binary(SCALES), case.arguments, repeat=12, leader=leader) == Times(
        (0.0015,) * runs, hopeless
    )


def test_a_kernel_that_takes_long_runs_a_few_times(child: GpuChild, case: Case) -> None:
    slow = binary(f"{SCALES}\n    gpu.elapsed_ms = 200.0")
    assert len(child.time(SCALE, slow, case.arguments, repeat=100).seconds) == 3


def test_a_crash_or_a_hang_costs_this_kernel_alone(child: GpuChild, case: Case) -> None:
    before = case.snapshot()
    for kernel, kind in (
        (binary("raise Fault()"), "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (ENDLESS, "timeout"),
        (binary("gpu.array(0, 1, -1)[0] = 1.25"), "out_of_bounds"),
        # well the first time
        (binary("gpu.n = getattr(gpu, 'n', 0) + 1\nif gpu.n > 4: raise Fault()"), "CUDA_ERROR_ILLEGAL_ADDRESS"),
    ):
        with pytest.raises(KernelError) as caught:
            child.time(SCALE, kernel, case.arguments, repeat=10, timeout_s=3.0)
        assert caught.value.kind == kind
        assert len(child.time(SCALE, binary(SCALES), case.arguments, repeat=5).seconds) == 5
    assert case.snapshot() == before


def test_copies_that_do_not_fit_are_told_by_their_kind(
    child: GpuChild, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GPU", json.dumps({"cuMemAlloc": CUresult.CUDA_ERROR_OUT_OF_MEMORY.value}))
    with pytest.raises(LaunchError) as caught:
        child.time(SCALE, binary(SCALES), case.arguments, repeat=5)
    assert caught.value.data["kind"] == "CUDA_ERROR_OUT_OF_MEMORY"


def test_a_grid_with_a_zero_takes_no_time(child: GpuChild, case: Case) -> None:
    assert child.time(SCALE, binary("raise Fault()"), [case.y, case.x, 1.0, 0], repeat=5) == Times((0.0,))
    assert child.pid is None


def test_an_interrupt_ends_a_timing(child: GpuChild, case: Case) -> None:
    thread = when_running(child, child.interrupt)
    with pytest.raises(KernelError) as caught:
        child.time(SCALE, ENDLESS, case.arguments, repeat=5)
    thread.join()
    assert caught.value.kind == "interrupted"


# ------------------------------------------------------------------------------------------------- on a real GPU


@pytest.mark.gpu
class TestOnGpu:
    @pytest.fixture(scope="class")
    def there(self, tmp_path_factory):
        here = target.best_for(device.require().gpus[0].capability)
        cubin = nvrtc.compile(SOURCE, here, include=INCLUDE, options=Options(tmp_path_factory.mktemp("headers"))).cubin
        made = GpuChild(0)
        yield made, cubin, replace(SCALE, target=here.name)
        made.close()

    def test_it_agrees_with_events_in_this_process(self, there) -> None:
        child, cubin, manifest = there
        n = 1 << 26
        x, y = torch.randn(n, device="cuda"), torch.full((n,), 7.0, device="cuda")
        times = child.time(manifest, cubin, [y, x, 2.0, n], repeat=50)
        assert torch.equal(y, torch.full_like(y, 7.0))
        kernel = CudaKernel(manifest, cubin)
        here = benchmark.measure(lambda: kernel.launch([y, x, 2.0, n]), repeat=50)
        print(f"in the child {statistics.median(times.seconds)} s, here {here.median} s")
        assert len(times.seconds) == 50 and not times.hopeless
        assert 0.8 < statistics.median(times.seconds) / here.median < 1.25

    def test_the_cache_is_cold_in_every_run(self, there) -> None:
        """What would fit into it is read from memory: no faster than memory is."""
        child, cubin, manifest = there
        n = 2_000_000
        x, y = torch.randn(n, device="cuda"), torch.zeros(n, device="cuda")
        seconds = statistics.median(child.time(manifest, cubin, [y, x, 2.0, n], repeat=50).seconds)
        for _ in range(3):
            torch.mul(x, 2.0, out=y)
        warm = benchmark.measure(lambda: torch.mul(x, 2.0, out=y), repeat=50, clear_l2_cache=False).median
        print(f"cold {seconds} s, torch with a warm cache {warm} s")
        assert seconds > 1.1 * warm

    @pytest.mark.parametrize(("kernel", "kind"), [("wild", None), ("trap", None), ("endless", "timeout")])
    def test_what_faults_or_hangs_harms_nothing(self, there, kernel: str, kind: str | None) -> None:
        child, cubin, manifest = there
        x, y = torch.randn(1000, device="cuda"), torch.full((1000,), 7.0, device="cuda")
        with pytest.raises(KernelError) as caught:
            child.time(replace(manifest, kernel=kernel), cubin, [y, x, 2.0, 1000], repeat=10, timeout_s=2.0)
        assert kind in (None, caught.value.kind)
        assert torch.equal(y, torch.full_like(y, 7.0))
        assert child.time(manifest, cubin, [y, x, 2.0, 1000], repeat=10).seconds
