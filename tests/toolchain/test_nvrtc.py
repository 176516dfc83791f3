# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tilekit import target
from tilekit.diag import ToolchainError
from tilekit.toolchain import nvrtc, toolkit
from tilekit.toolchain.binary import Options

pytest.importorskip("cuda.bindings.nvrtc", reason="needs pip install 'tilekit[cuda]'")

TARGETS = [target.SM80, target.SM89, target.SM90A]

SCALE = """\
#include <cuda_fp16.h>
extern "C" __global__ void __launch_bounds__(128) scale(half* y, const half* x, float a, int n)
{
  __shared__ float tile[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? __half2float(x[i]) : 0.0f;
  __syncthreads();
  if (i < n) y[i] = __float2half(a * tile[threadIdx.x ^ 1]);
}
"""


@pytest.fixture(scope="session")
def options(tmp_path_factory: pytest.TempPathFactory) -> Options:
    return Options(header_cache=tmp_path_factory.mktemp("headers"))


@pytest.fixture
def include(tmp_path: Path) -> Path:
    (tmp_path / "include" / "tk").mkdir(parents=True)
    return tmp_path / "include"


@pytest.mark.parametrize("to", TARGETS, ids=str)
def test_a_kernel_compiles_where_there_is_no_gpu(to: target.Target, include: Path, options: Options) -> None:
    binary = nvrtc.compile(SCALE, to, include=include, options=options)
    assert binary.cubin.startswith(b"\x7fELF")
    assert b"scale" in binary.cubin
    assert to.name in binary.log


def test_the_figures_of_ptxas_are_read(include: Path, options: Options) -> None:
    binary = nvrtc.compile(SCALE, target.SM90A, include=include, options=options)
    assert 4 <= binary.registers <= 64
    assert (binary.shared_bytes, binary.stack_bytes, binary.spill_bytes) == (512, 0, 0)
    assert f"Used {binary.registers} registers" in binary.log
    assert 0 < binary.seconds < 60


def test_an_array_indexed_by_data_shows_as_a_stack_frame(include: Path, options: Options) -> None:
    source = """extern "C" __global__ void k(float* x, int n) {
      float a[200];
      for (int i = 0; i < 200; i++) a[i] = x[i];
      __syncthreads();
      for (int i = 0; i < 200; i++) x[a[i] > 0 ? i : (int)a[n]] = a[(i * n) % 200];
    }"""
    assert nvrtc.compile(source, target.SM80, include=include, options=options).stack_bytes == 800


def test_few_registers_show_as_spills(include: Path, options: Options) -> None:
    lines = "".join(f"float v{i} = x[{i} * n]; " for i in range(64))
    uses = " + ".join(f"v{i} * v{63 - i}" for i in range(64))
    source = f'extern "C" __global__ void k(volatile float* x, int n) {{ {lines} __syncthreads(); x[0] = {uses}; }}'
    tight = replace(options, extra=("--maxrregcount=24",))
    assert nvrtc.compile(source, target.SM80, include=include, options=tight).spill_bytes > 0
    assert nvrtc.compile(source, target.SM80, include=include, options=options).spill_bytes == 0


def test_the_headers_of_the_package_are_found(include: Path, options: Options) -> None:
    (include / "tk" / "tk.h").write_text("namespace tk { __device__ inline int twice(int i) { return 2 * i; } }\n")
    source = '#include <tk/tk.h>\nextern "C" __global__ void k(int* x) { x[0] = tk::twice(x[1]); }\n'
    assert nvrtc.compile(source, target.SM89, include=include, options=options).cubin


def test_an_error_names_its_line_of_source_cu(include: Path, options: Options) -> None:
    broken = SCALE.replace("a * tile", "alpha * tile").replace("int i = blockIdx", "int i = + * blockIdx")
    with pytest.raises(ToolchainError) as caught:
        nvrtc.compile(broken, target.SM90A, include=include, options=options)
    assert caught.value.code == "TK501"
    assert caught.value.message == (
        'source.cu line 5: operand of "*" must be a pointer but has type "unsigned int" (and 1 more error)'
    )
    assert [message.line for message in caught.value.data["messages"]] == [5, 8]  # pyright: ignore


def test_an_error_in_a_header_names_the_call_in_source_cu(include: Path, options: Options) -> None:
    (include / "tk" / "tk.h").write_text("template <class T> __device__ void f(T t) { t.foo(); }\n")
    source = '#include <tk/tk.h>\n\nextern "C" __global__ void k(int* x)\n{\n  f(x[0]);\n}\n'
    with pytest.raises(ToolchainError) as caught:
        nvrtc.compile(source, target.SM80, include=include, options=options)
    assert caught.value.message.startswith("source.cu line 5: expression must have class type")
    assert "NVRTC points at tk/tk.h:1:45" in str(caught.value)


