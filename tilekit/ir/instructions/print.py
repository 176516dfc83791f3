# SPDX-License-Identifier: Apache-2.0
"""Printing from inside a kernel: tensors, and numbers in a format of C's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.inst import Instruction, operand, scalars, static
from tilekit.ir.machine import Machine, Steps, Value
from tilekit.ir.surface import Surface, describe
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr


@dataclass(frozen=True)
class Place:
    """One place of a format: `%`, flags with width and precision, a length, and the letter of a conversion."""

    flags: str
    length: str
    letter: str

    def takes(self, dtype: DataType | PointerType) -> bool:
        """Whether a number of this type can stand here."""
        if isinstance(dtype, PointerType):
            return self.letter == "p"
        return dtype.is_float() if self.letter in _FLOATS else self.letter in _INTEGERS and not dtype.is_float()

    def text(self, value: Any, dtype: DataType | PointerType) -> str:
        """What C prints for a number here."""
        if self.letter == "p":
            return hex(int(value))
        if self.letter in _FLOATS:
            return f"%{self.flags}{self.letter}" % float(value)
        width = 64 if isinstance(dtype, DataType) and dtype.nbits == 64 else 32
        number = int(value) % 2**width
        if self.letter in "di" and number >= 2 ** (width - 1):
            number -= 2**width
        return f"%{self.flags}{self.letter.replace('u', 'd')}" % number

    def in_c(self, dtype: DataType | PointerType) -> str:
        """The place with the length that C needs for a number of this type; a float must come as a double."""
        wide = isinstance(dtype, DataType) and dtype.nbits == 64 and not dtype.is_float()
        return f"%{self.flags}{'ll' if wide else ''}{self.letter}"


_INTEGERS, _FLOATS = "diuxXoc", "eEfFgG"
_PLACE = re.compile(r"%(?:(%)|([-+ #0]*\d*(?:\.\d+)?)(hh|h|ll|l|j|z|t|L)?([a-zA-Z]))")


def pieces(fmt: str) -> list[str | Place]:
    """A format taken apart into plain text and places."""
    found: list[str | Place] = []
    end = 0
    for match in _PLACE.finditer(fmt):
        plain, end = fmt[end : match.start()], match.end()
        percent, flags, length, letter = match.groups()
        found += [plain + (percent or "")] if plain or percent else []
        found += [] if percent else [Place(flags, length or "", letter)]
    return [*found, fmt[end:]] if end < len(fmt) else found


def element_format(dtype: DataType) -> str:
    """How an element of a tensor is printed unless a person says otherwise."""
    return "%g" if dtype.is_float() else "%u" if not dtype.is_signed() else "%d"


class PrintTensorInst(Instruction, opcode="print_tensor"):
    """Print `msg` and the elements of `x`, each in the format `fmt`; one thread prints.

    A line with the message, then the elements in row-major order, dimensions in brackets: `[[1, 2],`, ` [3, 4]]`.
    """

    x: RegisterTensor | SharedTensor | GlobalTensor = operand()
    msg: str = static()
    fmt: str | None = static(default=None)

    @staticmethod
    def create(x: RegisterTensor | SharedTensor | GlobalTensor, msg: str, fmt: str | None = None) -> PrintTensorInst:
        if fmt is not None:
            _check_format("print_tensor", fmt, [x.dtype])
        return PrintTensorInst(None, x, msg, fmt)

    @property
    def format(self) -> list[str | Place]:
        """The format of one element, taken apart."""
        return pieces(self.fmt if self.fmt is not None else element_format(self.x.dtype))

    def execute(self, machine: Machine) -> Steps:
        match self.x:
            case RegisterTensor():
                value = machine.read(self.x)
            case SharedTensor():
                value = machine.load_shared(self.x)
            case GlobalTensor():
                value = machine.global_value(self.x)
        machine.print(f"{self.msg}\n{_nested(value, self._element)}\n")
        yield from ()

    def _element(self, value: Any) -> str:
        dtype = self.x.dtype
        return "".join(part if isinstance(part, str) else part.text(value, dtype) for part in self.format)


def _nested(value: Value, element: Callable[[Any], str], depth: int = 0) -> str:
    """The elements in brackets, one line for each row."""
    if not value.data.shape:
        return element(value.data[()]) if value.defined else "?"
    rows = [_nested(Value(*row), element, depth + 1) for row in zip(*value, strict=True)]
    between = ", " if value.data.ndim == 1 else ",\n" + " " * (depth + 1)
    return f"[{between.join(rows)}]"


class FormatPrintInst(Instruction, opcode="printf"):
    """Every thread of the group prints `args` in the format `fmt`."""

    fmt: str = static()
    args: tuple[Expr, ...] = scalars(default=())

    @staticmethod
    def create(fmt: str, args: Sequence[Expr] = ()) -> FormatPrintInst:
        _check_format("printf", fmt, list(map(scalar.dtype_of, args)))
        return FormatPrintInst(None, fmt, tuple(args))

    @property
    def format(self) -> list[str | Place]:
        """The format, taken apart; its places are for the arguments in their order."""
        return pieces(self.fmt)

    def execute(self, machine: Machine) -> Steps:
        values = iter([(machine.scalar(arg), scalar.dtype_of(arg)) for arg in self.args])
        line = "".join(part if isinstance(part, str) else part.text(*next(values)) for part in self.format)
        machine.print(line * machine.num_threads)
        yield from ()


def _check_format(op: str, fmt: str, types: Sequence[DataType | PointerType]) -> None:
    if not isinstance(fmt, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
        raise errors.LanguageError("TK106", f"{op} needs a format known at compile time, got {describe(fmt)}")
    places = [part for part in pieces(fmt) if isinstance(part, Place)]
    for place in places:
        if place.letter not in f"{_INTEGERS}{_FLOATS}p":
            raise errors.LanguageError(
                "TK104",
                f"{op}: %{place.letter} in {fmt!r} prints no number",
                help="use %d for integers, %f, %e or %g for floats, %p for pointers, %% for a percent sign",
            )
    if len(places) != len(types):
        raise errors.LanguageError(
            "TK104", f"{op}: the format {fmt!r} has places for {len(places)} numbers, got {len(types)}"
        )
    for place, type_ in zip(places, types, strict=True):
        if not place.takes(type_):
            fitting = "p" if isinstance(type_, PointerType) else "f" if type_.is_float() else "d"
            raise errors.LanguageError(
                "TK212", f"{op}: %{place.letter} in {fmt!r} cannot print {type_}", help=f"write %{fitting}"
            )


class PrintMethods(Surface):
    """The printing of the kernel language."""

    def print_tensor(
        self, msg: str, tensor: RegisterTensor | SharedTensor | GlobalTensor, fmt: str | None = None
    ) -> None:
        """Print a message and all elements of a tensor, for debugging; one thread of the group prints.

        Parameters
        ----------
        msg
            What to print before the elements.
        tensor
            A tile, a shared tensor, or a global one.
        fmt
            How to print an element, as in C's printf: `"%6.2f"`. By default `%g`, and `%d` for integers.

        Raises
        ------
        LanguageError
            TK104, TK212 where the format has not one place, for an element of this dtype.

        Notes
        -----
        Every thread of the group waits for the one that prints.
        """
        if not isinstance(tensor, (RegisterTensor, SharedTensor, GlobalTensor)):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
            raise errors.LanguageError(
                "TK215", f"print_tensor needs a tensor, got {describe(tensor)}", help="print numbers with self.printf"
            )
        self._emit(PrintTensorInst.create(tensor, msg, fmt))

    def printf(self, fmt: str, *args: Expr | int | float) -> None:
        """Print numbers from every thread of the group, for debugging.

        Parameters
        ----------
        fmt
            A format as in C's printf, a compile-time string: `"%d %f\\n"`.
        args
            Scalars, one for each place in the format.

        Raises
        ------
        LanguageError
            TK104 where there are more or fewer of them than places, TK212 where one cannot stand in its place.
        """
        for arg in args:
            if not isinstance(arg, (bool, int, float, Expr, dtypes.Literal)):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
                raise errors.LanguageError(
                    "TK215", f"printf needs numbers, got {describe(arg)}", help="print a tensor with self.print_tensor"
                )
        self._emit(FormatPrintInst.create(fmt, [scalar.as_expr(arg) for arg in args]))
