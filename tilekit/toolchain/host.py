# SPDX-License-Identifier: Apache-2.0
"""The C++ compiler of this machine: it builds kernels for the CPU, and the runtime that they run on."""

from __future__ import annotations

import functools
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tilekit import config
from tilekit.diag import ToolchainError
from tilekit.toolchain import messages

_LANGUAGE = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti")
# Kernels: integers wrap, any pointer may alias any other, floats round after every operation, a large frame touches
# each of its pages (so that it meets the guard page of its stack), the debug information is just lines, and all code
# has one (the stubs of a PLT have none).
_KERNEL = (
    *("-x", "c++", "-O1", "-g1", "-w", "-fno-plt", "-fstack-clash-protection"),
    *("-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-fno-math-errno"),
)
# What a kernel calls is in the process already: the runtime, and with it the C and math libraries. libgcc has the
# arithmetic that the compiler calls on its own, as for comparing halves.
# Check mode: a call in front of every load and store, and where an index, a shift, a division or an alignment is wrong.
# The runtime has the functions that are called (cpusim/src/check_hooks.cpp); no library of the compiler is linked.
_CHECKS_GCC = (
    *("-fsanitize=thread", "-fsanitize=bounds,shift-exponent,integer-divide-by-zero,alignment"),
    *("-fno-sanitize-recover=bounds,shift-exponent,integer-divide-by-zero", "-fsanitize-recover=alignment"),
    *("--param", "tsan-instrument-func-entry-exit=0"),
)
# past clang's driver: that of zig links the libraries of these checks whatever it is told
_CHECKS_CLANG = (
    *("-Xclang", "-fsanitize=thread,array-bounds,shift-exponent,integer-divide-by-zero,alignment"),
    *("-Xclang", "-fsanitize-recover=alignment", "-mllvm", "-tsan-instrument-func-entry-exit=0"),
)
_KERNEL_LINK = ("-shared", "-nostdlib", "-lgcc")
_RUNTIME = ("-O2", "-g1", "-w")
_RUNTIME_INSTRUCTIONS = ("avx2",)  # for its matrices, where the CPU has them; the runtime is built where it runs
_RUNTIME_LINK = ("-shared", "-pthread", "-ldl", "-lm")


@dataclass(frozen=True)
class BuildResult:
    """A library was built: how long it took, and what the compiler said."""

    seconds: float
    log: str


@dataclass(frozen=True)
class HostCompiler:
    """A C++ compiler that answers; `identity` is what a cache key must know of it and of the code that it makes."""

    command: tuple[str, ...]
    version: str
    cpu_flags: tuple[str, ...]

    @property
    def identity(self) -> str:
        machine = (*self._machine_flags, *_present_flags(*_RUNTIME_INSTRUCTIONS))
        return " ".join((self.version, *_LANGUAGE, *_KERNEL, *self._check_flags, *_KERNEL_LINK, *_RUNTIME, *machine))

    @property
    def _machine_flags(self) -> tuple[str, ...]:
        # zig traps on what C++ leaves undefined, such as the overflow that -fwrapv defines
        return (*self.cpu_flags, "-fno-sanitize=all") if "ziglang" in self.command else self.cpu_flags

    @property
    def is_clang(self) -> bool:
        """Whether it takes clang's flags."""
        return "clang" in self.version or "ziglang" in self.command

    @property
    def _check_flags(self) -> tuple[str, ...]:
        return ("-DTK_CHECK", *(_CHECKS_CLANG if self.is_clang else _CHECKS_GCC))

    def build_kernel(self, source: Path, library: Path, *, include: Path) -> BuildResult:
        """Compile a `source.cu` into the shared library that the CPU simulator loads."""
        return self._build(source, library, include)

    def build_checked(self, source: Path, library: Path, *, include: Path) -> BuildResult:
        """The same for check mode: a library that tells the runtime of each load and store."""
        return self._build(source, library, include, self._check_flags)

    def _build(self, source: Path, library: Path, include: Path, checks: Sequence[str] = ()) -> BuildResult:
        # by its bare name, so that messages and line tables say `source.cu` wherever it lies
        arguments = [*_LANGUAGE, *_KERNEL, *self._machine_flags, *checks, f"-I{include}", source.name, *_KERNEL_LINK]
        return self._run([*arguments, "-o", str(library.absolute())], folder=source.parent, source=source.name)

    def build_runtime(self, sources: Sequence[Path], library: Path, *, include: Path) -> BuildResult:
        """Compile the simulator's own sources into one shared library."""
        begin, folder = time.perf_counter(), library.parent
        flags = (*_LANGUAGE, *_RUNTIME, *self._machine_flags, *_present_flags(*_RUNTIME_INSTRUCTIONS), f"-I{include}")

        def compile_one(source: Path) -> str:
            self._run([*flags, "-c", str(source), "-o", f"{source.stem}.o"], folder=folder, source=messages.SOURCE)
            return f"{source.stem}.o"

        with ThreadPoolExecutor(config.available_cpus()) as pool:
            objects = list(pool.map(compile_one, sources))
        link = [*flags, *objects, *_RUNTIME_LINK, "-o", str(library.absolute())]
        linked = self._run(link, folder=folder, source=messages.SOURCE)
        for name in objects:
            (folder / name).unlink()
        return BuildResult(time.perf_counter() - begin, linked.log)

    def _run(self, arguments: Sequence[str], *, folder: Path, source: str) -> BuildResult:
        begin = time.perf_counter()
        run = subprocess.run(
            [*self.command, *arguments],
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},  # messages are parsed: in English, please
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if run.returncode != 0:
            raise messages.compile_failure(self.command[0], run.stdout, messages.parse(run.stdout, source))
        return BuildResult(time.perf_counter() - begin, run.stdout.strip())


