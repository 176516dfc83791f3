# SPDX-License-Identifier: Apache-2.0
"""The names of one function call: Python's scoping, and which names own their storage at the moment."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, cast

from tilekit.diag import errors, suggest
from tilekit.diag.span import Span
from tilekit.ir.tensor import Tensor
from tilekit.lang.source import FunctionSource


@dataclass(frozen=True)
class Unavailable:
    """What a name is bound to where Python would not be sure that it has a value."""

    reason: str


@dataclass
class Frame:
    """One activation of a function that is being transpiled."""

    source: FunctionSource
    function: FunctionType
    caller: Span | None
    names: dict[str, Any] = field(default_factory=dict[str, Any])
    # names that a surrounding run-time loop or branch rebinds: they have storage, and rebinding writes it
    owned: set[str] = field(default_factory=set[str])

    def lookup(self, name: str) -> Any:
        if name in self.names:
            value = self.names[name]
            if isinstance(value, Unavailable):
                raise errors.LanguageError("TK105", f"{name} {value.reason}")
            return value
        code = self.function.__code__
        if name in code.co_freevars and self.function.__closure__ is not None:
            cell = self.function.__closure__[code.co_freevars.index(name)]
            try:
                return cell.cell_contents
            except ValueError:
                pass
        if name in self.function.__globals__:
            return self.function.__globals__[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        near = suggest(name, [*self.names, *self.function.__globals__])
        raise errors.LanguageError(
            "TK102", f"there is no name {name} here", help=f"did you mean {near}?" if near else None
        )

    @contextmanager
    def owning(self, names: set[str]) -> Iterator[None]:
        """Within the block, these names own storage."""
        fresh = names - self.owned
        self.owned |= fresh
        try:
            yield
        finally:
            self.owned -= fresh

    def references(self, tensor: Tensor) -> int:
        """How many of this frame's names lead to `tensor`, directly or through containers."""
        return sum(_count(value, tensor) for value in self.names.values())


def _count(value: object, tensor: Tensor) -> int:
    if value is tensor:
        return 1
    if isinstance(value, (tuple, list)):
        return sum(_count(part, tensor) for part in cast("list[object]", value))
    if isinstance(value, dict):
        return sum(_count(part, tensor) for part in cast("dict[object, object]", value).values())
    return 0
