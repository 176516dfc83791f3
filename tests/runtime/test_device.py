# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runtime.fake_driver import CUresult, FakeDriver
from tilekit.diag import LaunchError
from tilekit.runtime import device
from tilekit.runtime.device import Survey, look, too_old


def test_the_gpus_are_described() -> None:
    survey = look(FakeDriver(version=13020, capabilities=[(9, 0), (8, 9)]))
    assert survey.problem is None
    assert survey.cuda == (13, 2)
    assert [str(gpu) for gpu in survey.gpus] == ["cuda:0 (Fake 0, sm_90)", "cuda:1 (Fake 1, sm_89)"]
    first = survey.gpus[0]
    assert (first.memory_bytes, first.multiprocessors, first.shared_memory_per_block) == (80 << 30, 132, 232448)


def test_an_old_driver_is_one_sentence_with_both_versions() -> None:
    assert look(FakeDriver(version=12040), release=lambda: "550.54.15") == Survey(
        (12, 4),
        problem="the NVIDIA driver 550.54.15 speaks CUDA 12.4 and tilekit needs CUDA 13.0, driver r580 or newer: "
        "kernels run on the CPU",
    )
    assert too_old((12, 9)) == (
        "the NVIDIA driver speaks CUDA 12.9 and tilekit needs CUDA 13.0, driver r580 or newer: kernels run on the CPU"
    )


def test_an_old_driver_is_asked_nothing_more() -> None:
    broken = FakeDriver(version=12090, answers={"cuInit": CUresult.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH})
    assert "needs CUDA 13.0" in (look(broken).problem or "")


def test_the_version_of_the_driver_is_read_from_the_kernel_module(tmp_path: Path) -> None:
    version = tmp_path / "version"
    lines = {
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024": "550.54.15",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root)": "580.65.06",
        "something else": None,
    }
    for line, release in lines.items():
        version.write_text(line + "\nGCC version:  gcc version 12.2.0\n")
        assert device._release(version) == release
    assert device._release(tmp_path / "gone") is None


@pytest.mark.parametrize(
    "driver", [FakeDriver(version=0), FakeDriver(answers={"cuInit": CUresult.CUDA_ERROR_NO_DEVICE})]
)
def test_a_library_without_a_gpu_behind_it_is_no_problem(driver: FakeDriver) -> None:
    assert look(driver).problem is None
    assert look(driver).gpus == ()


def test_a_driver_that_does_not_work_says_why() -> None:
    broken = FakeDriver(answers={"cuInit": CUresult.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH})
    assert look(broken).problem == (
        "the NVIDIA driver does not work (cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, it went wrong): "
        "kernels run on the CPU"
    )


def test_who_needs_a_gpu_gets_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "survey", lambda: Survey((12, 4), problem=too_old((12, 4))))
    with pytest.raises(LaunchError, match=r"speaks CUDA 12\.4 and tilekit needs CUDA 13\.0"):
        device.require()
    monkeypatch.setattr(device, "survey", Survey)
    with pytest.raises(LaunchError, match="this machine has no NVIDIA GPU that its driver can see"):
        device.require()


def test_who_looks_for_gpus_loads_neither_torch_nor_the_binding_of_nvidia() -> None:
    code = (
        "import sys; from tilekit.runtime import device; device.survey(); print({'torch', 'cuda'} & set(sys.modules))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "set()\n"


@pytest.mark.gpu
def test_this_gpu_is_the_one_that_torch_sees() -> None:
    import torch

    survey = device.require()
    assert len(survey.gpus) == torch.cuda.device_count()
    for gpu in survey.gpus:
        seen = torch.cuda.get_device_properties(gpu.index)
        assert (gpu.name, gpu.capability) == (seen.name, (seen.major, seen.minor))
        assert gpu.multiprocessors == seen.multi_processor_count
        assert gpu.memory_bytes >= seen.total_memory
