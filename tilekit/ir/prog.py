# SPDX-License-Identifier: Apache-2.0
"""A program: functions by name; its printed text is what a cache key is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilekit.ir.func import Function
from tilekit.ir.node import Node
from tilekit.ir.text import printer


class frozendict(dict[str, Function]):
    """A dict that refuses to change."""

    def _refuse(self, *_: object, **__: object) -> None:
        raise TypeError("a program is immutable: make a new one with Program.create")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Program(Node):
    """Functions by name."""

    functions: frozendict

    @staticmethod
    def create(functions: Mapping[str, Function]) -> Program:
        return Program(frozendict(functions))

    @property
    def function(self) -> Function:
        """The one function of a program that has one."""
        (only,) = self.functions.values()
        return only

    def with_function(self, func: Function) -> Program:
        """This program with `func` in place of the function of its name; the same program where nothing changed."""
        if self.functions.get(func.name) is func:
            return self
        return Program.create({**self.functions, func.name: func})

    def __iter__(self) -> Iterator[Function]:
        return iter(self.functions.values())

    def __str__(self) -> str:
        return "\n\n\n".join(printer.print_function(func) for func in self)
