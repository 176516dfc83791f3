# SPDX-License-Identifier: Apache-2.0
"""A compiled program as it lies in the cache, and made ready to launch. Nothing here needs the compiler.

    found = compiled.find(text, target, device, config)     # text: that of the program, `str(prog)`; or None
    found.load(device, config).launch(arguments)

A process that finds all its kernels here and in `specializations/` never imports `drivers`.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilekit.cache import fingerprint
from tilekit.cache.programs import ProgramCache, ProgramEntry, key_of
from tilekit.config import Config, Toolchain
from tilekit.events import CLEAN, Edited
from tilekit.runtime import launch_cpu
from tilekit.runtime.launch import LaunchStats, OnWait
from tilekit.runtime.launch_cpu import CpuKernel
from tilekit.runtime.launch_cuda import CudaKernel
from tilekit.runtime.manifest import Manifest
from tilekit.runtime.tensors import DeviceKind
from tilekit.target import Target
from tilekit.toolchain import host, nvcc, nvrtc

if TYPE_CHECKING:
    from tilekit.runtime.unseen import UnseenKernel
    from tilekit.transforms.recorder import Recorder

PROGRAM, FACTS, MANIFEST = "program.txt", "facts.json", "manifest.json"
SOURCE, LINES, LOG = "module/source.cu", "module/lines.json", "module/log.txt"
# for each line of the source the number of the shared tensor that it accesses, or what codegen says instead
SHARED_OF_LINES = "module/shared.json"
CUBIN, LIBRARY, CHECKED = "module/kernel.cubin", "module/lib.so", "module/check.so"


@dataclass(frozen=True)
class Facts:
    """What a summary says of a compiled kernel; on the CPU there are no registers to count."""

    changed_passes: tuple[str, ...]
    registers: int | None = None
    spill_bytes: int | None = None
    stack_bytes: int | None = None
    shared_bytes: int = 0
    compiler: str = ""


@dataclass(frozen=True)
class CompiledProgram:
    """A program as it lies in the cache, with what its compile left in memory."""

    entry: ProgramEntry
    manifest: Manifest
    facts: Facts
    cached: bool
    recorder: Recorder | None
    # a person's edit that was compiled in place of `generated`, and what was decided about edits of it
    edit: Edited | None = None
    edit_state: str = CLEAN
    # the tile passes behind which it was made from a program that a person edited
    tile_edits: tuple[str, ...] = ()
    generated: CompiledProgram | None = None

    @property
    def tile_texts(self) -> dict[str, str]:
        """The programs that a person edited, by the tile passes behind which they stand."""
        return {name: self.entry.text(tile_edit(name)) for name in self.tile_edits}

    @property
    def patched(self) -> bool:
        """Whether it is, at any stage, made from a text that a person edited."""
        return self.edit is not None or bool(self.tile_edits)

    @property
    def source(self) -> str:
        return self.entry.text(SOURCE)

    @property
    def line_map(self) -> str:
        """JSON: for each line of the source the line of `program.txt` that it comes from, counted from 0, or null."""
        return self.entry.text(LINES)

    def page(self, name: str, config: Config, make: Callable[[], str], by: Mapping[str, str] | None = None) -> str:
        """A text about how it was compiled: made once for each program, and kept in the cache beside it.

        `by` is what makes it, beside the program; left out, it is tilekit.
        """
        cache = ProgramCache(config.cache_dir, config.cache_limit, "pages")
        by = {"by": fingerprint.pages(config.cache_dir)} if by is None else by
        key = key_of({"page": name, "of": self.entry.key, **by})
        found = cache.lookup(key) or cache.publish(key, {name: make().encode()})
        return found.text(name)

    def load_checked(self, config: Config) -> CheckRunner:
        """Make it ready to run in check mode on the CPU; the library for that is compiled when it is asked for."""
        compiler, entry = host.require_compiler(), self.entry
        if CHECKED not in entry.files:
            # who finds all that it runs never compiles a source
            entry = importlib.import_module("tilekit.runtime.builds").build_checked(self.source, compiler, config)
        lines = json.loads(self.entry.text(SHARED_OF_LINES))
        return check_runner(self.source, self.manifest, entry, lines, config, edited=self.edit is not None)

    def load(self, device: DeviceKind, config: Config, index: int = 0) -> CpuRunner | CudaKernel | UnseenKernel:
        """Make it ready to launch; `index` counts the GPUs."""
        if device is DeviceKind.CUDA:
            kernel = CudaKernel(self.manifest, self.entry.files[CUBIN], prints="printf(" in self.source)
            if not self.patched:
                return kernel
            # a process of its own for what nobody has run yet: only an edit needs it
            unseen = importlib.import_module("tilekit.runtime.unseen")
            return unseen.UnseenKernel(kernel, self.entry.files[CUBIN], index)
        cpu = launch_cpu.cpu_device(config.cache_dir, host.require_compiler())
        path, content = self.entry.path(LIBRARY), self.entry.files[LIBRARY]
        kernel = CpuKernel(self.manifest, path, content, cpu, edited=self.edit is not None)
        return CpuRunner(kernel, config, cpu.build_seconds())


@dataclass(frozen=True)
class CpuRunner:
    """A kernel for the simulator, with the options that its launches take."""

    kernel: CpuKernel
    config: Config
    # what building the simulator took, if this kernel is the first that needed it
    simulator_seconds: float

    def launch(self, arguments: Sequence[Any], /, *, on_wait: OnWait | None = None) -> LaunchStats:
        return self.kernel.launch(
            arguments, timeout_s=self.config.cpu_timeout, os_threads=self.config.cpu_threads, on_wait=on_wait
        )

    def interrupt(self) -> None:
        """Stop the running launch; any thread may call."""
        self.kernel.device.interrupt()


@dataclass(frozen=True)
class CheckRunner:
    """A kernel for the simulator's check mode; `waits` says that its blocks wait for each other."""

    kernel: CpuKernel
    config: Config
    waits: bool

    def launch(
        self,
        arguments: Sequence[Any],
        /,
        *,
        sample: int | None = None,
        seed: int = 0,
        keep: bool = True,
        strict: bool = True,
        timeout_s: float | None = None,
        on_wait: OnWait | None = None,
    ) -> LaunchStats:
        """Run all blocks, or a sample; blocks that wait for others are never run without them."""
        return self.kernel.launch(
            arguments,
            timeout_s=timeout_s or self.config.cpu_timeout,
            os_threads=self.config.cpu_threads,
            seed=seed,
            sample=None if self.waits else sample,
            keep=keep,
            strict=strict,
            on_wait=on_wait,
        )

    def interrupt(self) -> None:
        """Stop the running launch; any thread may call."""
        self.kernel.device.interrupt()


