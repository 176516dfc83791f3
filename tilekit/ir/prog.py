# SPDX-License-Identifier: Apache-2.0
"""A program: functions by name; its printed text is what a cache key is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tilekit.diag.span import Span
from tilekit.ir.func import Function
from tilekit.ir.node import Node
from tilekit.ir.tensor import Tensor
from tilekit.ir.text import printer
from tilekit.ir.text.printer import Printed
from tilekit.lowir.scalar import Var

_LINES_BETWEEN = 2


class frozendict(dict[str, Function]):
    """A dict that refuses to change."""

    def _refuse(self, *_: object, **__: object) -> None:
        raise TypeError("a program is immutable: make a new one with Program.create")

    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Binding:
    """What a name means in a function of a person's from the end of a line on; lines count as in a span."""

    function: str
    name: str
    line: int
    value: Tensor | Var


@dataclass(frozen=True, eq=False)
class Program(Node):
    """Functions by name.

    `bindings` are the names of the person who wrote the kernel, in the order in which they were bound; a program that a
    pass made has none.
    """

    functions: frozendict
    bindings: tuple[Binding, ...] = field(default=(), kw_only=True, repr=False, compare=False)

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
        return self._text

    @cached_property
    def _text(self) -> str:
        return "\n".join(text for text, _ in self._lines)

    def lines(self) -> list[Printed]:
        """The lines of the program's text, each with what it prints."""
        return list(self._lines)

    @cached_property
    def _lines(self) -> Sequence[Printed]:
        found: list[Printed] = []
        for func in self:
            between = _LINES_BETWEEN if found else 0
            found += [*[("", None)] * between, *printer.print_lines(func)]
        return found

    def line_spans(self) -> list[Span | None]:
        """For each line of the program's text, the place that it was written at."""
        return [printer.span_of(printed) for _, printed in self.lines()]
