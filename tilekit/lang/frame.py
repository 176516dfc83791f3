# SPDX-License-Identifier: Apache-2.0
"""The names of one function call: Python's scoping, and which names own their storage at the moment."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from tilekit.diag import errors, suggest
from tilekit.diag.span import Span
from tilekit.dtypes import DataType
from tilekit.ir.tensor import Tensor
from tilekit.lang import objects
from tilekit.lang.source import FunctionSource


@dataclass(frozen=True)
class Unavailable:
    """What a name is bound to where Python would not be sure that it has a value."""

    reason: str


@dataclass(frozen=True)
class Loop:
    """A loop that is being executed: when the kernel runs, or now, item by item."""

    node: ast.For | ast.While
    at_run_time: bool
    # how many run-time blocks are open around its body
    depth: int


@dataclass(eq=False)
class Frame:
    """One activation of a function that is being transpiled, or a scope inside of one: a lambda, a comprehension."""

    source: FunctionSource
    function: Any  # a FunctionType, which as the type of a field would read as a method
    caller: Span | None
    # how many run-time blocks are open where the call stands
    depth: int = 0
    outer: Frame | None = None
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    # names that a surrounding run-time loop or branch rebinds: they have storage, and rebinding writes it
    owned: set[str] = field(default_factory=set[str])
    # what annotations said about names: a dtype, or the Python type of a compile-time value
    declared: dict[str, DataType | type] = field(default_factory=dict[str, "DataType | type"])
    loops: list[Loop] = field(default_factory=list[Loop])
    # the names as they were noted last
    noted: dict[str, Any] = field(default_factory=dict[str, Any])

    def scope(self, names: Mapping[str, Any]) -> Frame:
        """A scope inside of this one that binds `names`."""
        return Frame(self.source, self.function, self.caller, self.depth, self, dict(names))

    @property
    def activation(self) -> Frame:
        """The function call that this scope belongs to."""
        return self if self.outer is None else self.outer.activation

    def lookup(self, name: str) -> Any:
        scope: Frame | None = self
        while scope is not None:
            if name in scope.names:
                return _available(name, scope.names[name])
            scope = scope.outer
        if name in self.source.local_names:
            raise errors.LanguageError("TK105", f"{name} is read before it is bound")
        surroundings = self._surroundings()
        if name in surroundings:
            return surroundings[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        near = suggest(name, [*self._visible(), *surroundings])
        raise errors.LanguageError(
            "TK102", f"there is no name {name} here", help=f"did you mean {near}?" if near else None
        )

    def _surroundings(self) -> dict[str, Any]:
        """The globals of the function, and the variables of the functions that it is nested in."""
        function: FunctionType = self.function
        found = dict(function.__globals__)
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
            try:
                found[name] = cell.cell_contents
            except ValueError:  # not bound yet, as Python would say
                found.pop(name, None)
        return found

    def _visible(self) -> list[str]:
        return [*self.names, *(self.outer._visible() if self.outer is not None else ())]

    @contextmanager
    def owning(self, names: set[str]) -> Generator[None]:
        """Within the block, these names own storage."""
        fresh = names - self.owned
        self.owned |= fresh
        try:
            yield
        finally:
            self.owned -= fresh

    def references(self, tensor: Tensor) -> int:
        """How many of this scope's names lead to `tensor`, directly or through containers."""
        return sum(objects.count(value, tensor) for value in self.names.values())


def _available(name: str, value: Any) -> Any:
    if isinstance(value, Unavailable):
        raise errors.LanguageError("TK105", f"{name} {value.reason}")
    return value
