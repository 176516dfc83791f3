# SPDX-License-Identifier: Apache-2.0
"""The host compiler is found where it should be, and what it refuses becomes an error with lines."""

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from tilekit.diag import ToolchainError
from tilekit.toolchain import host
from tilekit.toolchain.messages import Severity


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    host._probe.cache_clear()
    yield
    host._probe.cache_clear()


@pytest.fixture
def compiler() -> host.HostCompiler:
    found = host.find_compiler()
    if found is None:
        pytest.skip("no C++ compiler here")
    return found


@pytest.fixture
def no_compiler(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_cxx_is_used_if_it_is_set(monkeypatch, tmp_path):
    fake = script(tmp_path / "mycxx", 'echo "my compiler 7.5 $*"; echo more')
    monkeypatch.setenv("CXX", f"{fake} --fast")
    found = host.find_compiler()
    assert found is not None
    assert found.command == (str(fake), "--fast")
    assert found.version == "my compiler 7.5 --fast --version"
    assert found.version in found.identity


def test_a_cxx_that_does_not_run_is_an_error_not_another_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "/no/such/compiler")
    with pytest.raises(ToolchainError) as caught:
        host.find_compiler()
    assert str(caught.value) == (
        "TK507: $CXX is '/no/such/compiler', which does not run: No such file or directory\n"
        "  help: set CXX to a C++ compiler, or unset it to let g++, clang++ or ziglang be found"
    )
    monkeypatch.setenv("CXX", str(script(tmp_path / "broken", "echo license expired >&2; exit 3")))
    with pytest.raises(ToolchainError, match="which does not run: license expired"):
        host.find_compiler()


def test_no_compiler_is_none_and_requiring_one_says_what_to_install(no_compiler):
    assert host.find_compiler() is None
    with pytest.raises(ToolchainError) as caught:
        host.require_compiler()
    assert str(caught.value) == (
        "TK506: there is no C++ compiler to build kernels for the CPU: $CXX is not set, and neither g++, clang++ nor "
        "`python -m ziglang c++` is there\n"
        "  help: install one, for example `apt install g++`, `conda install gxx` or `pip install ziglang`"
    )


def test_ziglang_is_the_last_resort(no_compiler, monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "ziglang" else None)
    monkeypatch.setattr(sys, "executable", str(script(tmp_path / "python", 'echo "clang $*"')))
    found = host.find_compiler()
    assert found is not None
    assert found.version == "clang -m ziglang c++ --version"
    assert "-fno-sanitize=all" in found.identity


def test_a_source_that_does_not_compile_names_its_line(compiler, tmp_path):
    (tmp_path / "source.cu").write_text("int f() { return 0; }\nint g() { return h; }\n")
    with pytest.raises(ToolchainError) as caught:
        compiler.build_kernel(tmp_path / "source.cu", tmp_path / "lib.so", include=tmp_path)
    assert str(caught.value).startswith("TK501: source.cu line 2: ")
    found = caught.value.data["messages"]
    assert isinstance(found, tuple)
    assert (found[0].line, found[0].severity) == (2, Severity.ERROR)


def test_building_says_how_long_it_took(compiler, tmp_path):
    (tmp_path / "source.cu").write_text('extern "C" int f() { return 0; }\n')
    result = compiler.build_kernel(tmp_path / "source.cu", tmp_path / "lib.so", include=tmp_path)
    assert 0 < result.seconds < 60
    assert result.log == ""
    assert (tmp_path / "lib.so").is_file()


def test_a_kernel_library_says_source_cu_wherever_it_lay(compiler, tmp_path):
    """So two builds of one source differ in nothing but the folder in their line table."""
    (tmp_path / "source.cu").write_text('extern "C" int f() { return 0; }\n')
    compiler.build_kernel(tmp_path / "source.cu", tmp_path / "lib.so", include=tmp_path)
    assert str(tmp_path / "source.cu").encode() not in (tmp_path / "lib.so").read_bytes()
