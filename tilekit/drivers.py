# SPDX-License-Identifier: Apache-2.0
"""The route of a kernel on one page: verify, optimize tiles, lower, optimize Hidet IR, print CUDA C, compile.

`build_program` looks into the program cache before it starts, and publishes there what it made. A program may travel:
`build_text(str(prog), …)` is the same for a program that another process transpiled, and gives the folder of its entry,
which any process finds again with `runtime.compiled.find(text, …)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilekit.backends import codegen
from tilekit.backends.codegen import LoweredModule
from tilekit.config import Config
from tilekit.diag.span import Span
from tilekit.events import Fanout, Sink, Stage, step
from tilekit.ir.prog import Program
from tilekit.ir.text import parser
from tilekit.ir.tools.verifier import verify
from tilekit.lowir import passes, printer, scalar
from tilekit.lowir.nodes import IRModule
from tilekit.lowir.printer import Source
from tilekit.runtime import builds, compiled, edited
from tilekit.runtime.compiled import CheckRunner, CompiledProgram
from tilekit.runtime.machine_code import MachineCode
from tilekit.runtime.manifest import Manifest, Param, SharedPlace, Workspace
from tilekit.runtime.tensors import DeviceKind
from tilekit.target import Target
from tilekit.toolchain import host
from tilekit.transforms import Pipeline, get_default_passes, run_passes
from tilekit.transforms.edits import Answered, Resumed
from tilekit.transforms.recorder import Recorder


def optimize_program(prog: Program, sinks: Sequence[Sink] = (), pipeline: Pipeline | None = None) -> Program:
    """The tile passes, in their order; `pipeline` has a person's changes to them."""
    default = get_default_passes()
    return run_passes(prog, default if pipeline is None else pipeline.applied_to(default), Fanout(sinks))


def lower_program(prog: Program, target: Target, sinks: Sequence[Sink] = ()) -> LoweredModule:
    """From tile IR to Hidet IR."""
    sink = Fanout(sinks)
    with step(sink, Stage.LOWER, "generate_ir_module", prog) as underway:
        lowered = codegen.generate_ir_module(prog, target)
        underway.made(lowered.module)
        sink.note("lowered", lowered)
    return lowered


def optimize_ir_module(module: IRModule, sinks: Sequence[Sink] = ()) -> IRModule:
    """The Hidet passes, in their order."""
    return passes.optimize(module, Fanout(sinks))


def generate_source(
    prog: Program, target: Target, sinks: Sequence[Sink] = (), pipeline: Pipeline | None = None
) -> tuple[Source, LoweredModule]:
    """Everything up to the text of `source.cu`."""
    sink = Fanout(sinks)
    with step(sink, Stage.VERIFY, "verify", prog):
        verify(prog)
    lowered = lower_program(optimize_program(prog, sinks, pipeline), target, sinks)
    module = optimize_ir_module(lowered.module, sinks)
    with step(sink, Stage.CODEGEN, "print_module", module) as underway:
        source = printer.print_module(module)
        underway.made(source.text)
        sink.note("source", source)
    return source, lowered


def build_program(
    prog: Program,
    target: Target,
    device: DeviceKind,
    config: Config,
    sinks: Sequence[Sink] = (),
    on_stage: Callable[[str], None] = lambda _: None,
    pipeline: Pipeline | None = None,
) -> CompiledProgram:
    """Compile a program for a target and a kind of device, or take it from the cache.

    A sink that traces sees the passes in either case; what the cache has stays as it is. Where a sink answers a tile
    pass with an edited program, the key of what is made holds that program's text.

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
    pipeline
        A person's changes to the passes; nobody without them finds what they make.
    """
    text = str(prog)
    found = compiled.find(text, target, device, config, "" if pipeline is None else pipeline.key)
    if found is None or Fanout(sinks).traces:
        found = _build(prog, text, target, device, config, sinks, on_stage, found, pipeline)
    edit = Fanout(sinks).codegen(found.source)
    made = found if edit is None else edited.build(found, edit, target, device, config)
    if tracing := [sink for sink in sinks if sink.traces]:
        on_stage("machine code")
        is_told = device is DeviceKind.CUDA and not (made.cached or made.patched)
        code = MachineCode(made, target, device, config)
        code.tell(Fanout(tracing), is_asked=config.trace_machine_code, is_ptx_told=is_told)
    return made


def build_from(
    prog: Program,
    edits: Mapping[str, str],
    target: Target,
    device: DeviceKind,
    config: Config,
    pipeline: Pipeline | None = None,
) -> CompiledProgram:
    """Compile a program of which a person edited what tile passes made; the passes behind those go on from it.

    Parameters
    ----------
    edits
        For a pass, named as `Resumed` says, the program to go on with, which is verified.
    """
    resumed = Resumed(edits)
    made = _build(prog, str(prog), target, device, config, [resumed], pipeline=pipeline)
    resumed.refuse_unknown()
    return made