def check_runner(
    source: str, manifest: Manifest, entry: ProgramEntry, lines: Sequence[int], config: Config, *, edited: bool
) -> CheckRunner:
    """A source whose library for check mode is in an entry of the cache; `lines` are what `SHARED_OF_LINES` says."""
    cpu = launch_cpu.cpu_device(config.cache_dir, host.require_compiler())
    kernel = CpuKernel(manifest, entry.path(CHECKED), entry.files[CHECKED], cpu, lines, edited=edited)
    return CheckRunner(kernel, config, waits="tk::lock_semaphore" in source)


def tile_edit(name: str) -> str:
    """The file of a program that a person edited after a tile pass."""
    return f"edits/{name}.tir"


def options_of(target: Target, device: DeviceKind, config: Config, pipeline: str = "") -> dict[str, str]:
    """What a compile depends on beside its program; `pipeline` is the key of a person's changes to the passes."""
    return {
        "target": target.name,
        "device": device.value,
        "toolchain": toolchain_identity(device, config),
        "ptxas_optimization": str(not config.disable_ptxas_opt),
        "dump_ir": str(config.dump_ir),
        "compiler": fingerprint.compiler(config.cache_dir).backend,
        **({"custom_passes": pipeline} if pipeline else {}),
    }


def toolchain_identity(device: DeviceKind, config: Config) -> str:
    """The part of a key that names who compiles for this kind of device."""
    if device is DeviceKind.CPU:
        return host.require_compiler().identity
    return nvcc.version() if config.toolchain is Toolchain.NVCC else nvrtc.version()


def cache_of(config: Config) -> ProgramCache:
    """The programs under the cache folder in force."""
    return ProgramCache(config.cache_dir, config.cache_limit)


def key_of_program(text: str, options: Mapping[str, str]) -> str:
    """The key of the program with this text."""
    return key_of({"program": text, **options})


def find(text: str, target: Target, device: DeviceKind, config: Config, pipeline: str = "") -> CompiledProgram | None:
    """The program with this text, if it was compiled before for the same target, device, toolchain and options."""
    entry = cache_of(config).lookup(key_of_program(text, options_of(target, device, config, pipeline)))
    return None if entry is None else of_entry(entry, cached=True)


def of_entry(entry: ProgramEntry, *, cached: bool, recorder: Recorder | None = None) -> CompiledProgram:
    """What an entry of the cache says."""
    found: dict[str, Any] = json.loads(entry.text(FACTS))
    facts = Facts(**{**found, "changed_passes": tuple(found["changed_passes"])})
    return CompiledProgram(entry, Manifest.from_json(entry.text(MANIFEST)), facts, cached, recorder)
