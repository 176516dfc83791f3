# SPDX-License-Identifier: Apache-2.0
"""From the text of a `source.cu` to its binary, by the compiler for a kind of device; that of tiles is not needed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tilekit.cache import fingerprint, programs
from tilekit.cache.programs import ProgramEntry, key_of
from tilekit.config import Config, Toolchain
from tilekit.cpusim.build import INCLUDE
from tilekit.events import Stage
from tilekit.runtime import compiled
from tilekit.runtime.compiled import Facts
from tilekit.runtime.manifest import Manifest
from tilekit.runtime.tensors import DeviceKind
from tilekit.target import Target
from tilekit.toolchain import host, nvcc, nvrtc
from tilekit.toolchain.binary import Binary, Options


@dataclass(frozen=True)
class Made:
    """What a toolchain made of a source: the file for the cache, its log, and the figures it printed.

    `checked` is the library for check mode, where that is built too; `ptx` is there if it was asked for.
    """

    name: str
    content: bytes
    log: str
    figures: Mapping[str, int]
    checked: bytes | None = None
    ptx: str | None = None
    ptxas_seconds: float = 0.0


@dataclass(frozen=True)
class Compiler:
    """The compiler for a device kind."""

    name: str
    stage: Stage
    compile: Callable[[str], Made]


def compiler_for(target: Target, device: DeviceKind, config: Config, *, keep_ptx: bool = False) -> Compiler:
    """Who compiles for this kind of device; with `keep_ptx` a compiler for GPUs hands on the PTX."""
    if device is DeviceKind.CPU:
        compiler = host.require_compiler()
        compile_cpu = _for_cpu_and_check if config.cpu_check_blocks else _for_cpu
        return Compiler(compiler.command[0], Stage.HOST, lambda text: compile_cpu(text, compiler))

    def compile(text: str) -> Made:
        made = compile_cuda(text, target, config, keep_ptx=keep_ptx)
        figures = {"registers": made.registers, "spill_bytes": made.spill_bytes, "stack_bytes": made.stack_bytes}
        return Made(compiled.CUBIN, made.cubin, made.log, figures, ptx=made.ptx, ptxas_seconds=made.ptxas_seconds)

    return Compiler(config.toolchain.value, Stage.PTX if keep_ptx else Stage.PTXAS, compile)


def compile_cuda(text: str, target: Target, config: Config, *, keep_ptx: bool) -> Binary:
    """Compile for a GPU with the compiler that the options name."""
    module = nvcc if config.toolchain is Toolchain.NVCC else nvrtc
    options = Options(config.cache_dir / "headers", not config.disable_ptxas_opt, keep_ptx)
    return module.compile(text, target, include=INCLUDE, options=options)


def _for_cpu_and_check(text: str, compiler: host.HostCompiler) -> Made:
    """Both libraries at a time: the compilers are processes of their own."""
    with ThreadPoolExecutor(1) as other:
        checked = other.submit(_for_cpu, text, compiler, check=True)
        made = _for_cpu(text, compiler)
        return replace(made, checked=checked.result().content)


def _for_cpu(text: str, compiler: host.HostCompiler, *, check: bool = False) -> Made:
    with tempfile.TemporaryDirectory(prefix="tilekit-") as folder:
        source, library = Path(folder, "source.cu"), Path(folder, "lib.so")
        source.write_text(text)
        build = compiler.build_checked if check else compiler.build_kernel
        built = build(source, library, include=INCLUDE)
        return Made(compiled.LIBRARY, library.read_bytes(), built.log, {})


def entry_files(
    options: Mapping[str, str],
    manifest: Manifest,
    changed_passes: tuple[str, ...],
    source: str,
    lines: Sequence[int | None],
    shared: Sequence[int],
    made: Made,
) -> dict[str, bytes]:
    """An entry of the cache, file by file, as `compiled.of_entry` reads it."""
    facts = Facts(changed_passes=changed_passes, compiler=options["toolchain"], **made.figures)
    return {
        programs.OPTIONS: programs.options_text(options).encode(),
        compiled.MANIFEST: manifest.to_json().encode(),
        compiled.FACTS: (json.dumps(asdict(facts), indent=2) + "\n").encode(),
        compiled.SOURCE: source.encode(),
        compiled.LINES: (json.dumps(lines) + "\n").encode(),
        compiled.SHARED_OF_LINES: (json.dumps(shared) + "\n").encode(),
        compiled.LOG: made.log.encode(),
        made.name: made.content,
        **({} if made.checked is None else {compiled.CHECKED: made.checked}),
    }


def build_checked(source: str, compiler: host.HostCompiler, config: Config) -> ProgramEntry:
    """The library of a source for check mode, compiled or found in the cache."""
    cache, headers = compiled.cache_of(config), fingerprint.compiler(config.cache_dir).backend
    key = key_of({"checked": source, "toolchain": compiler.identity, "compiler": headers})
    entry = cache.lookup(key)
    if entry is None:
        made = _for_cpu(source, compiler, check=True)
        files = {compiled.SOURCE: source.encode(), compiled.LOG: made.log.encode(), compiled.CHECKED: made.content}
        entry = cache.publish(key, files)
    return entry
