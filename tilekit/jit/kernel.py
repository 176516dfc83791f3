# SPDX-License-Identifier: Apache-2.0
"""A compiled kernel: everything that a person can look at hangs on it."""

from __future__ import annotations

import copy
import importlib
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from tilekit import config
from tilekit.diag.errors import ArgumentError, KernelError, TilekitError
from tilekit.diag.sources import Sources
from tilekit.diag.span import Span
from tilekit.events import CLEAN, PATCHED, Edited
from tilekit.jit import assumed, held, observer, placing, precheck, printing, session, summary
from tilekit.jit.arguments import require_sample
from tilekit.jit.history import History
from tilekit.jit.observer import Identity
from tilekit.jit.progress import Launching
from tilekit.jit.specialized import Specialized
from tilekit.runtime import compiled
from tilekit.runtime.launch import CheckStats, LaunchStats, OnWait
from tilekit.runtime.tensors import DeviceKind

if TYPE_CHECKING:
    from tilekit.ir.prog import Program
    from tilekit.jit.benched import Bench
    from tilekit.jit.bisected import Bisection
    from tilekit.jit.compare import Comparison
    from tilekit.jit.contestants import Peer, Subject
    from tilekit.jit.lines import Chain
    from tilekit.jit.machine import Machine
    from tilekit.jit.tuning.schedules import Schedules
    from tilekit.jit.watched import Watched
    from tilekit.runtime.compiled import CheckRunner, CompiledProgram, CpuRunner
    from tilekit.runtime.machine_code import MachineCode
    from tilekit.transforms.recorder import Recorder

_numbers = itertools.count()


class Runner(Protocol):
    """Something that runs the kernel on arguments."""

    def launch(self, arguments: Sequence[Any], /) -> LaunchStats: ...

    def interrupt(self) -> None:
        """Stop the running launch, if it can be stopped; any thread may call."""


@dataclass(frozen=True)
class LayoutRow:
    """The layout of one tile, and who chose it."""

    tensor: str
    type: str
    layout: str
    chosen_by: str
    why: str


