# SPDX-License-Identifier: Apache-2.0
import re
from pathlib import Path

import pytest

from tilekit import target
from tilekit.diag import ToolchainError
from tilekit.toolchain import nvdisasm, nvrtc, toolkit
from tilekit.toolchain.binary import Options

SCALE = """\
extern "C" __global__ void __launch_bounds__(128) scale(float* y, const float* x, float a, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
"""

PRINTED = """\

\t.target\tsm_80


\t.section\t.text.scale,"ax",@progbits
scale:
\t//## File ".nv_debug_ptx_txt", line 12
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   S2R R0, SR_TID.X ;
\t//## File ".nv_debug_ptx_txt", line 31
        /*0020*/                   EXIT ;
.L_x_0:
\t.section\t.text.other,"ax",@progbits
        /*0000*/                   NOP ;
"""


def test_what_nvdisasm_prints_is_taken_apart_into_text_and_lines_of_ptx() -> None:
    sass = nvdisasm.parse(PRINTED)
    text = sass.text.split("\n")
    assert len(text) == len(sass.lines)
    assert "//##" not in sass.text and "\n\n\n" not in sass.text
    came = {line.split()[1]: ptx for line, ptx in zip(text, sass.lines, strict=True) if "/*" in line}
    assert came == {"MOV": 11, "S2R": 11, "EXIT": 30, "NOP": None}
    assert [ptx for line, ptx in zip(text, sass.lines, strict=True) if "/*" not in line] == [None] * 7
    assert all(re.match(r"  /\*[0-9a-f]+\*/  \S", line) for line in text if "/*" in line)


@pytest.fixture
def binary(tmp_path: Path) -> nvrtc.Binary:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")
    return nvrtc.compile(SCALE, target.SM80, include=tmp_path, options=Options(tmp_path, keep_ptx=True))


@pytest.mark.skipif(toolkit.nvdisasm() is None, reason="needs pip install nvidia-cuda-nvdisasm")
def test_each_instruction_has_a_line_of_the_ptx_that_was_kept(binary: nvrtc.Binary) -> None:
    assert binary.ptx is not None
    sass, ptx = nvdisasm.parse(nvdisasm.disassemble(binary.cubin)), binary.ptx.split("\n")
    came = {line.split()[1]: at for line, at in zip(sass.text.split("\n"), sass.lines, strict=True) if "/*" in line}
    assert came["FMUL"] is not None and "mul.f32" in ptx[came["FMUL"]]
    assert came["STG.E"] is not None and "st.global.f32" in ptx[came["STG.E"]]


@pytest.mark.skipif(toolkit.nvdisasm() is None, reason="needs pip install nvidia-cuda-nvdisasm")
def test_what_is_no_machine_code_is_a_sentence() -> None:
    with pytest.raises(ToolchainError, match="cannot read the kernel") as caught:
        nvdisasm.disassemble(b"\x7fELF and nothing more")
    assert caught.value.code == "TK510"


def test_no_nvdisasm_is_a_sentence_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "nvdisasm", lambda: None)
    with pytest.raises(ToolchainError) as caught:
        nvdisasm.disassemble(b"")
    assert str(caught.value) == (
        "TK510: machine code (SASS) cannot be shown: there is no nvdisasm\n"
        "  help: pip install nvidia-cuda-nvdisasm, or put that of a CUDA toolkit on PATH"
    )


def test_ptx_is_kept_only_where_it_is_asked_for(tmp_path: Path, binary: nvrtc.Binary) -> None:
    assert binary.ptx is not None and ".entry scale(" in binary.ptx
    assert 0 < binary.ptxas_seconds < binary.seconds
    assert nvrtc.compile(SCALE, target.SM80, include=tmp_path, options=Options(tmp_path)).ptx is None
