# SPDX-License-Identifier: Apache-2.0
"""The first step of a compile after which a kernel is wrong: what the steps made is run, and compared.

A tile program runs in the NumPy evaluator, which knows neither layouts nor threads. So it is also finished, by the
default steps that would be ahead of it, and the source that comes out runs in the simulator's check mode, where a
missing barrier is an error whatever the numbers are. A program that ends in the source which is known to be right is
right itself, and runs nowhere: so what comes before a wrong step costs little.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from tilekit import drivers, textdiff
from tilekit.backends import codegen
from tilekit.backends.codegen import LoweredModule
from tilekit.config import Config
from tilekit.diag.errors import ArgumentError, KernelError, TilekitError
from tilekit.diag.sources import Sources
from tilekit.diag.span import Span
from tilekit.ir.layout.shared_layout import SharedLayout
from tilekit.ir.prog import Program
from tilekit.ir.tools.instruction_collector import collect_instructions
from tilekit.ir.tools.verifier import verify
from tilekit.jit import agreement, contestants
from tilekit.jit.bisected import Bisection, Judged, Outcome
from tilekit.jit.machine import Machine
from tilekit.jit.trial import Trial
from tilekit.lowir import passes as lowir_passes
from tilekit.lowir import printer
from tilekit.lowir.nodes import IRModule
from tilekit.lowir.printer import Source
from tilekit.runtime import compiled, tensors
from tilekit.runtime.compiled import CheckRunner
from tilekit.target import Target
from tilekit.toolchain import host
from tilekit.transforms import Pass, get_default_passes, run_passes
from tilekit.transforms.base import SILENT
from tilekit.transforms.custom import Custom
from tilekit.transforms.edits import edited_program, tile_file
from tilekit.transforms.recorder import text_of

if TYPE_CHECKING:
    from tilekit.runtime.compiled import CompiledProgram

LOWER = "generate_ir_module"
# what a check finds in how threads meet: the evaluator, which knows none, cannot say whether the program itself does so
_MEETINGS = {"race", "global_race", "in_flight", "deadlock", "divergence"}

AnyPass = TypeVar("AnyPass", Pass, lowir_passes.Pass)


@dataclass(frozen=True)
class EditOfSource:
    """What a person put in place of the source, where it was typed, and what checks it."""

    text: str
    provenance: str
    load: Callable[[], CheckRunner]

    @property
    def name(self) -> str:
        """Of a file, or of what every source is called."""
        place = Path(self.provenance)
        return place.name if place.is_absolute() else Path(compiled.SOURCE).name


@dataclass(frozen=True)
class Route:
    """How a program is compiled, and what a person edited on the way: tile programs, by `tile_file`, and the source."""

    target: Target
    config: Config
    tile: Sequence[Pass]
    hidet: Sequence[lowir_passes.Pass] = lowir_passes.PASSES
    tile_edits: Mapping[str, str] = field(default_factory=dict[str, str])
    edited: EditOfSource | None = None

    @property
    def edits(self) -> tuple[str, ...]:
        """What was edited, in the words of the steps."""
        return (*self.tile_edits, *(() if self.edited is None else [self.edited.name]))


def route_of(
    machine: Machine, made: CompiledProgram | None = None, load: Callable[[], CheckRunner] | None = None
) -> Route:
    """How kernels are compiled for a machine; `made` is one with its edits, and `load` what checks it."""
    passes = get_default_passes()
    tile = passes if machine.pipeline is None else machine.pipeline.applied_to(passes)
    if made is None or load is None:
        return Route(machine.target, machine.config, tile)
    edit = None if made.edit is None else EditOfSource(made.edit.text, made.edit.provenance, load)
    return Route(machine.target, machine.config, tile, tile_edits=(made.generated or made).tile_texts, edited=edit)


@dataclass(frozen=True, eq=False)
class _Station(Generic[AnyPass]):
    """A pass of a route, or a default one that it leaves out; `ahead` are the default ones that would follow."""

    name: str
    own: AnyPass | None
    ahead: Sequence[AnyPass]


@dataclass(frozen=True, eq=False)
class _Made:
    """What a step made, None if it died; `station` is None where it is no pass."""

    phase: str
    name: str
    before: object
    after: Any
    station: _Station[Any] | None = None
    died: str = ""

    @property
    def changed(self) -> bool:
        return self.after is not self.before


def bisect(
    name: str,
    program: Program,
    route: Route,
    arguments: Sequence[Any],
    *,
    against: Callable[..., Any] | None = None,
    blocks: Literal["all"] | int = "all",
    seed: int = 0,
    sources: Sources | None = None,
) -> Bisection:
    """Find the first step of a compile that makes a program wrong on these arguments, which stay as they are.

    Arguments may be specs of tensors, which are filled at random by `seed`. Where `against` is given, the program must
    agree with it.
    """
    start = time.perf_counter()
    if against is not None and not callable(against):  # pyright: ignore[reportUnnecessaryComparison]
        raise ArgumentError("TK625", f"against is a function that gives what is right, not {against!r}")
    # a reference gives all that the kernel writes
    trial = Trial(program, arguments, blocks if against is None else "all", seed)
    search = _Search(program, route, trial, sources)

    def found(outcome: Outcome, fault: str = "", culprit: _Made | None = None) -> Bisection:
        steps: list[Judged] = []
        for made in search.made:
            known = None if outcome is Outcome.BAD else ""
            steps.append(Judged(made.phase, made.name, made.changed, fault if made is culprit else known))
            if made is culprit:
                break
        texts = ("", "") if culprit is None else (text_of(culprit.before), text_of(culprit.after))
        seconds = time.perf_counter() - start
        return Bisection(name, outcome, tuple(steps), fault, *texts, search.where, seconds, route.edits)

    if fault := search.fault_of_program(against):
        return found(Outcome.BAD, fault)
    fault = search.fault_of_defaults()
    search.compile()
    if fault:
        culprit = search.among_defaults(fault)
        return found(Outcome.BAD, fault) if culprit is None else found(Outcome.FOUND, *culprit)
    if search.spoiled is not None:
        return found(Outcome.FOUND, search.spoiled.died, search.spoiled)
    # a program on the way may be wrong for want of what comes behind it, if all ends well
    if not any(map(search.judge, search.ends)):
        return found(Outcome.GOOD)
    fault, culprit = next((fault, made) for made in search.made if (fault := search.judge(made)))
    return found(Outcome.FOUND, fault, culprit)


class _Search:
    """The steps of a compile, and judgments, none of which is passed twice."""

    def __init__(self, program: Program, route: Route, trial: Trial, sources: Sources | None) -> None:
        self.program, self.route, self.trial, self.sources = program, route, trial, sources
        self.simulates = host.find_compiler() is not None
        self.where = trial.where if self.simulates else f"{trial.where}, the evaluator alone for want of a C++ compiler"
        # what the program computes in the evaluator, and, once it is known, in the simulator; what others may differ by
        self._expected: list[Any] = []
        self._simulated: list[Any] = []
        self._close: Mapping[int, float] = trial.closely()
        self._near: Mapping[int, float] = trial.loosely()
        self._default_kind = ""
        # what that source depends on, once it is known to be right
        self._default: tuple[str, str] | None = None
        self._evaluations: dict[Program, str] = {}
        self._runs: dict[tuple[str, str], str] = {}
        self.made: list[_Made] = []
        # the pass that has changed programs which others made, so that these cannot be judged any more
        self.spoiled: _Made | None = None

    # ------------------------------------------------------------------------------------------------ before any step

    def fault_of_program(self, against: Callable[..., Any] | None) -> str:
        """What is wrong with the program as it is written; else what it computes is expected of all others."""
        try:
            verify(self.program)
            self._spoil_outputs()
            self._expected = self._simulated = self.trial.evaluate(self.program)
        except TilekitError as error:
            return self._said(error)
        return "" if against is None else self._fault_against(against)

    def _spoil_outputs(self) -> None:
        try:
            _, lowered = self._finished(self.program, get_default_passes())
        except Exception:  # it is told where the default steps are judged
            return
        self.trial.spoil_outputs(drivers.params_of(lowered))

    def _fault_against(self, against: Callable[..., Any]) -> str:
        _, lowered = self._finished(self.program, get_default_passes())
        params, copies = drivers.params_of(lowered), self.trial.copies()
        given = [(param, each) for param, each in zip(params, copies, strict=True) if tensors.is_tensor(each)]
        returned = against(*contestants.given(against, copies, [each for param, each in given if param.read]))
        wanted = contestants.results({param.name: each for param, each in given if param.written}, returned)
        ours = {param.name: each for param, each in zip(params, self._expected, strict=True)}
        allowed = agreement.tolerance([ours[name] for name in wanted], [each for _, each in given])
        return contestants.compare(ours, wanted, allowed).difference

    def fault_of_defaults(self) -> str:
        """What is wrong with what the default steps make of the program; else that is what is right from then on."""
        if not self.simulates:
            return ""
        try:
            source, lowered = self._finished(self.program, get_default_passes())
            values = self._run(source, lowered)
        except Exception as error:  # what is wrong in the compiler may show in any way
            self._default_kind = error.kind if isinstance(error, KernelError) else ""
            return self._said(error)
        fault = self.trial.difference(values, self._expected, self._near)
        if not fault:
            self._close = self._near = self.trial.closely(self.trial.noise(values, self._expected))
            self._simulated = values
            self._default = self._key(source, lowered)
        return fault

    def among_defaults(self, default_fault: str) -> tuple[str, _Made] | None:
        """The step to blame where the default ones make something wrong: one that the evaluator sees, or that lays a
        tile where an instruction does not look for it, or that is best left out, or the translation; None where the
        program itself may be as wrong."""
        tile = [made for made in self.made if made.phase == "tile" and made.changed]
        for judge in (self._evaluated, self._misplaced):
            for made in tile:
                if fault := judge(made.after):
                    return fault, made
        for made in self.made:
            if made.changed and self._is_right_without(made):
                return f"without it the kernel is right; with it {default_fault}", made
        if self._default_kind in _MEETINGS:
            return None
        return next(((self.judge(made), made) for made in self.made if made.phase == "lower" or made.died), None)

    def _is_right_without(self, made: _Made) -> bool:
        """Whether the compile ends well if this pass is left out, wherever it runs."""
        if made.station is None or made.station.own is None:
            return False
        kind = _kind(made.station.own)
        tile = [each for each in self.route.tile if _kind(each) != kind]
        hidet = [each for each in self.route.hidet if _kind(each) != kind]
        return not self._ended(lambda: self._finished(self.program, tile, hidet))

    # ------------------------------------------------------------------------------------------------------ the steps

    def compile(self) -> None:
        """Run the steps, to the end or until one dies."""
        tile = [("tile", each) for each in stations(self.route.tile, get_default_passes())]
        hidet = [("hidet", each) for each in stations(self.route.hidet, lowir_passes.PASSES)]
        steps: list[tuple[str, _Station[Any] | None]] = [*tile, ("lower", None), *hidet]
        value: Any = self.program
        names, passes = Counter[str](), 0
        for phase, station in steps:
            before, text, name = value, _text_now(value), LOWER if station is None else station.name
            names[name] += 1
            title = name if names[name] == 1 else f"{name}#{names[name]}"
            try:
                if station is None:
                    value = self._lower(value)
                elif station.own is not None:
                    value = station.own(value, SILENT)
            except Exception as error:  # a pass may be anybody's
                self.made.append(_Made(phase, title, before, None, station, self._said(error)))
                return
            if _text_now(before) != text:
                died = "it changes the program that it was given, in place of making another one"
                self.spoiled = _Made(phase, title, before, None, station, died)
                self.made.append(self.spoiled)
                return
            self.made.append(_Made(phase, title, before, value, station))
            if phase == "tile" and station is not None and station.own is not None:
                passes += 1
                file = tile_file(passes, name)
                if file in self.route.tile_edits:
                    before, value = value, edited_program(self.route.tile_edits[file], value)
                    self.made.append(_Made(phase, _edit_of(file), before, value, replace(station, own=None)))
        if self.route.edited is not None:
            edited, text = self.route.edited, printer.print_module(value).text
            self.made.append(_Made("codegen", _edit_of(edited.name), text, edited.text))

    def _lower(self, program: Program) -> IRModule:
        self._lowered = codegen.generate_ir_module(program, self.route.target)
        return self._lowered.module

    @property
    def ends(self) -> list[_Made]:
        """The last tile program, and the last of all."""
        return [*[made for made in self.made if made.phase == "tile"][-1:], self.made[-1]]

    def judge(self, made: _Made) -> str:
        """What is wrong with what a step made."""
        if made.died:
            return made.died
        ahead = () if made.station is None else made.station.ahead
        match made.phase:
            case "tile":
                return self._fault_of_tile(made.after, ahead)
            case "codegen" if self.route.edited is not None:
                load = self.route.edited.load
                return self._fault(lambda: self.trial.check(load()), self._simulated, self._near)
            case _:
                rest = lowir_passes.PASSES if made.station is None else ahead
                return self._ended(lambda: self._printed(made.after, self._lowered, rest))

    def _fault_of_tile(self, program: Program, ahead: Sequence[Pass]) -> str:
        """What is wrong with a tile program: nothing, if the very source comes of it that is known to be right."""
        try:
            end = self._key(*self._finished(program, ahead)) if self.simulates else None
        except Exception:  # it is told below
            end = None
        if end is not None and end == self._default:
            return ""
        return self._evaluated(program) or self._ended(lambda: self._finished(program, ahead))

    def _evaluated(self, program: Program) -> str:
        """What is wrong with a tile program in the evaluator."""

        def values() -> list[Any]:
            verify(program)
            return self.trial.evaluate(program)

        if program not in self._evaluations:
            self._evaluations[program] = self._fault(values, self._expected, self._close)
        return self._evaluations[program]

    def _misplaced(self, program: Program) -> str:
        """What is wrong with the layouts of a tile program, by what each instruction asks of those of its tiles."""
        for inst in (each for func in program for each in collect_instructions(func)):
            if any(tensor.optional_layout is None for tensor in inst.laid_out_tensors):
                continue
            layouts = {tensor: tensor.layout for tensor in inst.laid_out_tensors}
            wrong = inst.check(layouts) if layouts else None
            if any(isinstance(each, SharedLayout) and not each.is_injective for each in layouts.values()):
                wrong = "elements of a shared tensor lie in one place"
            if wrong is not None:
                return f"{inst.opcode}: {wrong}{self._place(inst.span)}"
        return ""

    def _ended(self, finish: Callable[[], tuple[Source, LoweredModule]]) -> str:
        """What is wrong with a source in the simulator."""
        if not self.simulates:
            return ""
        try:
            source, lowered = finish()
        except Exception as error:
            return self._said(error)
        key = self._key(source, lowered)
        if key == self._default:
            return ""
        if key not in self._runs:
            self._runs[key] = self._fault(lambda: self._run(source, lowered), self._simulated, self._near)
        return self._runs[key]

    def _fault(self, run: Callable[[], list[Any]], expected: Sequence[Any], allowed: Mapping[int, float]) -> str:
        try:
            values = run()
        except Exception as error:
            return self._said(error)
        return self.trial.difference(values, expected, allowed)

    # ---------------------------------------------------------------------------------------------- ends of a compile

    def _finished(
        self,
        program: Program,
        tile: Sequence[Pass],
        hidet: Sequence[lowir_passes.Pass] = lowir_passes.PASSES,
    ) -> tuple[Source, LoweredModule]:
        """The source that these steps make of a tile program."""
        lowered = codegen.generate_ir_module(run_passes(program, tile, SILENT), self.route.target)
        return self._printed(lowered.module, lowered, hidet)

    def _printed(
        self, module: IRModule, lowered: LoweredModule, hidet: Sequence[lowir_passes.Pass]
    ) -> tuple[Source, LoweredModule]:
        return printer.print_module(lowir_passes.optimize(module, SILENT, hidet)), lowered

    def _key(self, source: Source, lowered: LoweredModule) -> tuple[str, str]:
        """What a launch depends on."""
        return source.text, drivers.manifest_of(lowered, self.route.target).to_json()

    def _run(self, source: Source, lowered: LoweredModule) -> list[Any]:
        """What a source makes of the arguments; what it does wrong is placed where its instruction was written."""
        checker = drivers.checker(source, lowered, self.route.target, self.route.config)
        try:
            return self.trial.check(checker)
        except KernelError as error:
            line = error.data.get("line")
            if (
                isinstance(line, int)
                and 0 < line <= len(source.lines)
                and (origin := source.lines[line - 1]) is not None
            ):
                error.located(lowered.spans[origin])
            raise

    def _said(self, error: BaseException) -> str:
        """An error in one line, with the line where it belongs."""
        if not isinstance(error, TilekitError):
            return f"{type(error).__name__}: {error}"
        kind = error.kind.replace("_", " ") if isinstance(error, KernelError) else ""
        return f"{kind or error.code}: {error.message}{self._place(error.diagnostic.at)}"

    def _place(self, at: Span | None) -> str:
        place = None if at is None or self.sources is None else self.sources.locate(at)
        return "" if place is None else f" (line {place.line}: {place.text_line.strip()})"


def _edit_of(what: str) -> str:
    return f"edit of {what}"


def _text_now(value: object) -> str:
    """The text of a program or module as it is now: a program remembers its own."""
    return text_of(replace(value) if isinstance(value, Program) else value)


def stations(passes: Sequence[AnyPass], defaults: Sequence[AnyPass]) -> list[_Station[AnyPass]]:
    """These passes beside the default ones, most of which are among them."""
    found: list[_Station[AnyPass]] = []
    left = right = 0
    end = textdiff.Hunk(range(len(defaults), len(defaults)), range(len(passes), len(passes)))
    for hunk in (*_hunks(defaults, passes), end):
        same = zip(passes[right : hunk.added.start], range(left + 1, hunk.removed.start + 1), strict=True)
        found += [_Station(each.name, each, defaults[ahead:]) for each, ahead in same]
        # where passes stand in for default ones, the last of them has done what those would do
        for number in hunk.added:
            ahead = hunk.removed.stop if number == hunk.added.stop - 1 else hunk.removed.start
            found.append(_Station(passes[number].name, passes[number], defaults[ahead:]))
        if not hunk.added:
            found += [_Station(f"without {defaults[i].name}", None, defaults[i + 1 :]) for i in hunk.removed]
        left, right = hunk.removed.stop, hunk.added.stop
    return found


def _hunks(defaults: Sequence[AnyPass], passes: Sequence[AnyPass]) -> list[textdiff.Hunk]:
    """Where passes are others than the default ones."""
    numbers: dict[object, str] = {}

    def named(each: AnyPass) -> str:
        return numbers.setdefault(_kind(each), str(len(numbers)))

    return textdiff.hunks(list(map(named, defaults)), list(map(named, passes)))


def _kind(each: Pass | lowir_passes.Pass) -> tuple[str, object]:
    """What tells passes apart: names may be anybody's."""
    match each:
        case Custom(own=own):
            return "custom", type(own)
        case Pass():
            return "tile", type(each)
        case _:
            return "hidet", each