def find_compiler() -> HostCompiler | None:
    """Find $CXX, else g++, clang++, or the clang of the ziglang wheel; None if there is none of them."""
    named = os.environ.get("CXX", "").strip()
    if named:
        return _probe(tuple(shlex.split(named)), named=True)
    for name in ("g++", "clang++"):
        path = shutil.which(name)
        if path is not None and (found := _probe((path,))) is not None:
            return found
    if importlib.util.find_spec("ziglang") is not None:
        return _probe((sys.executable, "-m", "ziglang", "c++"))
    return None


def require_compiler() -> HostCompiler:
    """Find the compiler, or say what to install."""
    found = find_compiler()
    if found is None:
        raise ToolchainError(
            "TK506",
            "there is no C++ compiler to build kernels for the CPU: $CXX is not set, and neither g++, clang++ nor "
            "`python -m ziglang c++` is there",
            help="install one, for example `apt install g++`, `conda install gxx` or `pip install ziglang`",
        )
    return found


@functools.cache
def _probe(command: tuple[str, ...], *, named: bool = False) -> HostCompiler | None:
    """Ask a command for its version; one that the user named must answer."""
    try:
        run = subprocess.run(
            [*command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
        )
        reason = run.stderr.strip() or f"it ended with status {run.returncode}"
        answered = run.returncode == 0
        text = run.stdout
    except OSError as error:
        answered, reason, text = False, error.strerror or str(error), ""
    if answered:
        return HostCompiler(command, text.strip().splitlines()[0] if text.strip() else command[0], _cpu_flags())
    if named:
        raise ToolchainError(
            "TK507",
            f"$CXX is {shlex.join(command)!r}, which does not run: {reason}",
            help="set CXX to a C++ compiler, or unset it to let g++, clang++ or ziglang be found",
        )
    return None


def _cpu_flags() -> tuple[str, ...]:
    """Flags for instructions that this CPU has and that matter here: float16 conversion, and fused multiply-add."""
    return _present_flags("f16c", "fma")


@functools.cache
def _present_flags(*names: str) -> tuple[str, ...]:
    """The flags that let a compiler use those of some sets of x86 instructions that this CPU has."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return ()
    try:
        description = Path("/proc/cpuinfo").read_text()
    except OSError:
        return ()
    present = next((line.split() for line in description.splitlines() if line.startswith("flags")), [])
    return tuple(f"-m{name}" for name in names if name in present)