def test_an_error_of_ptxas_names_its_line_of_source_cu(include: Path, options: Options) -> None:
    source = (
        'extern "C" __global__ void k(int* x)\n{\n  x[0] = 1;\n  asm volatile("frobnicate.b32 %0;" :: "r"(x[1]));\n}\n'
    )
    with pytest.raises(ToolchainError) as caught:
        nvrtc.compile(source, target.SM80, include=include, options=options)
    assert caught.value.message == "source.cu line 4: Not a name of any known instruction: 'frobnicate'"


def test_a_target_that_the_compiler_does_not_know_is_a_sentence(include: Path, options: Options) -> None:
    with pytest.raises(ToolchainError) as caught:
        nvrtc.compile(SCALE, target.SM70, include=include, options=options)
    assert caught.value.code == "TK504"
    assert caught.value.message.startswith(f"{nvrtc.version()} does not compile for sm_70: it knows sm_75, sm_80, ")


def test_threads_may_compile_side_by_side(include: Path, options: Options) -> None:
    with ThreadPoolExecutor(2) as pool:
        binaries = list(pool.map(lambda to: nvrtc.compile(SCALE, to, include=include, options=options), TARGETS * 2))
    assert [binary.cubin for binary in binaries[:3]] == [binary.cubin for binary in binaries[3:]]


def test_optimization_can_be_switched_off(include: Path, options: Options) -> None:
    slow = nvrtc.compile(SCALE, target.SM90A, include=include, options=replace(options, ptxas_optimization=False))
    assert slow.cubin != nvrtc.compile(SCALE, target.SM90A, include=include, options=options).cubin


def test_the_version_is_known_without_loading_the_library() -> None:
    code = (
        "from tilekit.toolchain import nvrtc; import sys; print(nvrtc.version(), 'cuda.bindings.nvrtc' in sys.modules)"
    )
    words = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert words[0] == "NVRTC"
    assert words[2] == "False"


def test_a_header_cache_that_cannot_be_written_is_no_reason_to_stop(include: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    binary = nvrtc.compile(SCALE, target.SM90A, include=include, options=Options(tmp_path / "file" / "headers"))
    assert binary.cubin.startswith(b"\x7fELF")


class OldLibrary:
    """An NVRTC that only knows its version."""

    class nvrtcResult:
        NVRTC_SUCCESS = 0

    def nvrtcVersion(self) -> tuple[int, int, int]:
        return 0, 13, 0


def test_an_nvrtc_without_headers_and_no_toolkit_says_where_it_looked(
    include: Path, options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvrtc, "_library", OldLibrary)
    monkeypatch.setattr(toolkit, "headers", lambda: None)
    with pytest.raises(ToolchainError) as caught:
        nvrtc.compile(SCALE, target.SM90A, include=include, options=options)
    assert str(caught.value) == (
        "TK503: no CUDA headers for NVRTC 13.0: cuda_fp16.h is in none of $CUDA_HOME, $CUDA_PATH, the nvcc on PATH, "
        "/usr/local/cuda, and the nvidia-cuda-runtime wheel\n"
        "  help: pip install 'nvidia-cuda-nvrtc>=13.3', which carries them, or set CUDA_HOME to a CUDA toolkit"
    )


MISSING = """
import sys
from pathlib import Path
{breakage}
from tilekit import target
from tilekit.toolchain import nvrtc
from tilekit.toolchain.binary import Options
try:
    nvrtc.compile("", target.SM90A, include=Path("."), options=Options(Path(".")))
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("breakage", "missing"),
    [
        ("sys.modules['cuda.bindings'] = None", "the Python package cuda-bindings"),
        (
            "from cuda import pathfinder\n"
            "from cuda.bindings import nvrtc as n\n"
            "class NoLibrary:\n"
            "    def nvrtcVersion(self): raise pathfinder.DynamicLibNotFoundError('nvrtc')\n"
            "sys.modules['cuda.bindings.nvrtc'] = sys.modules['cuda.bindings'].nvrtc = NoLibrary()",
            "NVRTC, NVIDIA's runtime compiler",
        ),
    ],
    ids=["binding", "library"],
)
def test_a_missing_nvrtc_is_one_sentence_with_what_to_install(breakage: str, missing: str) -> None:
    code = MISSING.format(breakage=breakage)
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == (
        f"ToolchainError TK502: {missing} is not installed: CUDA code cannot be compiled\n"
        "  help: pip install 'tilekit[cuda]'\n"
    )


def test_compiling_needs_no_driver() -> None:
    """The driver's library is not loaded by a compile, so a machine without one can make cubins."""
    code = (
        "from pathlib import Path; from tilekit import target; from tilekit.toolchain import nvrtc\n"
        "from tilekit.toolchain.binary import Options; import tempfile\n"
        "folder = Path(tempfile.mkdtemp())\n"
        "nvrtc.compile('', target.SM90A, include=folder, options=Options(folder))\n"
        "print('libcuda.so' in Path('/proc/self/maps').read_text())\n"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
