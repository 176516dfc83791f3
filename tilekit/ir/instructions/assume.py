# SPDX-License-Identifier: Apache-2.0
"""Facts that a person knows and the compiler may use."""

from __future__ import annotations

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.ir.inst import Instruction, scalars
from tilekit.ir.machine import Machine, Steps
from tilekit.ir.surface import Surface, describe
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr


class AssumeInst(Instruction, opcode="assume"):
    """The condition `cond` holds whenever control comes here."""

    cond: Expr = scalars()

    @staticmethod
    def create(cond: Expr) -> AssumeInst:
        if (dtype := scalar.dtype_of(cond)) is not dtypes.boolean:
            raise errors.LanguageError(
                "TK215", f"assume needs a condition, got {dtype}", help="compare it: self.assume(n % 16 == 0)"
            )
        return AssumeInst(None, cond)

    def execute(self, machine: Machine) -> Steps:
        if not machine.scalar(self.cond):
            raise machine.refuse("TK706", "false_assumption", "the kernel assumes what does not hold here")
        yield from ()


class AssumeMethods(Surface):
    """The assumptions of the kernel language."""

    def assume(self, cond: Expr | bool) -> None:
        """Tell the compiler what always holds here, so that it may use wider accesses and drop checks.

        Nothing checks it on a GPU: where it does not hold, the kernel has no meaning. The simulator reports one about
        parameters that every run comes to, the evaluator any.

        Parameters
        ----------
        cond
            A condition on scalars. What is used of it are divisors and bounds of parameters, several joined by `and`:
            `n % 16 == 0 and n <= 4096`, said where every run comes to it.

        Raises
        ------
        LanguageError
            TK215 for anything else than a condition, TK110 where it is known to be false.
        KernelError
            TK706, on the CPU, where it does not hold.
        """
        if not isinstance(cond, (bool, Expr)):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
            raise errors.LanguageError("TK215", f"assume needs a condition, got {describe(cond)}")
        if cond is False:
            raise errors.LanguageError("TK110", "this assumption is known to be false")
        if cond is not True:
            self._emit(AssumeInst.create(cond))
