# SPDX-License-Identifier: Apache-2.0
"""The runtime is built once for each compiler and each version of its sources, whoever asks first."""

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cpusim import harness
from tilekit.cpusim import build, worker
from tilekit.diag import ConfigError
from tilekit.toolchain.host import BuildResult, HostCompiler


class FakeCompiler(HostCompiler):
    """Counts what it builds."""

    built = 0

    def build_runtime(self, sources, library, *, include):
        assert [source.suffix for source in sources] == [".cpp"] * len(sources)
        FakeCompiler.built += 1
        library.write_bytes(b"a library")
        return BuildResult(1.5, "")


@pytest.fixture
def compiler():
    FakeCompiler.built = 0
    return FakeCompiler(("c++",), "c++ 1.0", ())


def test_the_second_call_finds_it(tmp_path, compiler):
    first = build.build_runtime(tmp_path, compiler)
    assert (first.library.read_bytes(), first.seconds) == (b"a library", 1.5)
    assert build.build_runtime(tmp_path, compiler) == build.Runtime(first.library, 0.0)
    assert compiler.built == 1


def test_another_compiler_gets_another_one(tmp_path, compiler):
    first = build.build_runtime(tmp_path, compiler)
    for other in (
        dataclasses.replace(compiler, version="c++ 1.1"),
        dataclasses.replace(compiler, cpu_flags=("-mfma",)),
    ):
        assert build.build_runtime(tmp_path, other).library != first.library


def test_a_damaged_library_is_built_again(tmp_path, compiler):
    library = build.build_runtime(tmp_path, compiler).library
    library.write_bytes(b"a lib")
    assert build.build_runtime(tmp_path, compiler).seconds == 1.5
    assert library.read_bytes() == b"a library"


def test_nothing_is_left_of_a_failed_build(tmp_path, compiler, monkeypatch):
    def fail(self, sources, library, *, include):
        library.write_bytes(b"half")
        raise ValueError

    monkeypatch.setattr(FakeCompiler, "build_runtime", fail)
    with pytest.raises(ValueError):
        build.build_runtime(tmp_path, compiler)
    assert [path.suffix for path in (tmp_path / "cpusim").iterdir()] in ([], [".lock"])


def test_the_cache_may_be_deleted_while_it_is_built(tmp_path, compiler, monkeypatch):
    build_it = FakeCompiler.build_runtime

    def build_while_somebody_deletes(self, sources, library, *, include):
        shutil.rmtree(tmp_path / "cpusim")
        return build_it(self, sources, library, include=include)

    monkeypatch.setattr(FakeCompiler, "build_runtime", build_while_somebody_deletes)
    assert build.build_runtime(tmp_path, compiler).library.read_bytes() == b"a library"


def test_a_cache_that_cannot_be_written_is_said(compiler):
    with pytest.raises(ConfigError, match="TK911: the cache folder /proc/nowhere cannot be written"):
        build.build_runtime(Path("/proc/nowhere"), compiler)


def test_processes_that_start_together_build_it_once(tmp_path):
    harness.compiler()
    script = (
        "import sys; from pathlib import Path; from tilekit.cpusim import build; from tilekit.toolchain import host; "
        "print(build.build_runtime(Path(sys.argv[1]), host.require_compiler()).seconds > 0)"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert sorted(process.communicate()[0].strip() for process in processes) == ["False", "True"]


def test_the_worker_declares_the_structures_of_the_runtime(tmp_path):
    """ctypes and C++ must agree on the size of each, or every launch would go wrong."""
    names = {"tk_launch": worker.Launch, "tk_result": worker.Result, "tk_error": worker.Error}
    names |= {"tk_region": worker.Region, "tk_tensor": worker.Tensor, "tk_image": worker.Image, "tk_note": worker.Note}
    checks = "".join(
        f"static_assert(sizeof({name}) == {worker.c.sizeof(structure)});\n" for name, structure in names.items()
    )
    checks += "".join(
        f"static_assert(offsetof({name}, {field[0]}) == {getattr(structure, field[0]).offset});\n"
        for name, structure in names.items()
        for field in structure._fields_
    )
    checks += f"static_assert(TK_INTERRUPTED == {worker.KINDS.index('interrupted')});\n"
    (tmp_path / "source.cu").write_text(f"#include <tk/cpu/abi.h>\n{checks}")
    harness.compiler().build_kernel(tmp_path / "source.cu", tmp_path / "lib.so", include=build.INCLUDE)