def build_text(
    text: str, target: Target, device: DeviceKind, config: Config, spans: Sequence[Span | None] | None = None
) -> Path:
    """Compile a program from its text, or find it in the cache; return the folder of its entry.

    Nothing but text and folders travels, so any process may do it for any other that shares the cache. Errors are
    placed at lines of the text, or at `spans`, which are the places of its lines.

    Parameters
    ----------
    text
        What a program prints as; see `JitInstance.specialized(i).text`.
    target, device, config
        As for `build_program`.
    """
    found = compiled.find(text, target, device, config)
    if found is None:
        found = _build(parser.parse_program(text, spans), text, target, device, config)
    return found.entry.folder


def _build(
    prog: Program,
    text: str,
    target: Target,
    device: DeviceKind,
    config: Config,
    sinks: Sequence[Sink] = (),
    on_stage: Callable[[str], None] = lambda _: None,
    known: CompiledProgram | None = None,
    pipeline: Pipeline | None = None,
) -> CompiledProgram:
    """Run the passes of a program, and compile what the cache does not have; `known` is what it has."""
    tracing = Fanout(sinks).traces
    toolchain, cache = builds.compiler_for(target, device, config, keep_ptx=tracing), compiled.cache_of(config)
    on_stage("passes")
    recorder = Recorder()
    told = Answered([recorder, *sinks])
    source, lowered = generate_source(prog, target, [told], pipeline)
    edits = told.texts
    if known is not None and not edits:
        return replace(known, recorder=recorder)
    options = compiled.options_of(target, device, config, "" if pipeline is None else pipeline.settled_key())
    key = compiled.key_of_program(text, {**options, **edits})
    if edits:
        files_of_edits = ", ".join(map(compiled.tile_edit, edits))
        options = {**options, "edited": files_of_edits, "generated": compiled.key_of_program(text, options)}
        if (entry := cache.lookup(key)) is not None:
            return replace(compiled.of_entry(entry, cached=True, recorder=recorder), tile_edits=tuple(edits))
    on_stage(f"compile with {toolchain.name}")
    with step(told, toolchain.stage, toolchain.name, source.text) as underway:
        made = toolchain.compile(edited.marked(source.text, "".join(edits.values())) if edits else source.text)
        if made.ptx is not None and not edits:
            underway.made(made.ptx, less=made.ptxas_seconds)
    changed = tuple(step.name for step in recorder.steps if step.changed)
    lines, shared = _line_map(prog, source, lowered), _shared_of_lines(source, lowered)
    manifest = manifest_of(lowered, target)
    files = {
        compiled.PROGRAM: text.encode(),
        **builds.entry_files(options, manifest, changed, source.text, lines, shared, made),
        **(recorder.dump() if config.dump_ir else {}),
        **{compiled.tile_edit(name): program.encode() for name, program in edits.items()},
    }
    made_of_it = compiled.of_entry(cache.publish(key, files), cached=False, recorder=recorder)
    if made.ptx is not None and not edits:
        MachineCode(made_of_it, target, device, config).keep_ptx(made.ptx)
    return replace(made_of_it, tile_edits=tuple(edits))


def record(prog: Program, target: Target, pipeline: Pipeline | None = None) -> Recorder:
    """The passes of a program, without compiling: what a kernel from the cache shows when somebody looks."""
    recorder = Recorder()
    generate_source(prog, target, [recorder], pipeline)
    return recorder


def checker(source: Source, lowered: LoweredModule, target: Target, config: Config) -> CheckRunner:
    """What runs a source in check mode; as nobody knows what made it, it gets a worker of its own."""
    entry = builds.build_checked(source.text, host.require_compiler(), config)
    lines = _shared_of_lines(source, lowered)
    return compiled.check_runner(source.text, manifest_of(lowered, target), entry, lines, config, edited=True)


def params_of(lowered: LoweredModule) -> tuple[Param, ...]:
    """The parameters, and what the kernel does behind its pointers."""
    return tuple(
        Param(scalar.name_hint(p.var), scalar.dtype_of(p.var).name, written=p.written, read=p.read)
        for p in lowered.params
    )


def manifest_of(lowered: LoweredModule, target: Target) -> Manifest:
    """What a launch needs to know beside the binary."""
    return Manifest(
        kernel=lowered.kernel,
        params=params_of(lowered),
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
    return [codegen.NO_ONE_TENSOR if origin is None else lowered.shared_of[origin] for origin in source.lines]


def _line_map(prog: Program, source: Source, lowered: LoweredModule) -> list[int | None]:
    """For each line of the source the line of the program's text that says what it does, counted from 0.

    What that line was made from is the program's affair: where a person wrote it may change while the text does not.
    """
    first: dict[Span, int] = {}
    for number, span in enumerate(prog.line_spans()):
        if span is not None:
            first.setdefault(span, number)
    spans = lowered.spans
    rows = [None if span is None else first.get(span) for span in spans]
    return [None if origin is None else rows[origin] for origin in source.lines]
