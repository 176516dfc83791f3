# SPDX-License-Identifier: Apache-2.0
"""Printing from inside a kernel: tensors, and numbers in a format of C's."""

from __future__ import annotations

from collections.abc import Sequence

from tilekit.diag import errors
from tilekit.ir.inst import Instruction, operand, scalars, static
from tilekit.ir.surface import Surface, describe
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr


class PrintTensorInst(Instruction, opcode="print_tensor"):
    """Print `msg` and the elements of `x`, each in the format `fmt`; one thread prints."""

    x: RegisterTensor | SharedTensor | GlobalTensor = operand()
    msg: str = static()
    fmt: str | None = static(default=None)

    @staticmethod
    def create(x: RegisterTensor | SharedTensor | GlobalTensor, msg: str, fmt: str | None = None) -> PrintTensorInst:
        return PrintTensorInst(None, x, msg, fmt)


class FormatPrintInst(Instruction, opcode="printf"):
    """Every thread of the group prints `args` in the format `fmt`."""

    fmt: str = static()
    args: tuple[Expr, ...] = scalars(default=())

    @staticmethod
    def create(fmt: str, args: Sequence[Expr] = ()) -> FormatPrintInst:
        return FormatPrintInst(None, fmt, tuple(args))


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
            How to print an element, as in C's printf: `"%6.2f"`. By default as its dtype is printed.
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
        """
        self._emit(FormatPrintInst.create(fmt, [scalar.as_expr(arg) for arg in args]))
