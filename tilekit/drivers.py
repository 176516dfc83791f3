# SPDX-License-Identifier: Apache-2.0
"""The route of a kernel on one page: verify, optimize tiles, lower, optimize Hidet IR, print CUDA C, compile.

`build_program` looks into the program cache before it starts, and publishes there what it made.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tilekit import textdiff
from tilekit.backends import codegen
from tilekit.backends.codegen import LoweredModule
from tilekit.cache import fingerprint
from tilekit.cache.programs import ProgramCache, ProgramEntry
from tilekit.config import Config, Toolchain
from tilekit.diag import errors
from tilekit.events import Edited, Fanout, Sink, Stage
from tilekit.ir.prog import Program
from tilekit.ir.tools.verifier import verify
from tilekit.lowir import passes, printer, scalar
from tilekit.lowir.nodes import IRModule
from tilekit.lowir.printer import Source
from tilekit.runtime import gpu_child, launch_cpu
from tilekit.runtime.launch import LaunchStats, OnWait
from tilekit.runtime.launch_cpu import CpuKernel
from tilekit.runtime.launch_cuda import CudaKernel
from tilekit.runtime.manifest import Manifest, Param, SharedPlace, Workspace
from tilekit.runtime.tensors import DeviceKind
from tilekit.target import Target
from tilekit.toolchain import host, nvcc, nvrtc
from tilekit.toolchain.binary import Options
from tilekit.transforms import get_default_passes, run_passes
from tilekit.transforms.recorder import Recorder

INCLUDE = Path(__file__).parent / "include"

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
    # a person's edit that was compiled in place of `generated`
    edit: Edited | None = None
    generated: CompiledProgram | None = None

    @property
    def source(self) -> str:
        return self.entry.text(SOURCE)

    @property
    def line_map(self) -> str:
        """JSON: for each line of the source, where its instruction was written, or null."""
        return self.entry.text(LINES)

    def load_checked(self, config: Config) -> CheckRunner:
        """Make it ready to run in check mode on the CPU; the library for that is compiled when it is asked for."""
        compiler = host.require_compiler()
        entry = self.entry if CHECKED in self.entry.files else build_checked(self.source, compiler, config)
        cpu = launch_cpu.cpu_device(config.cache_dir, compiler)
        lines = json.loads(self.entry.text(SHARED_OF_LINES))
        kernel = CpuKernel(self.manifest, entry.path(CHECKED), entry.files[CHECKED], cpu, lines)
        return CheckRunner(kernel, config, waits="tk::lock_semaphore" in self.source)

    def load(self, device: DeviceKind, config: Config, index: int = 0) -> CpuRunner | CudaKernel | UnseenKernel:
        """Make it ready to launch; `index` counts the GPUs."""
        if device is DeviceKind.CUDA:
            kernel = CudaKernel(self.manifest, self.entry.files[CUBIN])
            return kernel if self.edit is None else UnseenKernel(kernel, self.entry.files[CUBIN], index)
        cpu = launch_cpu.cpu_device(config.cache_dir, host.require_compiler())
        kernel = CpuKernel(self.manifest, self.entry.path(LIBRARY), self.entry.files[LIBRARY], cpu)
        return CpuRunner(kernel, config, cpu.build_seconds())


# The first launch of an edited kernel on a GPU, where nobody may be there to interrupt it.
UNSEEN_TIMEOUT_S = 10.0


@dataclass
class UnseenKernel:
    """An edited kernel on a GPU: its first launch goes to a child process, which dies in our stead if it is wrong."""

    kernel: CudaKernel
    cubin: bytes
    index: int
    ended_well: bool = False

    def launch(self, arguments: Sequence[Any], /) -> LaunchStats:
        if self.ended_well:
            return self.kernel.launch(arguments)
        child = gpu_child.child(self.index)
        stats = child.run(self.kernel.manifest, self.cubin, arguments, timeout_s=UNSEEN_TIMEOUT_S)
        self.ended_well = True
        return stats

    def interrupt(self) -> None:
        """Stop the first launch; a later one runs in this process, where nothing stops it."""
        gpu_child.child(self.index).interrupt()


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


@contextmanager
def _stage(sink: Sink, stage: Stage, name: str, subject: object) -> Iterator[None]:
    """Tell `sink` about a station that looks at the subject and hands it on."""
    sink.begin(stage, name)
    start = time.perf_counter()
    try:
        yield
    except Exception as error:
        sink.fail(stage, name, error)
        raise
    sink.end(stage, name, subject, subject, time.perf_counter() - start)


def optimize_program(prog: Program, sinks: Sequence[Sink] = ()) -> Program:
    """The tile passes, in their order."""
    return run_passes(prog, get_default_passes(), Fanout(sinks))


def lower_program(prog: Program, target: Target, sinks: Sequence[Sink] = ()) -> LoweredModule:
    """From tile IR to Hidet IR."""
    sink = Fanout(sinks)
    sink.begin(Stage.LOWER, "generate_ir_module")
    start = time.perf_counter()
    try:
        lowered = codegen.generate_ir_module(prog, target)
    except Exception as error:
        sink.fail(Stage.LOWER, "generate_ir_module", error)
        raise
    sink.end(Stage.LOWER, "generate_ir_module", prog, lowered.module, time.perf_counter() - start)
    return lowered


def optimize_ir_module(module: IRModule, sinks: Sequence[Sink] = ()) -> IRModule:
    """The Hidet passes, in their order."""
    sink = Fanout(sinks)

    def on_pass(name: str, before: IRModule, after: IRModule, seconds: float) -> None:
        sink.begin(Stage.HIDET, name)
        sink.end(Stage.HIDET, name, before, after, seconds)

    return passes.optimize(module, on_pass)


def generate_source(prog: Program, target: Target, sinks: Sequence[Sink] = ()) -> tuple[Source, LoweredModule]:
    """Everything up to the text of `source.cu`."""
    sink = Fanout(sinks)
    with _stage(sink, Stage.VERIFY, "verify", prog):
        verify(prog)
    lowered = lower_program(optimize_program(prog, sinks), target, sinks)
    module = optimize_ir_module(lowered.module, sinks)
    start = time.perf_counter()
    sink.begin(Stage.CODEGEN, "print_module")
    source = printer.print_module(module)
    sink.end(Stage.CODEGEN, "print_module", module, source.text, time.perf_counter() - start)
    return source, lowered


def build_program(
    prog: Program,
    target: Target,
    device: DeviceKind,
    config: Config,
    sinks: Sequence[Sink] = (),
    on_stage: Callable[[str], None] = lambda _: None,
) -> CompiledProgram:
    """Compile a program for a target and a kind of device, or take it from the cache.

    Parameters
    ----------
    prog
        The tile program.
    target
        The instruction set that emitters may use.
    device
        CUDA gives a cubin, CPU a library for the simulator.
    config
        Where the cache is, and which toolchain compiles.
    sinks
        Who is told about every pass.
    on_stage
        Called with a few words as each stage begins.
    """
    cache = ProgramCache(config.cache_dir)
    toolchain = _toolchain(target, device, config)
    text, options = str(prog), _options(target, device, config, toolchain)
    key = cache.key({"program": text, "compiler": fingerprint.backend().digest(), **options})
    entry = cache.lookup(key)
    recorder: Recorder | None = None
    if entry is None:
        recorder = Recorder()
        on_stage("passes")
        source, lowered = generate_source(prog, target, [recorder, *sinks])
        on_stage(f"compile with {toolchain.name}")
        with _stage(Fanout([recorder, *sinks]), toolchain.stage, toolchain.name, source.text):
            made = toolchain.compile(source.text)
        changed = tuple(step.name for step in recorder.steps if step.changed)
        files = {
            "program.txt": text.encode(),
            **_files(options, _manifest(lowered, target), changed, source.text, _line_map(source, lowered), made),
            SHARED_OF_LINES: _json(_shared_of_lines(source, lowered)),
            **(recorder.dump() if config.dump_ir else {}),
        }
        entry = cache.publish(key, files)
    compiled = _compiled(entry, cached=recorder is None, recorder=recorder)
    edit = Fanout(sinks).codegen(compiled.source)
    return compiled if edit is None else build_edited(compiled, edit, target, device, config)


def build_edited(
    generated: CompiledProgram, edit: Edited, target: Target, device: DeviceKind, config: Config
) -> CompiledProgram:
    """Compile source that a person edited, in place of what was generated for the same program.

    The key holds the digest of the text, so the edit is never served to anybody who did not make it. What is written
    through any pointer is copied back: nobody knows what an edit writes.
    """
    cache = ProgramCache(config.cache_dir)
    toolchain = _toolchain(target, device, config)
    options = {**_options(target, device, config, toolchain), "edited": edit.provenance}
    key = cache.key({"generated": generated.entry.key, "text": edit.text, "toolchain": toolchain.identity})
    entry = cache.lookup(key)
    cached = entry is not None
    if entry is None:
        _check_entry(edit, generated.manifest.kernel)
        made = toolchain.compile(edit.text)
        params = tuple(replace(p, written=p.is_pointer, read=True) for p in generated.manifest.params)
        lines = _carried_lines(generated, edit.text)
        manifest = replace(generated.manifest, params=params)
        files = _files(options, manifest, generated.facts.changed_passes, edit.text, lines, made)
        # nobody knows which tensor an edited line means
        entry = cache.publish(key, {**files, SHARED_OF_LINES: _json([])})
    return replace(_compiled(entry, cached=cached, recorder=generated.recorder), edit=edit, generated=generated)


def _check_entry(edit: Edited, kernel: str) -> None:
    """Refuse an edit in which the loader would not find the kernel, in words rather than by its symbol table."""
    for needed in (f"{kernel}(", f"TK_KERNEL({kernel})"):
        if needed not in edit.text:
            raise errors.ToolchainError(
                "TK508",
                f"the edited source has no {needed.removesuffix('(')}, by which the kernel is found",
                help="put it back, or revert to the generated source",
            )


def _carried_lines(generated: CompiledProgram, text: str) -> list[list[Any] | None]:
    """The line map of the generated source, carried to the lines of an edited text that it shares with it."""
    old, new = generated.source.splitlines(), text.splitlines()
    known: list[list[Any] | None] = json.loads(generated.line_map)
    lines: list[list[Any] | None] = [None] * len(new)
    for run in textdiff.align(old, new):
        if run.kind in (textdiff.Kind.SAME, textdiff.Kind.EDITED):
            lines[run.right : run.right + run.count] = known[run.left : run.left + run.count]
    return lines


def _options(target: Target, device: DeviceKind, config: Config, toolchain: CompilerChoice) -> dict[str, str]:
    """What a compile depends on beside its program."""
    return {
        "target": target.name,
        "device": device.value,
        "toolchain": toolchain.identity,
        "ptxas_optimization": str(not config.disable_ptxas_opt),
        "dump_ir": str(config.dump_ir),
    }


def _files(
    options: Mapping[str, str],
    manifest: Manifest,
    changed_passes: tuple[str, ...],
    source: str,
    lines: list[list[Any] | None],
    made: Made,
) -> dict[str, bytes]:
    """A cache entry, file by file."""
    facts = Facts(changed_passes=changed_passes, compiler=options["toolchain"], **made.figures)
    return {
        "options.txt": "".join(f"{name} = {value}\n" for name, value in options.items()).encode(),
        "manifest.json": manifest.to_json().encode(),
        "facts.json": (json.dumps(asdict(facts), indent=2) + "\n").encode(),
        SOURCE: source.encode(),
        LINES: _json(lines),
        LOG: made.log.encode(),
        made.name: made.content,
        **({} if made.checked is None else {CHECKED: made.checked}),
    }


def _json(value: object) -> bytes:
    return (json.dumps(value) + "\n").encode()


def record(prog: Program, target: Target) -> Recorder:
    """The passes of a program, without compiling: what a kernel from the cache shows when somebody looks."""
    recorder = Recorder()
    generate_source(prog, target, [recorder])
    return recorder


def _compiled(entry: ProgramEntry, *, cached: bool, recorder: Recorder | None) -> CompiledProgram:
    found: dict[str, Any] = json.loads(entry.text("facts.json"))
    facts = Facts(**{**found, "changed_passes": tuple(found["changed_passes"])})
    return CompiledProgram(entry, Manifest.from_json(entry.text("manifest.json")), facts, cached, recorder)


# ------------------------------------------------------------------------------------------------------- toolchains


@dataclass(frozen=True)
class Made:
    """What a toolchain made of a source: the file for the cache, its log, and the figures it printed.

    `checked` is the library for check mode, where that is built too.
    """

    name: str
    content: bytes
    log: str
    figures: Mapping[str, int]
    checked: bytes | None = None


@dataclass(frozen=True)
class CompilerChoice:
    """The compiler for a device kind; `identity` is the part of the cache key that names it."""

    name: str
    identity: str
    stage: Stage
    compile: Callable[[str], Made]


def _toolchain(target: Target, device: DeviceKind, config: Config) -> CompilerChoice:
    if device is DeviceKind.CPU:
        compiler = host.require_compiler()
        compile_cpu = _for_cpu_and_check if config.cpu_check_blocks else _for_cpu
        return CompilerChoice(
            compiler.command[0], compiler.identity, Stage.HOST, lambda text: compile_cpu(text, compiler)
        )
    module = nvcc if config.toolchain is Toolchain.NVCC else nvrtc
    options = Options(config.cache_dir / "headers", not config.disable_ptxas_opt)

    def compile_cuda(text: str) -> Made:
        binary = module.compile(text, target, include=INCLUDE, options=options)
        figures = {
            "registers": binary.registers,
            "spill_bytes": binary.spill_bytes,
            "stack_bytes": binary.stack_bytes,
        }
        return Made(CUBIN, binary.cubin, binary.log, figures)

    return CompilerChoice(config.toolchain.value, module.version(), Stage.PTXAS, compile_cuda)


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
        return Made(LIBRARY, library.read_bytes(), built.log, {})


def build_checked(source: str, compiler: host.HostCompiler, config: Config) -> ProgramEntry:
    """The library of a source for check mode, compiled or found in the cache."""
    cache = ProgramCache(config.cache_dir)
    headers = fingerprint.backend().digest()
    key = cache.key({"checked": source, "toolchain": compiler.identity, "compiler": headers})
    entry = cache.lookup(key)
    if entry is None:
        made = _for_cpu(source, compiler, check=True)
        entry = cache.publish(key, {SOURCE: source.encode(), LOG: made.log.encode(), CHECKED: made.content})
    return entry


def _manifest(lowered: LoweredModule, target: Target) -> Manifest:
    return Manifest(
        kernel=lowered.kernel,
        params=tuple(
            Param(scalar.name_hint(p.var), scalar.dtype_of(p.var).name, written=p.written, read=p.read)
            for p in lowered.params
        ),
        grid=lowered.grid,
        block=lowered.num_threads,
        shared_bytes=lowered.shared_bytes,
        target=target.name,
        workspaces=tuple(Workspace(scalar.name_hint(w.var), w.nbytes, w.clean) for w in lowered.workspaces),
        shared=tuple(
            SharedPlace(r.name, r.offset, r.nbytes, r.tensor.dtype.name, repr(r.tensor.layout)) for r in lowered.shared
        ),
    )


def _shared_of_lines(source: Source, lowered: LoweredModule) -> list[int]:
    """For each line of the source, the only tensor in shared memory that its instruction accesses."""
    return [codegen.NO_INSTRUCTION if origin is None else lowered.shared_of[origin] for origin in source.lines]


def _line_map(source: Source, lowered: LoweredModule) -> list[list[Any] | None]:
    """For each line of the source, the place in the user's function that its instruction came from."""
    rows: list[list[Any] | None] = []
    for origin in source.lines:
        span = None if origin is None else lowered.spans[origin]
        rows.append(None if span is None else [span.function, span.line, span.col, span.end_line, span.end_col])
    return rows
