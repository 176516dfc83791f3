# SPDX-License-Identifier: Apache-2.0
"""A person's changes to the pipeline: passes of their own among the default ones, and default ones left out.

    Pipeline((after("layout_inference", MyPass()), without("bound_aware_simplify"))).applied_to(get_default_passes())

A pass of a person's own is verified after it ran, and watched while it runs: an error is placed in its own lines, and
the note `visits` says which of its methods changed which line.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import CodeType, TracebackType
from typing import Any

from tilekit.diag import sources, suggest
from tilekit.diag.errors import PassError, TilekitError
from tilekit.diag.sources import Located, Location
from tilekit.diag.span import Span
from tilekit.events import BY_HAND, Sink, Stage, step
from tilekit.ir.functors import IRRewriter, watched_by
from tilekit.ir.prog import Program
from tilekit.ir.stmt import InstStmt, Stmt
from tilekit.ir.tools.verifier import verify
from tilekit.transforms.base import Pass, verify_call
from tilekit.transforms.visits import Visits, is_ours


class Where(Enum):
    """How a change relates to the pass that it names; the value is how a person reads it."""

    AFTER = "after"
    BEFORE = "before"
    REPLACE = "in place of"
    WITHOUT = "without"


@dataclass(frozen=True)
class Change:
    """One change to the pipeline: `own` is the pass that comes in, None where one only goes."""

    where: Where
    name: str
    own: Pass | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, ["" if self.own is None else self.own.name, self.where.value, self.name]))


def after(name: str, own: Pass) -> Change:
    """Run `own` after each pass of this name, and after what other changes put there before.

    Parameters
    ----------
    name
        A pass of `get_default_passes()` or of an earlier change. Where one runs several times,
        `"dead_code_elimination#2"` is the second of them.
    own
        An object of your subclass of `Pass`; its fields are its options.

    Raises
    ------
    PassError
        TK412 if `own` is no pass.
    """
    return _change(Where.AFTER, name, own)


def before(name: str, own: Pass) -> Change:
    """Run `own` before each pass of this name; parameters and errors as for `after`."""
    return _change(Where.BEFORE, name, own)


def replace(name: str, own: Pass) -> Change:
    """Run `own` in place of each pass of this name; parameters and errors as for `after`."""
    return _change(Where.REPLACE, name, own)


def without(name: str) -> Change:
    """Leave out each pass of this name; the parameter as for `after`."""
    return Change(Where.WITHOUT, _checked(name))


def _change(where: Where, name: str, own: Pass) -> Change:
    if not isinstance(own, Pass):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
        is_class = isinstance(own, type) and issubclass(own, Pass)
        hint = f"make an object of it: {own.__name__}()" if is_class else "derive a class from tilekit.transforms.Pass"
        raise PassError("TK412", f"{own!r} is no pass that could run {where.value} {name}", help=hint)
    return Change(where, _checked(name), own)


def _checked(name: str) -> str:
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
        raise PassError("TK412", f"{name!r} is no name of a pass", help='passes go by names, as "layout_inference"')
    return name


# ------------------------------------------------------------------------------------------------------ the pipeline


@dataclass(frozen=True)
class Pipeline:
    """The default passes with changes; equal ones make equal programs.

    `key` says what the changes depend on, and `look` makes the pipeline anew from what they depend on now. A `unique`
    key is one that nobody makes again, for what they depend on cannot be tracked.
    """

    changes: tuple[Change, ...] = field(compare=False)
    key: str = ""
    unique: bool = field(default=False, compare=False)
    look: Callable[[], Pipeline] | None = field(default=None, compare=False, repr=False)

    def now(self) -> Pipeline:
        """An equal pipeline, or another one where something that it depends on has changed."""
        return self if self.look is None else self.look()

    def settled_key(self) -> str:
        """The key under which to keep what was made: one that nobody makes again, if something changed meanwhile."""
        return self.key if self.unique or self.now() == self else f"it changed while it ran: {os.urandom(16).hex()}"

    def applied_to(self, passes: Sequence[Pass]) -> list[Pass]:
        """These passes with the changes; PassError TK412 for a change that names none of them."""
        chain = [_Link(each) for each in passes]
        for change in self.changes:
            if not isinstance(change, Change):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
                hint = 'say where a pass comes in: after("layout_inference", MyPass())'
                raise PassError("TK412", f"{change!r} is no change of the pipeline", help=hint)
            _apply(change, chain)
        return [link.each for link in chain]

    def __str__(self) -> str:
        return ", ".join(map(str, self.changes))


@dataclass(frozen=True, eq=False)
class _Link:
    """A pass in the pipeline, and the one that it was put behind."""

    each: Pass
    behind: _Link | None = None

    def follows(self, link: _Link) -> bool:
        """Whether it was put behind the link, or behind one that was."""
        return self.behind is not None and (self.behind is link or self.behind.follows(link))


def _apply(change: Change, chain: list[_Link]) -> None:
    name, _, number = change.name.partition("#")
    named = [link for link in chain if link.each.name == name]
    meant = [link for count, link in enumerate(named, start=1) if number in ("", str(count))]
    if not meant:
        raise _unknown(change, len(named), [link.each.name for link in chain])
    for link in meant:
        at = chain.index(link)
        own = [] if change.own is None else [_Link(Custom(change.own), link if change.where is Where.AFTER else None)]
        match change.where:
            case Where.AFTER:
                end = next((i for i in range(at + 1, len(chain)) if not chain[i].follows(link)), len(chain))
                chain[end:end] = own
            case Where.BEFORE:
                chain[at:at] = own
            case Where.REPLACE | Where.WITHOUT:
                chain[at : at + 1] = own


def _unknown(change: Change, count: int, names: Sequence[str]) -> PassError:
    name = change.name.partition("#")[0]
    if count:
        times = "once" if count == 1 else f"{count} times"
        return PassError("TK412", f"there is no {change.name} in the pipeline: {name} runs {times}")
    near = suggest(name, names)
    hint = f"did you mean {near}?" if near else f"the passes are {', '.join(dict.fromkeys(names))}"
    return PassError("TK412", f"no pass of the pipeline is called {name}", help=hint)


# ------------------------------------------------------------------------------------------------------- running one


class Custom(Pass):
    """A person's pass in the pipeline."""

    def __init__(self, own: Pass) -> None:
        self.own = own

    @property
    def name(self) -> str:
        return self.own.name

    def __str__(self) -> str:
        return self.name

    def __call__(self, prog: Program, sink: Sink = BY_HAND, *, check: bool = True) -> Program:
        """Run the pass, tell `sink` also what its methods did, and verify what came out, whatever `check` says."""
        watch = Visits(_whole(self.own))
        file, line = sources.display_name(watch.whole.co_filename), sources.def_line(watch.whole)
        with step(sink, Stage.TILE, self.name, prog) as underway:
            sink.note("custom", {"pass": self, "class": type(self.own).__qualname__, "file": file, "line": line})
            made = self._watched(prog, sink, watch)
            underway.made(made)
            if made is not prog:
                try:
                    verify(made)
                    verify_call(prog, made)
                except Exception as error:
                    raise _breaks(self.own, error, watch.behind(_at_fault(made), prog, made)) from error
            sink.note("visits", watch.note(prog, made))
        return made

    def _watched(self, prog: Program, sink: Sink, watch: Visits) -> Program:
        try:
            with watched_by(watch):
                made = self.own.process_program(prog, sink)
            if not isinstance(made, Program):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person wrote it
                raise TypeError(f"process_program returned {made!r}, not a Program")
        except Exception as error:
            raise _failed(self.own, error, watch.whole) from error
        return made