@dataclass
class Kernel:
    """One schedule of one specialization on one machine.

    `compiled` is None where there is no C++ compiler for the CPU: then the evaluator runs the program, slowly.
    """

    identity: Identity
    specialized: Specialized
    schedule: Mapping[str, Any]
    machine: Machine
    compiled: CompiledProgram | None
    sources: Sources
    compile_seconds: float
    number: int = field(default_factory=lambda: next(_numbers))
    history: History = field(default_factory=History)
    # what building the CPU runtime took, if this kernel was the first that needed it
    simulator_seconds: float = 0.0
    # what was said of the blocks that were checked before the first launch
    sample: str | None = None
    # writes what `scripts/` and `specializations/` say of it; it is called again when someone deleted the cache
    record: Callable[[], None] | None = None
    # makes the table of all schedules of this kernel's specialization
    table: Callable[[], Schedules] | None = None
    # the last thing that went wrong, until the source is another one or what found it finds nothing
    report: KernelError | None = None
    _made_checker: CheckRunner | None = None

    @property
    def launches(self) -> int:
        """How many launches went well."""
        return self.history.launches

    @property
    def last_run(self) -> LaunchStats | None:
        """What the last launch tells; None if there was none."""
        return self.history.last_run

    @property
    def printed(self) -> str:
        """Everything that the last launch or check printed."""
        return self.history.printed

    @property
    def script(self) -> str:
        """The name of the script class."""
        return self.identity.script

    @property
    def name(self) -> str:
        """The script with its schedule."""
        return f"{self.script}({summary.named(self.schedule)})" if self.schedule else self.script

    @property
    def where(self) -> str:
        """The device it runs on, in words."""
        return summary.where(self)

    @property
    def program(self) -> Program:
        """The tile program, as it was transpiled."""
        return self.specialized.written

    def _given(self) -> Program:
        """The program for passes to work on."""
        pipeline = self.machine.pipeline
        return self.program if pipeline is None else self.specialized.given_to(pipeline)

    @property
    def schedules(self) -> Schedules | None:
        """Every schedule that it could have been built with, and what is known of each."""
        return None if self.table is None else self.table()

    @property
    def cached(self) -> bool:
        """Whether it came from the cache."""
        return self.compiled is not None and self.compiled.cached

    @property
    def metadata(self) -> dict[str, Any]:
        """What it was made from and by whom; `patched` says whether its source is a person's edit, `edited` where."""
        made = self.compiled
        return {
            "script": self.script,
            "schedule": dict(self.schedule),
            "target": self.machine.target.name,
            "device": self.machine.device.kind.value,
            "program": None if made is None else made.entry.key,
            "compiler": None if made is None else made.facts.compiler,
            "patched": self.patched,
            "edit_state": self.edit_state,
            "edited": None if made is None or made.edit is None else made.edit.provenance,
            "edited_passes": () if made is None else made.tile_edits,
        }

    def summary(self) -> str:
        """One line: kernel, target, device, passes, registers, shared memory, spills, compile and run time."""
        return " · ".join(self.facts())

    def facts(self) -> list[str]:
        """What the summary says, piece by piece."""
        return summary.facts(self)

    def __repr__(self) -> str:
        return f"<{self.summary()}>"

    # -------------------------------------------------------------------------------------------------------- launching

    def launch(self, arguments: Sequence[Any]) -> None:
        """Run it on arguments that are already checked."""
        history = self.history
        history.arguments = tuple(map(held.hold, arguments))
        self.keep()
        if history.launches == 0:
            # it may have to build the simulator, or wait for a worker
            for watcher in observer.observers():
                watcher.compiling(self.script, "first launch")
        checked = True
        try:
            self._check_assumptions(arguments)
            seed = session.check_seed()
            if seed is not None and self.can_be_checked:
                if self._fills_in_parts:  # nothing may change before all is known
                    self._check(arguments, seed=seed)
                with self._launching(history.last_run) as on_wait:
                    stats = self._checker.launch(arguments, seed=seed, on_wait=on_wait)
            else:
                self._check_first(arguments)
                checked = False
                stats = self._launch(arguments)
        except KernelError as error:
            raise self.failed(error, checked=checked) from error.__cause__
        self._found_nothing(checked=checked)
        self.launched(stats)

    def failed(self, error: KernelError, *, checked: bool) -> KernelError:
        """Take note of a launch that went wrong; the error to raise."""
        self.history.printed = str(error.data.get("printed", ""))
        printing.show(self.history.printed)
        return self._reported(error, checked=checked)

    def launched(self, stats: LaunchStats) -> None:
        """Take note of a launch that went well."""
        history = self.history
        history.last_run, history.printed = stats, stats.printed
        if stats.printed:
            printing.show(stats.printed)
        history.launches += 1
        for watcher in observer.observers():
            watcher.launched(self)

    def _launch(self, arguments: Sequence[Any]) -> LaunchStats:
        if not self.can_be_checked:
            return self._runner.launch(arguments)
        with self._launching(self.last_run) as on_wait:
            return cast("CpuRunner", self._runner).launch(arguments, on_wait=on_wait)

    def _launching(self, before: LaunchStats | None = None) -> Launching:
        return Launching(self.script, self.machine.config.cpu_timeout, before)

    def _recalled(self) -> list[Any]:
        """The arguments of the last call."""
        arguments = self.history.arguments
        values = list(map(held.recall, arguments or ()))
        if arguments is None or any(value is None for value in values):
            raise ArgumentError(
                "TK634", f"{self.script}: the arguments of the last call are gone", help="call it again"
            )
        return values

    def keep(self) -> None:
        """Write what the cache had of this kernel again, if someone deleted it."""
        made = self.compiled
        if made is not None and compiled.cache_of(self.machine.config).restore(made.entry) and self.record is not None:
            self.record()

    @property
    def runner(self) -> Runner | None:
        """What launches it, once it was launched; another one after an edit."""
        return self.__dict__.get("_runner")

    def load(self) -> Runner:
        """What launches it, also if all its launches were checked ones, which have a runner of their own."""
        return self._runner

    @cached_property
    def _runner(self) -> Runner:
        return self._load(self.compiled)

    def _load(self, compiled: CompiledProgram | None) -> Runner:
        if compiled is None:
            program, pipeline = self._given(), self.machine.pipeline
            if pipeline is not None:
                program = _drivers().optimize_program(program, pipeline=pipeline)
            return importlib.import_module("tilekit.jit.evaluated").Evaluated(program)
        where = self.machine.device
        runner = compiled.load(where.kind, self.machine.config, where.index)
        if where.kind is DeviceKind.CPU:
            self.simulator_seconds += cast("CpuRunner", runner).simulator_seconds
        return runner

    def interrupt(self) -> None:
        """Stop the launch that runs in another thread, which raises a `KernelError` of kind "interrupted" there."""
        for runner in (self.runner, self._made_checker):
            if runner is not None:
                runner.interrupt()

    # --------------------------------------------------------------------------------------------------------- checking

    @property
    def can_be_checked(self) -> bool:
        """Whether there is a source for the CPU simulator's check mode."""
        return self.compiled is not None and self.machine.device.kind is DeviceKind.CPU

    def check(self, *arguments: Any, blocks: Literal["all"] | int = "all", seed: int = 0) -> CheckStats:
        """Run it in the CPU simulator's check mode, on copies of the arguments.

        Parameters
        ----------
        arguments
            What a launch takes, in the order of the kernel's parameters; none means those of the last call.
        blocks
            How many blocks of the grid to run, the corners first; "all" for every one. Blocks that wait for others
            are always run with all of them.
        seed
            Draws the order of threads and blocks; 0 is their natural order.

        Returns
        -------
        CheckStats
            What was checked; its text is one sentence.

        Raises
        ------
        KernelError
            The first thing that is wrong, with `data`: kind, tensor, index, first, second, hint.
        """
        require_sample(blocks, seed)
        if not self.can_be_checked:
            raise ArgumentError(
                "TK635",
                f"{self.name} cannot be checked: it runs on {self.where}",
                help="check mode belongs to the CPU simulator: pass CPU tensors to the handle's check(…)",
            )
        values = list(arguments) if arguments else self._recalled()
        try:
            self._check_assumptions(values)
            sample = None if blocks == "all" else blocks
            with self._launching() as on_wait:
                ran = self._check(values, sample=sample, seed=seed, on_wait=on_wait)
        except KernelError as error:
            self.history.printed = str(error.data.get("printed", ""))
            raise self._reported(error, checked=True) from error.__cause__
        self._found_nothing(checked=True)
        self.history.printed = ran.printed
        return ran.check or CheckStats(0, 0, seed, 0.0)

    def _check(
        self, arguments: Sequence[Any], *, sample: int | None = None, seed: int, on_wait: OnWait | None = None
    ) -> LaunchStats:
        """Check a launch on copies of the arguments: the memory that it uses, and then its registers."""
        ran = self._checker.launch(arguments, sample=sample, seed=seed, keep=False, on_wait=on_wait)
        if self._fills_in_parts:
            unwritten = importlib.import_module("tilekit.jit.unwritten")
            unwritten.refuse_unwritten_elements(self.program, arguments, waits=self._checker.waits, seed=seed)
        return ran

    @cached_property
    def _fills_in_parts(self) -> bool:
        """Whether a tile may be used half filled; of an edit nobody knows."""
        return not self.patched and importlib.import_module("tilekit.jit.unwritten").fills_in_parts(self.program)

    def _check_first(self, arguments: Sequence[Any]) -> None:
        """Before the first launch, check some blocks on the CPU: of a kernel that runs there, and of any edit."""
        if self.sample is not None:
            return
        count, seed = config.resolve().cpu_check_blocks, precheck.seed_of(self.source)
        if count == 0 or not (self.can_be_checked or self.patched) or (self.can_be_checked and self._checker.waits):
            self.sample = ""
            return
        if self.can_be_checked:
            self.sample = precheck.sample(self._checker, arguments, count, seed)
        else:
            self.sample = precheck.sample_edit(self._load_checked, arguments, count, seed)
        self._found_nothing(checked=True)

    def _check_assumptions(self, arguments: Sequence[Any]) -> None:
        if self.can_be_checked and self.compiled is not None:
            assumed.refuse_what_is_false(self.specialized, self.compiled.manifest, arguments)

    @property
    def _checker(self) -> CheckRunner:
        return self._made_checker or self._load_checked()

    def _load_checked(self) -> CheckRunner:
        compiled = self.compiled
        assert compiled is not None
        made = compiled.load_checked(self.machine.config)
        if self.compiled is compiled:  # a thread that compiled for an edit may come too late
            self._made_checker = made
        return made

    def _reported(self, error: KernelError, *, checked: bool) -> KernelError:
        """The error at the line of the cell, which the kernel keeps."""
        placed = self._placed(error).with_sources(self.sources)
        if placed.kind != "interrupted":
            placed.data["checked"] = checked
            # what was raised holds the frames that it passed, and with them the tensors; where Dask was imported, its
            # copy does so too
            self.report = copy.copy(placed).with_traceback(None)
            self.report.__cause__ = self.report.__context__ = None
            config.begin_era()
        return placed

    def _placed(self, error: KernelError) -> KernelError:
        """The error at the line of the user's cell, from the lines of `source.cu` that the simulator named."""
        return error if self.compiled is None else placing.place(error, self)

    def _found_nothing(self, *, checked: bool) -> None:
        """A launch without checks says nothing of what a check has found."""
        if self.report is not None and (checked or not self.report.data["checked"]):
            self.report = None

    # -------------------------------------------------------------------------------------------------------- questions

    def watch(
        self,
        name: str,
        *,
        block: int | Sequence[int] = (0, 0, 0),
        line: int | None = None,
        step: int | None = None,
        args: Sequence[Any] | None = None,
    ) -> Watched:
        """The value of a tensor or a scalar of the kernel at a place, computed in the NumPy evaluator.

        Only one block runs, unless blocks wait for each other, and only until the value is there; on copies, so that
        no tensor changes. It is the program that runs, on any device and also where an edit of its source is in place.

        Parameters
        ----------
        name
            A name in the kernel or in a method that it calls, or of an attribute: a register tensor, a shared tensor, a
            view of global memory, a number.
        block
            The index of the block in the grid; missing coordinates are 0.
        line
            A line of the cell or file in which the kernel stands, as an editor counts; the value is that behind its
            statement. By default that of the last assignment to the name that runs, or of the wait for a copy to it.
        step
            Which execution of the line, counted from 0 as `range` does: in a loop, the iteration. By default the last.
        args
            What a launch takes, in the order of the kernel's parameters; by default those of the last call, as their
            tensors are now.

        Returns
        -------
        Watched
            `array`, `defined`, `where`, `steps`; shown as a table.

        Raises
        ------
        ArgumentError
            TK640 for an unknown name, TK641 for a line, step or block that there is not, TK642 where the name has no
            value yet, TK634 if the arguments of the last call are gone.
        KernelError
            What goes wrong in the kernel before the value is there.

        Notes
        -----
        `handle.watch("acc", block=(0, 0), line=14, step=3)` is the same for the kernel that ran last; see its example.
        """
        values = self._recalled() if args is None else list(args)
        return importlib.import_module("tilekit.jit.watch").watch(self, values, name, block=block, line=line, step=step)

    def bisect(
        self,
        *arguments: Any,
        against: Callable[..., Any] | None = None,
        blocks: Literal["all"] | int = 64,
        seed: int = 0,
    ) -> Bisection:
        """Find the first step of its compile whose program is wrong; what a person edited in it is judged, too.

        The program after each tile pass runs in the NumPy evaluator, and the source that comes of it in the CPU
        simulator's check mode, on copies of the arguments. What the program computes before any pass is what is right.

        Parameters
        ----------
        arguments
            What a launch takes, in the order of the kernel's parameters; in place of a tensor also
            `tilekit.spec(dtype, shape)`, for random values. None means those of the last call.
        against
            A reference, which the program itself must agree with: it takes all arguments, or the tensors that the
            kernel reads, and returns what the kernel writes, or writes it as the kernel does.
        blocks
            How many blocks of the grid to run, the corners first; "all" for every one. Blocks that wait for others
            are always run with all of them, and so is what is compared with a reference.
        seed
            Draws random values and the order of threads and blocks.

        Returns
        -------
        Bisection
            `outcome`, `culprit`, `fault`, `diff()`; shown as text.

        Raises
        ------
        ArgumentError
            TK634 if the arguments of the last call are gone, TK626 for another number of them.

        Notes
        -----
        `handle.bisect(…)` also bisects a kernel that does not compile; see its example.
        """
        values = list(arguments) if arguments else self._recalled()
        found = importlib.import_module("tilekit.jit.bisect")
        route = found.route_of(self.machine, self.compiled, self._load_checked)
        asked = {"against": against, "blocks": blocks, "seed": seed}
        return found.bisect(self.name, self.specialized.fresh(), route, values, sources=self.sources, **asked)

    def bench(
        self,
        *arguments: Any,
        against: Mapping[str, Peer] | None = None,
        sizes: Sequence[Any] | Mapping[str, Any] | None = None,
        make: Callable[..., Any] | None = None,
        flops: float | Callable[..., float] | None = None,
        bytes: float | Callable[..., float] | None = None,
        tolerance: float | None = None,
        even_if_wrong: bool = False,
        rounds: int = 5,
    ) -> Bench:
        """Measure this kernel beside others; its arguments are those of a launch, by default of the last call.

        As `InstantiatedScript.bench`, which may choose another kernel at each size.

        Raises
        ------
        ArgumentError
            TK634 if the arguments of the last call are gone, TK644 for arguments that it was not compiled for.
        """
        bench = importlib.import_module("tilekit.jit.bench")
        contestants = importlib.import_module("tilekit.jit.contestants")
        values = arguments if arguments or sizes is not None else self._recalled()
        asked = bench.Asked(against or {}, flops, bytes, tolerance, even_if_wrong, rounds)

        def resolve(given: Sequence[Any]) -> Subject:
            contestants.refuse_others(self, given)
            return contestants.Subject(self, given, range(len(given)))

        return bench.bench(self.script, resolve, bench.sizes_of(self.script, values, sizes, make), asked)

    # -------------------------------------------------------------------------------------------------- a person's edit

    @property
    def generated(self) -> CompiledProgram | None:
        """The program as the compiler made it, whether or not an edit runs in its place."""
        return None if self.compiled is None else self.compiled.generated or self.compiled

    @property
    def patched(self) -> bool:
        """Whether a source that a person edited runs in place of the generated one, or what an edited tile IR gave."""
        return self.compiled is not None and self.compiled.patched

    @property
    def edit_state(self) -> str:
        """`clean`, or what was decided about a person's edit of it: PATCHED, MERGED, KEPT, CONFLICT and so on."""
        return CLEAN if self.compiled is None else self.compiled.edit_state

    def recompile(self, text: str, provenance: str = "the editor") -> None:
        """Compile this text in place of the generated source; every later launch runs it.

        Raises
        ------
        ToolchainError
            The text does not compile; the last good build stays in place. `data["messages"]` holds its lines.
        """
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
            raise ArgumentError("TK625", f"{self.script}: recompile takes the text of a source.cu, not {text!r}")
        made = self._require_compiled("knows no source to edit")
        base = made.generated or made
        if text == base.source:
            self._use(base)
            return
        edited = importlib.import_module("tilekit.runtime.edited")
        self._use(edited.build(base, Edited(text, provenance), *self.machine.terms))

    def recompile_after(self, step: str, text: str) -> None:
        """Go on compiling from an edited text of the tile IR after a pass; every later launch runs what comes of it.

        What was edited after other passes stays; with the text that the pass made itself, its edit ends.

        Parameters
        ----------
        step
            A tile pass by its name, as `trace` has it; the second one of a name is `analyze_scalar#2`.
        text
            The program that the later passes get in place of what this one made; the verifier looks at it first.

        Raises
        ------
        LanguageError
            The text does not parse, at this line and column; the last good build stays in place.
        VerificationError
            The program breaks a rule of the IR.
        ArgumentError
            TK412 where there is no such pass, TK633 where nothing is compiled.

        Examples
        --------
        >>> import tilekit
        >>> from tilekit import float32
        >>> class Double(tilekit.Script):
        ...     def __call__(self, x_ptr: ~float32):
        ...         self.attrs.blocks = [1]
        ...         self.attrs.warps = 1
        ...         g = self.global_view(x_ptr, dtype=float32, shape=[32])
        ...         self.store_global(g, self.load_global(g, offsets=[0], shape=[32]) * 2.0, offsets=[0])
        >>> double = Double()
        >>> _ = double.compile(tilekit.spec(float32, (32,)))
        >>> kernel = double.last
        >>> text = next(step for step in kernel.trace.steps if step.name == "layout_inference").after_text
        >>> kernel.recompile_after("layout_inference", text.replace("f32(2.0)", "f32(4.0)"))
        >>> kernel.edit_state, "4.0f" in kernel.source
        ('PATCHED', True)
        """
        if not isinstance(step, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
            raise ArgumentError("TK412", f"a tile pass goes by its name, such as layout_inference, not by {step!r}")
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("TK625", f"{self.script}: recompile_after takes the text of a program, not {text!r}")
        made = self._require_compiled("compiles nothing")
        edits = {**(made.generated or made).tile_texts, step: text}
        program = self.specialized.given_to(self.machine.pipeline)
        given = program, edits, *self.machine.terms, self.machine.pipeline
        try:
            made = _drivers().build_from(*given)
        except TilekitError as error:
            raise error.with_sources(self.sources) from error.__cause__
        self._use(replace(made, edit_state=PATCHED if made.tile_edits else CLEAN))

    def revert(self) -> None:
        """Run again what the compiler made of the script."""
        base = self._untouched()
        self._use(None if base is None else replace(base, edit_state=CLEAN))

    def compare(self) -> Comparison:
        """Check some blocks of the edit, then run the generated and the edited kernel on copies of the last arguments.

        Raises
        ------
        ArgumentError
            There was no call, or one of its tensors is gone.
        KernelError
            What the check finds wrong with the edit, or what it does wrong as it runs.
        """
        values = self._recalled()
        try:
            self._check_first(values)
        except KernelError as error:
            raise self._reported(error, checked=True) from error.__cause__
        untouched = self._untouched()
        generated = self._load(untouched)
        params = [] if untouched is None else untouched.manifest.params
        compare = importlib.import_module("tilekit.jit.compare").compare

        def edited(arguments: Sequence[Any]) -> LaunchStats:
            try:
                return self._runner.launch(arguments)
            except KernelError as error:
                raise self._reported(error, checked=False) from error.__cause__

        return compare(params, values, generated.launch, edited, self.machine.device)

    def _untouched(self) -> CompiledProgram | None:
        """What the compiler makes of the script, with no edit at any stage."""
        base = self.generated
        if base is None or not base.tile_edits:
            return base
        given = self.specialized.given_to(self.machine.pipeline), *self.machine.terms
        return _drivers().build_program(*given, pipeline=self.machine.pipeline)

    def _use(self, compiled: CompiledProgram | None) -> None:
        self.compiled = compiled
        for name, member in vars(Kernel).items():
            if isinstance(member, cached_property):  # each is of what ran until now
                self.__dict__.pop(name, None)
        self.sample = self.report = self._made_checker = None
        config.begin_era()

    def _require_compiled(self, lack: str) -> CompiledProgram:
        """What was compiled; where nothing was, an error that names what the evaluator lacks."""
        if self.compiled is None:
            raise ArgumentError("TK633", f"{self.script} runs in the evaluator, which {lack}")
        return self.compiled

    # ------------------------------------------------------------------------------------------- what the compiler made

    @property
    def source(self) -> str:
        """The CUDA C that runs: generated, or edited by a person."""
        if self.compiled is None:
            made, _ = _drivers().generate_source(self._given(), self.machine.target, pipeline=self.machine.pipeline)
            return made.text
        return self.compiled.source

    @property
    def ptx(self) -> str:
        """The PTX of the source that runs, for the kernel's target; on a machine without a GPU, too.

        Raises
        ------
        ToolchainError
            TK502 where NVRTC is not installed, TK501 where it refuses the source.
        """
        return self.machine_code.ptx

    @property
    def sass(self) -> str:
        """The machine code of the kernel's target, as nvdisasm prints it.

        Raises
        ------
        ToolchainError
            TK510 where nvdisasm is not installed, and what `ptx` raises.
        """
        return self.machine_code.sass.text

    @cached_property
    def machine_code(self) -> MachineCode:
        """PTX, the figures of ptxas and machine code, each of them made when it is looked at."""
        compiled = self._require_compiled("has no machine code")
        made = importlib.import_module("tilekit.runtime.machine_code").MachineCode
        return made(compiled, *self.machine.terms)

    def lines(self, language: str, line: int) -> dict[str, list[int]]:
        """The lines that a line was made from, and those that were made from it.

        Parameters
        ----------
        language
            Whose line: `cell` for the person's own, `tile`, `hidet`, `cuda`, `ptx` or `sass`.
        line
            Counted from 1; one of the cell or file as an editor counts it.

        Returns
        -------
        dict
            The lines of each language. `tile` are those of `program` and `cuda` those of `source`; `ptx` and `sass`
            are left out where their tools are missing.

        Raises
        ------
        ArgumentError
            TK646 for a line or a language that there is not.
        ToolchainError
            Where the tool for this language is missing.
        """
        return self._chain.related(language, line)

    @cached_property
    def _chain(self) -> Chain:
        return importlib.import_module("tilekit.jit.lines").Chain(self)

    def span_of_line(self, line: int) -> Span | None:
        """Where the instruction behind a line of `source.cu` (counted from 1) was written."""
        if self.compiled is None:
            return None
        rows: list[int | None] = json.loads(self.compiled.line_map)
        row = rows[line - 1] if 0 < line <= len(rows) else None
        return None if row is None else self.specialized.line_spans[row]

    @cached_property
    def trace(self) -> Recorder:
        """Every pass with the program before and after; of a cached kernel, compiled once more to look at."""
        if self.compiled is not None and self.compiled.recorder is not None:
            return self.compiled.recorder
        return _drivers().record(self._given(), self.machine.target, self.machine.pipeline)

    def page(self, name: str, make: Callable[[Recorder], str]) -> str:
        """A text made of its passes; of a kernel from the cache, the one that was made when it was compiled."""
        base = self.generated
        return make(self.trace) if base is None else base.page(name, self.machine.config, lambda: make(self.trace))

    @property
    def layouts(self) -> list[LayoutRow]:
        """The layout of every tile, who chose it and why."""
        return [LayoutRow(*row) for row in self.trace.layout_rows()]

    @property
    def changed_passes(self) -> tuple[str, ...]:
        """The passes that changed the program."""
        if self.compiled is not None:
            return self.compiled.facts.changed_passes
        return tuple(step.name for step in self.trace.steps if step.changed)


def _drivers() -> Any:
    """The compiler, which the first kernel loads that needs it."""
    return importlib.import_module("tilekit.drivers")
