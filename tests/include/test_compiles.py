# SPDX-License-Identifier: Apache-2.0
"""Every function of the headers compiles for every target, with no GPU, and keeps its registers in registers."""

import pytest

from tests.cpusim import harness
from tests.include import sources
from tilekit.cpusim import build
from tilekit.target import parse
from tilekit.toolchain import nvcc
from tilekit.toolchain.binary import Options

SOURCES = sources.everything()
# what sm_89 has more, sm_90a has as well
TARGETS = ["sm_80", pytest.param("sm_89", marks=pytest.mark.slow), "sm_90a"]


def together(target: str) -> str:
    """All kernels for a target in one source, since most of a compile is reading the headers; a prefix makes their
    names unique."""
    has = parse(target).capability
    return sources.HEADER + "\n".join(
        text.removeprefix(sources.HEADER).replace(" void ", f" void s{i}_").replace("TK_KERNEL(", f"TK_KERNEL(s{i}_")
        for i, (name, text) in enumerate(SOURCES.items())
        if parse(sources.FIRST_TARGET.get(name, "sm_80")).capability <= has
    )


@pytest.fixture(scope="module")
def header_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("headers")


@pytest.mark.parametrize("name", SOURCES)
def test_for_the_cpu_without_a_warning(name, tmp_path):
    (tmp_path / "source.cu").write_text(SOURCES[name])
    result = harness.compiler().build_kernel(tmp_path / "source.cu", tmp_path / "lib.so", include=build.INCLUDE)
    assert result.log == ""


@pytest.mark.parametrize("target", TARGETS)
def test_by_nvrtc(target, header_cache):
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilekit.toolchain import nvrtc

    binary = nvrtc.compile(together(target), parse(target), include=build.INCLUDE, options=Options(header_cache))
    assert binary.cubin


# the headers ask in one place which compiler reads them: one target by nvcc tells whether both can
@pytest.mark.nvcc
@pytest.mark.parametrize("target", [pytest.param("sm_80", marks=pytest.mark.slow), *TARGETS[1:]])
def test_by_nvcc(target, header_cache):
    binary = nvcc.compile(together(target), parse(target), include=build.INCLUDE, options=Options(header_cache))
    assert binary.cubin


IN_REGISTERS = ("vectors", "exchanges of half", "casts from float", "casts from half", "shared vectors", "matrix loads")


@pytest.mark.parametrize("name", [*IN_REGISTERS, "copies", *(name for name in SOURCES if name.startswith("mma"))])
def test_nothing_goes_through_local_memory(name, header_cache):
    pytest.importorskip("cuda.bindings.nvrtc")
    from tilekit.toolchain import nvrtc

    binary = nvrtc.compile(SOURCES[name], parse("sm_80"), include=build.INCLUDE, options=Options(header_cache))
    assert (binary.stack_bytes, binary.spill_bytes) == (0, 0)