def _whole(own: Pass) -> CodeType:
    """The method that the pass is: the one that its class overrides."""
    cls = type(own)
    overrides = cls.process_program is not Pass.process_program
    return (cls.process_program if overrides else cls.process_function).__code__


def _at_fault(prog: Program) -> Stmt | None:
    """The statement that breaks a rule, found by a copy in which the place of each statement is its number."""
    numbered = _Numbered()
    try:
        verify(numbered.visit(prog))
    except TilekitError as error:
        at = error.diagnostic.at
        return None if at is None or at.function != _Numbered.PLACE else numbered.statements[at.line]
    except Exception:
        return None  # it is too broken to be read, so nobody can say where
    return None


class _Numbered(IRRewriter):
    """Gives every statement its number as its place."""

    PLACE = "a statement"

    def __init__(self) -> None:
        super().__init__()
        self.statements: list[Stmt] = []

    def answer(self, node: Any) -> Any:
        made = super().answer(node)
        if not isinstance(node, Stmt):
            return made
        self.statements.append(node)
        place = Span(self.PLACE, len(self.statements) - 1, 0, 0, 0)
        if isinstance(made, InstStmt):
            made = made.replace(inst=made.inst.replace(span=place))
        return made.replace(span=place)


def _failed(own: Pass, error: Exception, whole: CodeType) -> PassError:
    """What to raise for a pass that raised: an error at the line of the person's that it came from."""
    method, place = _line_of(own, error.__traceback__) or (whole, sources.defined(whole))
    return _error("TK410", f"the pass {own.name} failed", own, error, {method: place})


