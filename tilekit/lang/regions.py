# SPDX-License-Identifier: Apache-2.0
"""Run-time control flow: what it does to names, and the guard that nothing else changes inside of it.

Of names that a loop or a branch binds there are four kinds. A *carried* name has a value before and may be read after:
it owns storage. A *joined* name gets its value in each branch of an `if`: it has storage from the `if` on. A *local*
name is bound before it is read and not read later, so its values never meet. Any other name ends with the region.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tilekit.diag import errors
from tilekit.ir.stmt import IfStmt, SeqStmt, Stmt
from tilekit.ir.surface import describe
from tilekit.ir.tensor import RegisterTensor
from tilekit.lang import builder as builders
from tilekit.lang import objects, syntax
from tilekit.lang.bindings import Bindings
from tilekit.lang.frame import Unavailable
from tilekit.lowir.scalar import Expr

_ON_SOME_PATHS = Unavailable("is only bound on some paths through an if: bind it before the if, or on every path")
_IN_THE_IF = Unavailable("was bound inside an if, which did not expect it to be read afterwards")
_IN_THE_LOOP = Unavailable("is first bound inside a loop that may run no iteration: bind it before the loop")


@dataclass(frozen=True)
class _Plan:
    """What becomes of the names that a region binds."""

    carried: set[str]
    joined: set[str]
    local: set[str]


@dataclass(frozen=True)
class _Side:
    """One branch of a run-time if."""

    statements: list[Stmt]
    names: dict[str, Any]

    @property
    def goes_on(self) -> bool:
        return not builders.ends(self.statements)


class Regions:
    """Opens and closes run-time loops and branches."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.builder = bindings.builder
        self._guards: list[_Guard] = []

    # --------------------------------------------------------------------------------------------------------- loops

    @contextmanager
    def loop(self, node: ast.For | ast.While, body: Sequence[ast.stmt]) -> Generator[list[Stmt]]:
        """The block of a loop's body: names from outside that it rebinds own storage, its own names end with it."""
        frame = self.bindings.frame
        plan = self._plan(node, [body])
        self.bindings.separate()
        with self._open(plan.carried), self.builder.block() as statements:
            yield statements
        frame.names.update(dict.fromkeys(plan.joined | plan.local, _IN_THE_LOOP))

    # ------------------------------------------------------------------------------------------------------ branches

    def branch(
        self,
        node: ast.If,
        condition: Expr,
        then: tuple[Sequence[ast.stmt], Callable[[], None]],
        otherwise: tuple[Sequence[ast.stmt], Callable[[], None]],
    ) -> None:
        """A run-time if: of each branch its text, and what executes it."""
        frame = self.bindings.frame
        plan = self._plan(node, [then[0], otherwise[0]])
        self.bindings.separate()
        sides: list[_Side] = []
        with self._open(plan.carried):
            before = frame.names
            for _, execute in (then, otherwise):
                frame.names = dict(before)
                with self.builder.block() as statements:
                    execute()
                sides.append(_Side(statements, frame.names))
            frame.names = before
        for name in sorted(plan.joined):
            frame.names[name] = self._joined(name, [side for side in sides if side.goes_on])
        frame.names.update(dict.fromkeys(plan.local, _IN_THE_IF))
        self._append_if(condition, *(side.statements for side in sides))

    def choice(self, condition: Expr, *sides: tuple[list[Stmt], Any]) -> Any:
        """The value of a run-time choice whose two sides made statements of their own."""

        def mismatch(one: Any, other: Any) -> errors.LanguageError:
            return errors.LanguageError(
                "TK106",
                f"a run-time choice between {describe(one)} and {describe(other)}",
                help="both must be numbers of one type, or tiles of one type and shape",
            )

        value = self.bindings.merged("t", list(sides), mismatch)
        if isinstance(value, Unavailable):
            raise mismatch(*(value for _, value in sides))
        self._append_if(condition, *(statements for statements, _ in sides))
        return value

    def deferred(self, evaluate: Callable[[], Any]) -> tuple[list[Stmt], Any]:
        """A value that may turn out not to be needed, with the statements that make it; none if it is an expression."""
        names = self.bindings.frame.activation.names
        before = dict(names)
        self.bindings.separate()
        with self._guarded(), self.builder.block() as statements:
            value = evaluate()
        if names.keys() != before.keys() or any(names[name] is not before[name] for name in names):
            raise errors.LanguageError(
                "TK103",
                "a name cannot be bound where it is decided at run time whether this is computed",
                help="use an if statement",
            )
        plain = builders.only_declares(statements, value) if isinstance(value, Expr) else None
        return (statements, value) if plain is None else ([], plain)

    def _append_if(self, condition: Expr, then: list[Stmt], otherwise: list[Stmt]) -> None:
        else_body = SeqStmt.create(otherwise) if otherwise else None
        self.builder.append(IfStmt(condition, SeqStmt.create(then), else_body, span=self.builder.span))

    def _joined(self, name: str, sides: list[_Side]) -> Any:
        values = [side.names.get(name, _ON_SOME_PATHS) for side in sides]
        missing = next((value for value in values if isinstance(value, Unavailable)), None)
        if not values or missing is not None:
            return _ON_SOME_PATHS

        def mismatch(one: Any, other: Any) -> errors.LanguageError:
            return errors.LanguageError(
                "TK114",
                f"{name} is {describe(one)} on one path through this if, and {describe(other)} on the other",
                help="give the two values different names, or make them of one type",
            )

        return self.bindings.merged(name, [(side.statements, side.names[name]) for side in sides], mismatch)

    # --------------------------------------------------------------------------------------------------------- names

    def _plan(self, node: ast.stmt, bodies: Sequence[Sequence[ast.stmt]]) -> _Plan:
        """Sort the names that the bodies of `node` bind, and give the carried ones storage."""
        frame = self.bindings.frame
        found = syntax.bound([statement for body in bodies for statement in body])
        plan = _Plan(set(), set(), set())
        for name in sorted(found.names - frame.owned):
            exists = name in frame.names and not isinstance(frame.names[name], Unavailable)
            if self._is_local(node, bodies, name):
                plan.local.add(name)
            elif not exists or (isinstance(node, ast.If) and all(syntax.binds_always(body, name) for body in bodies)):
                plan.joined.add(name)
            elif self.bindings.own(name, rebound=name in found.rebound, updated=name in found.updated):
                plan.carried.add(name)
        for name in sorted(found.written - found.names - frame.owned):
            is_tile = isinstance(frame.names.get(name), RegisterTensor)
            if is_tile and self.bindings.own(name, rebound=False, updated=True):
                plan.carried.add(name)
        return plan

    def _is_local(self, node: ast.stmt, bodies: Sequence[Sequence[ast.stmt]], name: str) -> bool:
        """Whether no body reads a value that `name` had before, and nobody reads one that it has after."""
        frame = self.bindings.frame
        around = frame.loops[0].node if frame.loops else None
        reads_before = any(syntax.reads_outside(body, name) for body in bodies)
        return not reads_before and not syntax.is_read_later(frame.source.node, node, around, name)

    @contextmanager
    def _open(self, carried: set[str]) -> Generator[None]:
        with self.bindings.frame.owning(carried), self._guarded():
            yield

    # --------------------------------------------------------------------------------------------------------- guard

    @contextmanager
    def _guarded(self) -> Generator[None]:
        self._guards.append(_Guard(self.bindings.roots()))
        yield
        self.check()
        self._guards.pop()

    def check(self) -> None:
        """Refuse what would happen once, at compile time, although it stands in run-time control flow."""
        for guard in self._guards:
            kind = guard.changed()
            if kind is not None:
                raise errors.LanguageError(
                    "TK114",
                    f"a {kind} from outside changes under run-time control flow, but it exists only while compiling",
                    help="use a tile or a scalar for what changes while the kernel runs",
                )


class _Guard:
    """Remembers the contents of every Python container that is reachable from some values."""

    def __init__(self, roots: Sequence[object]) -> None:
        self._seen: dict[int, tuple[object, list[object]]] = {}
        attributes = (value for owner in objects.reachable(roots) for value in vars(owner).values())
        waiting = [*roots, *attributes]
        while waiting:
            value = waiting.pop()
            if type(value) in _CONTAINERS and id(value) not in self._seen:
                parts = list(objects.parts(value))
                self._seen[id(value)] = (value, parts)
                waiting.extend(parts)

    def changed(self) -> str | None:
        """The type of a container that is not what it was."""
        for container, parts in self._seen.values():
            now = list(objects.parts(container))
            if len(now) != len(parts) or any(a is not b for a, b in zip(now, parts, strict=True)):
                return type(container).__name__
        return None


_CONTAINERS = (list, dict, set, tuple)
