# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from pathlib import Path

import pytest

from tilekit import target
from tilekit.diag import ToolchainError
from tilekit.toolchain import nvcc, toolkit
from tilekit.toolchain.binary import Options

SCALE = """\
extern "C" __global__ void __launch_bounds__(128) scale(float* y, const float* x, float a, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
"""


@pytest.mark.nvcc
class TestWithNvcc:
    @pytest.fixture
    def options(self, tmp_path: Path) -> Options:
        return Options(header_cache=tmp_path)

    def test_a_kernel_compiles_where_there_is_no_gpu(self, tmp_path: Path, options: Options) -> None:
        binary = nvcc.compile(SCALE, target.SM90A, include=tmp_path, options=options)
        assert binary.cubin.startswith(b"\x7fELF")
        assert b"scale" in binary.cubin
        assert 4 <= binary.registers <= 64
        assert binary.version.startswith("nvcc ")

    def test_the_ptx_is_kept_where_it_is_asked_for(self, tmp_path: Path, options: Options) -> None:
        kept = nvcc.compile(SCALE, target.SM90A, include=tmp_path, options=replace(options, keep_ptx=True))
        assert kept.ptx is not None and ".entry scale(" in kept.ptx
        assert nvcc.compile(SCALE, target.SM90A, include=tmp_path, options=options).ptx is None

    def test_an_error_names_its_line_of_source_cu(self, tmp_path: Path, options: Options) -> None:
        with pytest.raises(ToolchainError) as caught:
            nvcc.compile(SCALE.replace("a *", "alpha *"), target.SM80, include=tmp_path, options=options)
        assert caught.value.message == 'source.cu line 4: identifier "alpha" is undefined'

    def test_an_error_of_ptxas_names_its_line_of_source_cu(self, tmp_path: Path, options: Options) -> None:
        broken = SCALE.replace("if (i < n)", 'asm volatile("frobnicate;");\n  if (i < n)')
        with pytest.raises(ToolchainError) as caught:
            nvcc.compile(broken, target.SM80, include=tmp_path, options=options)
        assert caught.value.message.startswith("source.cu line 4: ")
        assert "frobnicate" in caught.value.message

    def test_a_target_that_the_compiler_does_not_know_is_a_sentence(self, tmp_path: Path, options: Options) -> None:
        unknown = replace(target.SM80, capability=(7, 7))
        with pytest.raises(ToolchainError) as caught:
            nvcc.compile(SCALE, unknown, include=tmp_path, options=options)
        assert caught.value.message == f"{nvcc.version()} does not compile for sm_77"


def test_no_nvcc_is_a_sentence_with_the_way_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "nvcc", lambda: None)
    with pytest.raises(ToolchainError) as caught:
        nvcc.compile(SCALE, target.SM90A, include=tmp_path, options=Options(header_cache=tmp_path))
    assert str(caught.value) == (
        "TK505: there is no nvcc: none in $CUDA_HOME, $CUDA_PATH, on PATH or in /usr/local/cuda\n"
        "  help: install a CUDA toolkit, or compile with NVRTC: tilekit.option.toolchain('nvrtc')"
    )
