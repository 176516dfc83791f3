# SPDX-License-Identifier: Apache-2.0
"""The route of a kernel on one page: verify, optimize tiles, lower, optimize Hidet IR, print CUDA C, compile.

`build_program` looks into the program cache before it starts, and publishes there what it made. A program may travel:
`build_text(str(prog), …)` is the same for a program that another process transpiled, and gives the folder of its entry,
which any process finds again with `runtime.compiled.find(text, …)`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from tilekit import textdiff
from tilekit.backends import codegen
from tilekit.backends.codegen import LoweredModule
from tilekit.cache.programs import key_of
from tilekit.config import Config
from tilekit.diag import errors, suggest
from tilekit.diag.span import Span
from tilekit.events import Edited, Fanout, Null, Sink, Stage, step
from tilekit.ir.prog import Program
from tilekit.ir.text import parser
from tilekit.ir.tools.verifier import verify
from tilekit.lowir import passes, printer, scalar
from tilekit.lowir.nodes import IRModule
from tilekit.lowir.printer import Source
from tilekit.runtime import builds, compiled
from tilekit.runtime.builds import Compiler, Made
from tilekit.runtime.compiled import CheckRunner, CompiledProgram, Facts
from tilekit.runtime.machine_code import MachineCode
from tilekit.runtime.manifest import Manifest, Param, SharedPlace, Workspace
from tilekit.runtime.tensors import DeviceKind
from tilekit.target import Target
from tilekit.toolchain import host, messages
from tilekit.transforms import Pipeline, get_default_passes, run_passes
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
    made = found if edit is None else build_edited(found, edit, target, device, config)
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
        For a pass the program to go on with, which is verified. It goes by its name, the second of a name as
        `analyze_scalar#2`, or by its number among the steps too, as in `tile_edits`.
    """
    resumed = _Resumed(edits)
    made = _build(prog, str(prog), target, device, config, [resumed], pipeline=pipeline)
    unknown = next((name for name in edits if name not in resumed.known), None)
    if unknown is not None:
        near = suggest(unknown, resumed.steps)
        raise errors.ArgumentError(
            "TK412",
            f"there is no tile pass {unknown}: there are {', '.join(resumed.steps)}",
            help=f"did you mean {near}?" if near else None,
        )
    return made


class _Resumed(Null):
    """Answers tile passes with the programs of texts, unless they are just what the passes made; the last name wins."""

    def __init__(self, edits: Mapping[str, str]) -> None:
        self.steps: list[str] = []
        self.known: set[str] = set()
        self._edits = edits

    def tile(self, name: str, prog: object) -> object | None:
        assert isinstance(prog, Program)
        count = 1 + sum(each.partition("#")[0] == name for each in self.steps)
        self.steps.append(name if count == 1 else f"{name}#{count}")
        names = {self.steps[-1], tile_file(len(self.steps), name)}
        self.known |= names
        texts = [text for given, text in self._edits.items() if given in names]
        if not texts or texts[-1].rstrip() == str(prog).rstrip():
            return None
        return edited_program(texts[-1], prog)


def tile_file(number: int, name: str) -> str:
    """What the program after a tile pass is called, the `number`-th of a compile from 1; step 0 was to verify it."""
    return f"{number:02d}_{name}"


def edited_program(text: str, generated: Program) -> Program:
    """The program of an edited text; lines that it shares with the generated one keep their places in the cell."""
    known, origins = generated.line_spans(), textdiff.origins(str(generated).split("\n"), text.split("\n"))
    return parser.parse_program(text, [None if line is None else known[line] for line in origins])


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
    told = _TileEdits([recorder, *sinks])
    source, lowered = generate_source(prog, target, [told], pipeline)
    options = compiled.options_of(target, device, config, "" if pipeline is None else pipeline.settled_key())
    if known is not None and not told.texts:
        return replace(known, recorder=recorder)
    key = compiled.key_of_program(text, {**options, **told.texts})
    if told.texts:
        edited = ", ".join(map(compiled.tile_edit, told.texts))
        options = {**options, "edited": edited, "generated": compiled.key_of_program(text, options)}
    entry = cache.lookup(key) if told.texts else None
    if entry is not None:
        return replace(compiled.of_entry(entry, cached=True, recorder=recorder), tile_edits=tuple(told.texts))
    on_stage(f"compile with {toolchain.name}")
    with step(told, toolchain.stage, toolchain.name, source.text) as underway:
        made = toolchain.compile(_marked(source.text, "".join(told.texts.values())) if told.texts else source.text)
        if made.ptx is not None and not told.texts:
            underway.made(made.ptx, less=made.ptxas_seconds)
    changed = tuple(step.name for step in recorder.steps if step.changed)
    lines = _line_map(prog, source, lowered)
    files = {
        compiled.PROGRAM: text.encode(),
        **_files(options, manifest_of(lowered, target), changed, source.text, lines, made),
        compiled.SHARED_OF_LINES: _json(_shared_of_lines(source, lowered)),
        **(recorder.dump() if config.dump_ir else {}),
        **{compiled.tile_edit(name): edited.encode() for name, edited in told.texts.items()},
    }
    made_of_it = compiled.of_entry(cache.publish(key, files), cached=False, recorder=recorder)
    if made.ptx is not None and not told.texts:
        MachineCode(made_of_it, target, device, config).keep_ptx(made.ptx)
    return replace(made_of_it, tile_edits=tuple(told.texts))