def _breaks(own: Pass, error: Exception, methods: Sequence[CodeType]) -> PassError:
    """What to raise for a program that breaks a rule: an error at the method that is behind it."""
    places = {method: sources.defined(method) for method in methods}
    return _error("TK411", f"the pass {own.name} breaks the program", own, error, places)


def _error(code: str, what: str, own: Pass, error: Exception, places: Mapping[CodeType, Location | None]) -> PassError:
    """An error at the first of these places; the others, and where it is in the kernel, are notes."""
    at, *others = ((_function(method), _span(method, place)) for method, place in places.items())
    said = "".join(traceback.format_exception_only(error)).strip()
    notes: list[tuple[str, Span | None]] = [(f"{function} changed the program, too", span) for function, span in others]
    if isinstance(error, TilekitError):
        said = error.message
        if error.diagnostic.at is not None:
            notes.append(("in the kernel it is this line", error.diagnostic.at))
        notes += error.diagnostic.notes
    made = PassError(code, f"{what}: {said}", at=at[1], notes=notes, data={"pass": own.name, "method": at[0]})
    located = {span: place for method, place in places.items() if place and (span := _span(method, place))}
    return made.with_sources(Located(located)) if located else made


def _function(method: CodeType) -> str:
    return method.co_qualname.rpartition("<locals>.")[2]


def _span(method: CodeType, place: Location | None) -> Span | None:
    if place is None:
        return None
    above = sources.def_line(method)
    return Span(_function(method), place.line - above, place.col, place.end_line - above, place.end_col)


def _line_of(own: Pass, at: TracebackType | None) -> tuple[CodeType, Location | None] | None:
    """Where a person's own code was when it raised: the innermost line of the pass's file, else of any but ours."""
    files = {found.co_filename for cls in type(own).__mro__ if not is_ours(cls.__module__) for found in _codes(cls)}
    raised: list[tuple[CodeType, int]] = []
    theirs: list[tuple[CodeType, int]] = []
    while at is not None:
        code = at.tb_frame.f_code
        if code.co_filename in files:
            raised.append((code, at.tb_lasti))
        elif not is_ours(at.tb_frame.f_globals.get("__name__")):
            theirs.append((code, at.tb_lasti))
        at = at.tb_next
    found = raised or theirs
    return (found[-1][0], sources.running(*found[-1])) if found else None


def _codes(cls: type) -> list[CodeType]:
    return [code for member in vars(cls).values() if isinstance(code := getattr(member, "__code__", None), CodeType)]
