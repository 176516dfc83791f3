# SPDX-License-Identifier: Apache-2.0
"""The programs of a specialization: transpiled once, kept as text, found by every later process.

A launch needs the text of a program and a few facts about it, no more: the text is the key of what was compiled from
it. Whoever looks at the program itself (`Specialized.program`) gets it read back from the text. Places in the user's
source are kept as numbers of syntax nodes, so they are right wherever the function stands now, with comments or
blank lines that it did not have then.

    restart = Restart(…).look(config)  # what the specialization depends on, as it is now: a few milliseconds
    restart.load(number)               # a Specialized, a FailedSchedule, or None: it must be transpiled
    restart.save(number, made)         # for the next process
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tilekit import diag
from tilekit.cache import fingerprint
from tilekit.cache.programs import key_of
from tilekit.cache.specializations import FORMAT, SpecializationCache
from tilekit.config import Config
from tilekit.diag.errors import TilekitError
from tilekit.diag.sources import Sources
from tilekit.diag.span import Span
from tilekit.jit import assumed
from tilekit.jit.arguments import JitKey
from tilekit.jit.assumed import Assumption
from tilekit.lang import dependencies, source
from tilekit.lang.dependencies import Untracked
from tilekit.lang.params import CallParameters
from tilekit.runtime import device

if TYPE_CHECKING:
    from tilekit.ir.prog import Program
    from tilekit.transforms.custom import Pipeline

# the number of a syntax node in its function, in its caller, and so on; a span's fields where there is no such node
Place = list[Any]


@dataclass(frozen=True, eq=False)
class Specialized:
    """The program of one schedule.

    `strided` are the pointers that it views with strides of the user's own; `assumptions` are what it
    relies on (see `assumed`). `line_spans` are the places of the lines of `text`.
    """

    text: str
    strided: frozenset[str]
    assumptions: tuple[Assumption, ...] | None
    find_spans: Callable[[], Sequence[Span | None]]
    # how to make it from the script; None for whoever asks for its text alone
    transpile: Callable[[], Specialized | FailedSchedule] | None

    @staticmethod
    def of(program: Program, transpile: Callable[[], Specialized | FailedSchedule]) -> Specialized:
        """A program that `transpile` has just made."""
        views = importlib.import_module("tilekit.ir.tools.views")
        strided = frozenset(views.strided_pointers(program))
        made = Specialized(str(program), strided, assumed.of_program(program), program.line_spans, transpile)
        made.__dict__["program"] = made.__dict__["written"] = program
        return made

    @cached_property
    def line_spans(self) -> Sequence[Span | None]:
        return self.find_spans()

    @cached_property
    def program(self) -> Program:
        """The program as IR: to compile it, its text is enough."""
        return self._parsed()

    def given_to(self, pipeline: Pipeline | None) -> Program:
        """The program for passes to work on; those of a person get one of their own, which they may spoil."""
        return self.program if pipeline is None else self._parsed()

    def _parsed(self) -> Program:
        # the compiler is loaded by the first who looks
        parser = importlib.import_module("tilekit.ir.text.parser")
        return parser.parse_program(self.text, self.line_spans)

    @cached_property
    def written(self) -> Program:
        """The program with all that only its transpiler knows, such as the person's names; of the script as it is now.

        Where the script has changed since, or cannot be read any more, it is the program of the text.
        """
        return self._transpiled() or self.program

    def fresh(self) -> Program:
        """The same made anew, for those who may spoil it."""
        return self._transpiled() or self._parsed()

    def _transpiled(self) -> Program | None:
        again = None if self.transpile is None else self.transpile()
        return again.program if isinstance(again, Specialized) and again.text == self.text else None


@dataclass(frozen=True)
class FailedSchedule:
    """A schedule that gives no program, and why."""

    schedule: Mapping[str, Any]
    error: TilekitError


@dataclass(frozen=True)
class Specialization:
    """One script for one jit key, with all its schedules; `name` is for people."""

    script: type
    params: CallParameters
    schedules: Sequence[Mapping[str, Any]]
    key: JitKey
    sources: Sources
    name: str

    def look(self, config: Config) -> Restart:
        """Follow all that the programs depend on, as it is now."""
        try:
            inputs = self._inputs(config.cache_dir)
        except Untracked as reason:
            return Restart(self, config, None, {}, str(reason))
        except RecursionError:
            return Restart(self, config, None, {}, "what it depends on is nested too deeply")
        return Restart(self, config, key_of({**inputs, "format": str(FORMAT)}), inputs)

    def _inputs(self, root: Path) -> dict[str, str]:
        """All that the programs depend on, part by part."""
        found = dependencies.of_script(self.script, {"the schedules": [dict(one) for one in self.schedules]})
        for name, function in found.functions.items():
            self.sources.register(name, function.__code__)
        params = [
            (name, str(kind)) for name, kind in zip(self.params.param_names, self.params.param_types, strict=True)
        ]
        ours = {
            "the compiler's front end": fingerprint.compiler(root).frontend,
            "the version of Python": sys.version,
            "the parameters": str(params),
            "the compile-time arguments": str(self.key.texts),
            "what the arguments are divisible by": str(self.key.divisors),
        }
        if found.asks_for_gpu:
            ours["the GPUs of this machine"] = str(device.survey().gpus)
        return {**ours, **found.parts}


@dataclass(frozen=True)
class Restart:
    """The programs of a specialization in the cache, and what they depend on at one moment.

    `untracked` says in words why nothing is kept: something cannot be compared between processes. Then there is no key.
    """

    of: Specialization
    config: Config
    key: str | None
    inputs: Mapping[str, str]
    untracked: str | None = None

    @property
    def enclosed(self) -> str:
        """A key of what its functions found in the functions that they were written in; empty if that is nothing."""
        found = {name: text for name, text in self.inputs.items() if name.startswith(dependencies.ENCLOSED)}
        return key_of(found) if found else ""

    def load(
        self, number: int, transpile: Callable[[], Specialized | FailedSchedule] | None = None
    ) -> Specialized | FailedSchedule | None:
        """The program of a schedule as another process left it, or why it has none.

        `transpile` makes it from the script, for whoever wants to know more than its text says.
        """
        found = None if self.key is None else SpecializationCache(self.config.cache_dir).lookup(self.key, number)
        if found is None:
            return None
        text, facts = found
        if "error" in facts:
            return FailedSchedule(self.of.schedules[number], self._error(facts["error"]))
        places: list[Place | None] = facts["places"]
        rows: list[tuple[str, int]] | None = facts["assumptions"]
        assumptions = None if rows is None else tuple(Assumption(*row) for row in rows)
        return Specialized(text, frozenset(facts["strided"]), assumptions, lambda: self._spans(places), transpile)

    def save(self, number: int, made: Specialized | FailedSchedule) -> None:
        """Keep the program of a schedule, or why it has none."""
        if self.key is None:
            return
        if isinstance(made, Specialized):
            places = [None if span is None else self._place(span) for span in made.line_spans]
            text = made.text
            rows = None if made.assumptions is None else [[each.condition, each.line] for each in made.assumptions]
            facts = {"strided": sorted(made.strided), "assumptions": rows, "places": places}
        else:
            text, facts = made.error.to_text(), {"error": self._record(made.error)}
        manifest = {
            "script": self.of.script.__name__,
            "specialization": self.of.name,
            "schedules": [str(dict(schedule)) for schedule in self.of.schedules],
            "inputs": {name: shown(text) for name, text in self.inputs.items()},
        }
        cache = SpecializationCache(self.config.cache_dir, self.config.cache_limit)
        cache.publish(self.key, manifest, number, text, facts)

    # ------------------------------------------------------------------------------------------------------- places

    def _place(self, span: Span) -> Place:
        caller = None if span.caller is None else self._place(span.caller)
        read = self._read(span.function)
        number = None if read is None else _number(read, span)
        at = number if number is not None else [span.line, span.col, span.end_line, span.end_col]
        return [span.function, at, caller]

    def _span(self, place: Place) -> Span | None:
        function, at, caller = place
        outer = None if caller is None else self._span(caller)
        if isinstance(at, list):
            line, col, end_line, end_col = cast("list[int]", at)
            return Span(function, line, col, end_line, end_col, outer)
        read = self._read(function)
        if read is None or at >= len(read.places):
            return None
        return dataclasses.replace(read.places[at], caller=outer)

    def _spans(self, places: Iterable[Place | None]) -> list[Span | None]:
        return [None if place is None else self._span(place) for place in places]

    def _read(self, function: str) -> source.FunctionSource | None:
        code = self.of.sources.code(function)
        try:
            return None if code is None else source.read_code(code)
        except TilekitError:
            return None

    # ------------------------------------------------------------------------------------------------------- errors

    def _record(self, error: TilekitError) -> dict[str, Any]:
        said = error.diagnostic

        def place(span: Span | None) -> Place | None:
            return None if span is None else self._place(span)

        return {
            "class": type(error).__name__,
            "code": said.code,
            "message": said.message,
            "at": place(said.at),
            "notes": [[text, place(span)] for text, span in said.notes],
            "help": said.help,
        }

    def _error(self, record: Mapping[str, Any]) -> TilekitError:
        def span(place: Place | None) -> Span | None:
            return None if place is None else self._span(place)

        made: type[TilekitError] = getattr(diag, record["class"])
        notes = [(text, span(place)) for text, place in record["notes"]]
        error = made(record["code"], record["message"], at=span(record["at"]), notes=notes, help=record["help"])
        return error.with_sources(self.of.sources)


def of_all(first: TilekitError, failures: int) -> TilekitError:
    """The error of the first schedule, for all of them."""
    note = f"all {failures} schedules fail; this is the error of the first"
    is_noted = any(text == note for text, _ in first.diagnostic.notes)
    return first if failures == 1 or is_noted else first.noted(note)


def _number(read: source.FunctionSource, span: Span) -> int | None:
    """The number of the node at this place, or of the smallest one around it."""
    wanted = dataclasses.replace(span, caller=None)
    if wanted in read.numbers:
        return read.numbers[wanted]
    begin, end = (span.line, span.col), (span.end_line, span.end_col)
    around = [
        (at.end_line - at.line, at.end_col - at.col, number)
        for number, at in enumerate(read.places)
        if (at.line, at.col) <= begin and end <= (at.end_line, at.end_col)
    ]
    return min(around)[2] if around else None


def shown(text: str) -> str:
    """A part of a key as its manifest shows it: whole if it is short."""
    return text if len(text) <= 200 else f"{text[:80]}… sha256 {hashlib.sha256(text.encode()).hexdigest()[:16]}"