class _TileEdits(Fanout):
    """The sinks of a compile, and the texts of the programs that they answered to its tile passes, by pass."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        super().__init__(sinks)
        self.texts: dict[str, str] = {}
        self._passes = 0

    def tile(self, name: str, prog: object) -> object | None:
        self._passes += 1
        answer = super().tile(name, prog)
        if answer is not None:
            self.texts[tile_file(self._passes, name)] = str(answer)
        return answer


def build_edited(
    generated: CompiledProgram, edit: Edited, target: Target, device: DeviceKind, config: Config
) -> CompiledProgram:
    """Compile source that a person edited, in place of what was generated for the same program.

    The key holds the digest of the text, so the edit is never served to anybody who did not make it. What is written
    through any pointer is copied back: nobody knows what an edit writes. The binary says that it is one.
    """
    if edit.text == generated.source:
        return replace(generated, edit_state=edit.state)
    cache, toolchain = compiled.cache_of(config), builds.compiler_for(target, device, config)
    options = {**compiled.options_of(target, device, config), "edited": edit.provenance}
    options["generated"] = generated.entry.key
    key = key_of({"generated": generated.entry.key, "text": edit.text, "toolchain": options["toolchain"]})
    entry = cache.lookup(key)
    cached = entry is not None
    if entry is None:
        _check_entry(edit, generated.manifest.kernel)
        made = _compile_edit(edit, toolchain)
        params = tuple(replace(p, written=p.is_pointer, read=True) for p in generated.manifest.params)
        lines = _carried_lines(generated, edit.text)
        manifest = replace(generated.manifest, params=params)
        files = _files(options, manifest, generated.facts.changed_passes, edit.text, lines, made)
        # nobody knows which tensor an edited line means
        entry = cache.publish(key, {**files, compiled.SHARED_OF_LINES: _json([])})
    made_of_it = compiled.of_entry(entry, cached=cached, recorder=generated.recorder)
    return replace(made_of_it, edit=edit, edit_state=edit.state, generated=generated)


def _compile_edit(edit: Edited, toolchain: Compiler) -> Made:
    """Compile the text with its mark; what the compiler says of it names the file that a person edits."""
    try:
        return toolchain.compile(_marked(edit.text, edit.text))
    except errors.ToolchainError as error:
        if not Path(edit.provenance).is_absolute():
            raise
        raise messages.in_file(error, edit.provenance) from error.__cause__


def _marked(source: str, edited: str) -> str:
    """A source whose binary holds the mark of an edited text; its lines stay where they are."""
    return f'{source.rstrip()}\nextern "C" __device__ const char tk_patched[] = "{mark(edited)}";\n'


def mark(text: str) -> str:
    """What the binary of an edited source holds, and `strings` finds."""
    return f"tilekit: patched, source of sha256 {hashlib.sha256(text.encode()).hexdigest()}"


def _check_entry(edit: Edited, kernel: str) -> None:
    """Refuse an edit in which the loader would not find the kernel, in words rather than by its symbol table."""
    for needed in (f"{kernel}(", f"TK_KERNEL({kernel})"):
        if needed not in edit.text:
            raise errors.ToolchainError(
                "TK508",
                f"the edited source has no {needed.removesuffix('(')}, by which the kernel is found",
                help="put it back, or revert to the generated source",
            )


def _carried_lines(generated: CompiledProgram, text: str) -> list[int | None]:
    """The line map of the generated source, carried to the lines of an edited text that it shares with it."""
    known: list[int | None] = json.loads(generated.line_map)
    origins = textdiff.origins(generated.source.splitlines(), text.splitlines())
    return [None if line is None else known[line] for line in origins]


def _files(
    options: Mapping[str, str],
    manifest: Manifest,
    changed_passes: tuple[str, ...],
    source: str,
    lines: list[int | None],
    made: Made,
) -> dict[str, bytes]:
    """A cache entry, file by file."""
    facts = Facts(changed_passes=changed_passes, compiler=options["toolchain"], **made.figures)
    return {
        compiled.OPTIONS: "".join(f"{name} = {value}\n" for name, value in options.items()).encode(),
        compiled.MANIFEST: manifest.to_json().encode(),
        compiled.FACTS: (json.dumps(asdict(facts), indent=2) + "\n").encode(),
        compiled.SOURCE: source.encode(),
        compiled.LINES: _json(lines),
        compiled.LOG: made.log.encode(),
        made.name: made.content,
        **({} if made.checked is None else {compiled.CHECKED: made.checked}),
    }


def _json(value: object) -> bytes:
    return (json.dumps(value) + "\n").encode()


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
