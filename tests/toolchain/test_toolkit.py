# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tilekit.toolchain import toolkit


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which there is no toolkit at all."""
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(toolkit, "_DEFAULT_ROOT", tmp_path / "default")
    monkeypatch.setattr(toolkit, "_wheel_folders", lambda: iter(()))
    return tmp_path


def make_toolkit(root: Path) -> Path:
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "nvcc").write_text("#!/bin/sh\n")
    (root / "bin" / "nvcc").chmod(0o755)
    (root / "include").mkdir()
    (root / "include" / "cuda_fp16.h").touch()
    return root


def test_a_bare_machine_has_neither(bare: Path) -> None:
    assert toolkit.nvcc() is None
    assert toolkit.headers() is None


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_the_variables_come_first(bare: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    make_toolkit(bare / "default")
    named = make_toolkit(bare / "named")
    monkeypatch.setenv(variable, str(named))
    assert toolkit.nvcc() == named / "bin" / "nvcc"
    assert toolkit.headers() == named / "include"


def test_a_variable_that_names_nothing_is_passed_over(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(bare / "gone"))
    default = make_toolkit(bare / "default")
    assert toolkit.nvcc() == default / "bin" / "nvcc"
    assert toolkit.headers() == default / "include"


def test_a_link_on_path_leads_to_the_headers_of_its_toolkit(bare: Path) -> None:
    real = make_toolkit(bare / "cuda-13.0")
    (bare / "bin").mkdir()
    (bare / "bin" / "nvcc").symlink_to(real / "bin" / "nvcc")
    assert toolkit.nvcc() == bare / "bin" / "nvcc"
    assert toolkit.headers() == real / "include"


def test_the_wheel_of_the_cuda_runtime_is_the_last_resort(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = bare / "site-packages" / "nvidia" / "cu13" / "include"
    wheel.mkdir(parents=True)
    (wheel / "cuda_fp16.h").touch()
    monkeypatch.setattr(toolkit, "_wheel_folders", lambda: iter([wheel]))
    assert toolkit.headers() == wheel
    assert toolkit.nvcc() is None


def test_the_disassembler_is_that_of_a_toolkit_or_of_its_wheel(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert toolkit.nvdisasm() is None

    def put(folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "nvdisasm").write_text("#!/bin/sh\n")
        (folder / "nvdisasm").chmod(0o755)
        return folder / "nvdisasm"

    wheel = bare / "site-packages" / "nvidia" / "cu13"
    monkeypatch.setattr(toolkit, "_wheel_folders", lambda: iter([wheel / "include"]))
    assert put(wheel / "bin") == toolkit.nvdisasm()
    assert put(bare / "default" / "bin") == toolkit.nvdisasm()
    assert put(bare / "bin") == toolkit.nvdisasm()
