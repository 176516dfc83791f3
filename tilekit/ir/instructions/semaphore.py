# SPDX-License-Identifier: Apache-2.0
"""Semaphores: integers in global memory with which blocks wait for one another."""

from __future__ import annotations

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import PointerType
from tilekit.ir.inst import Instruction, scalars
from tilekit.ir.machine import Machine, Steps
from tilekit.ir.surface import Surface, describe, index
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr


class LockSemaphoreInst(Instruction, opcode="lock_semaphore"):
    """Wait until the int32 at `ptr` is `value`; what others wrote before they set it is visible after."""

    ptr: Expr = scalars()
    value: Expr = scalars()

    @staticmethod
    def create(ptr: Expr, value: Expr) -> LockSemaphoreInst:
        _check("lock_semaphore", ptr)
        return LockSemaphoreInst(None, ptr, scalar.cast(value, dtypes.int32))

    def execute(self, machine: Machine) -> Steps:
        wanted = machine.scalar(self.value)
        waits = f"lock_semaphore waits for {int(wanted)}"
        yield from machine.wait_until(lambda: machine.load_word(self.ptr) == wanted, waits)


class ReleaseSemaphoreInst(Instruction, opcode="release_semaphore"):
    """Set the int32 at `ptr` to `value`, after all that this block wrote before."""

    ptr: Expr = scalars()
    value: Expr = scalars()

    @staticmethod
    def create(ptr: Expr, value: Expr) -> ReleaseSemaphoreInst:
        _check("release_semaphore", ptr)
        return ReleaseSemaphoreInst(None, ptr, scalar.cast(value, dtypes.int32))

    def execute(self, machine: Machine) -> Steps:
        machine.store_word(self.ptr, machine.scalar(self.value))
        yield from ()


def _check(op: str, ptr: Expr) -> None:
    type_ = scalar.dtype_of(ptr)
    if type_ != PointerType(dtypes.int32):
        raise errors.LanguageError(
            "TK215",
            f"{op} needs a pointer to an int32, got {type_}",
            help="make the semaphores an int32 tensor, s, and give ~s[i] as s[i].item_ptr()",
        )


class SemaphoreMethods(Surface):
    """The semaphores of the kernel language."""

    def lock_semaphore(self, semaphore: Expr, value: Expr | int) -> None:
        """Wait until a semaphore has a value; what was written before somebody set it is visible after.

        Parameters
        ----------
        semaphore
            A pointer to an int32 in global memory, such as `s[i].item_ptr()`.
        value
            The value to wait for, an integer.

        Raises
        ------
        LanguageError
            TK215 for anything else than a pointer to an int32.
        KernelError
            TK710, on the CPU alone, where nobody is left who could set the value.

        Notes
        -----
        One thread of the group reads with PTX ld.acquire.gpu (sm_70) until the value is there, the others wait for it.
        Blocks start in the order of their numbers: wait for those with smaller ones.
        """
        self._emit(LockSemaphoreInst.create(_pointer("lock_semaphore", semaphore), index("value", value)))

    def release_semaphore(self, semaphore: Expr, value: Expr | int) -> None:
        """Set a semaphore to a value, so that whoever waits for it sees all that was written before.

        Parameters
        ----------
        semaphore
            A pointer to an int32 in global memory, such as `s[i].item_ptr()`.
        value
            The value to set, an integer.

        Raises
        ------
        LanguageError
            TK215 for anything else than a pointer to an int32.

        Notes
        -----
        Every thread of the group comes so far, then one of them writes with PTX st.release.gpu (sm_70).
        """
        self._emit(ReleaseSemaphoreInst.create(_pointer("release_semaphore", semaphore), index("value", value)))


def _pointer(op: str, value: object) -> Expr:
    if not isinstance(value, Expr):
        raise errors.LanguageError(
            "TK215", f"{op} needs a pointer, got {describe(value)}", help="give s[i].item_ptr() of an int32 tensor s"
        )
    return value
