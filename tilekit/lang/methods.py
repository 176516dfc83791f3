# SPDX-License-Identifier: Apache-2.0
"""Everything that `self` offers inside a kernel: the methods of every instruction family, and the context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.elementwise import ElementwiseMethods
from tilekit.ir.instructions.memory import MemoryMethods
from tilekit.ir.instructions.reduce import ReduceMethods
from tilekit.ir.instructions.register import AllocateRegisterInst, RegisterMethods
from tilekit.ir.instructions.sync import SyncMethods
from tilekit.ir.surface import Number, typed
from tilekit.ir.tensor import RegisterTensor
from tilekit.lang.attributes import Attributes, Dim3
from tilekit.lang.builder import Builder
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr

Unroll: TypeAlias = 'int | Literal["all"] | None'


@dataclass(frozen=True)
class LoopRange:
    """What a run-time loop runs over."""

    start: Number
    stop: Number
    step: Number
    unroll: Unroll = None


class KernelMethods(ElementwiseMethods, MemoryMethods, ReduceMethods, RegisterMethods, SyncMethods):
    """The kernel language. An object of a script class with these methods is what `__call__` sees as `self`."""

    _builder: Builder
    _attrs: Attributes

    def _emit(self, inst: Instruction) -> Any:
        return self._builder.emit(inst)

    def _fill(self, value: Number, like: RegisterTensor) -> RegisterTensor:
        tile = RegisterTensor.create(like.dtype, ())
        return self._builder.emit(AllocateRegisterInst.create(tile, lambda _: typed(value, like.dtype)))

    @property
    def attrs(self) -> Attributes:
        """The launch facts: set `attrs.blocks` to the grid and `attrs.warps` to the warps of a block."""
        return self._attrs

    @property
    def blockIdx(self) -> Dim3:
        """The index of this block in the grid: int32 expressions x, y, z."""
        return Dim3(scalar.block_idx(0), scalar.block_idx(1), scalar.block_idx(2))

    @property
    def gridDim(self) -> Dim3:
        """The number of blocks in each direction: int32 expressions x, y, z."""
        return Dim3(scalar.grid_dim(0), scalar.grid_dim(1), scalar.grid_dim(2))

    @property
    def current_thread_begin(self) -> int:
        """The first thread of the current group, a compile-time integer."""
        return 0

    @property
    def current_thread_end(self) -> int:
        """One past the last thread of the current group, a compile-time integer."""
        return self.current_num_threads

    @property
    def current_num_threads(self) -> int:
        """The number of threads in the current group, a compile-time integer."""
        if self._attrs.warps is None:
            raise errors.LanguageError(
                "TK108", "the number of threads is not known yet", help="set self.attrs.warps first"
            )
        return 32 * self._attrs.warps

    def range(
        self, start: Number, end: Number | None = None, step: Number = 1, /, *, unroll: Unroll = None
    ) -> LoopRange:
        """A run-time loop with an unroll hint: `for i in self.range(0, n, 16, unroll=4)`.

        Parameters
        ----------
        start, end, step
            As in Python's range; the step is a compile-time integer.
        unroll
            None for no hint, "all", or a factor.
        """
        if unroll is not None and unroll != "all" and (isinstance(unroll, bool) or unroll < 1):
            raise errors.LanguageError("TK104", f'unroll must be None, "all" or a positive integer, got {unroll!r}')
        return LoopRange(0, start, step, unroll) if end is None else LoopRange(start, end, step, unroll)

    def static_assert(self, cond: object, msg: str = "") -> None:
        """Stop compiling with `msg` unless the compile-time condition holds."""
        if isinstance(cond, Expr):
            value = scalar.constant_value(cond)
            if value is None:
                raise errors.LanguageError("TK106", "static_assert needs a condition that is known at compile time")
            cond = value
        if not cond:
            raise errors.LanguageError("TK110", f"static assertion failed: {msg}" if msg else "static assertion failed")


def names() -> list[str]:
    """The public names of the kernel language."""
    return sorted(name for name in dir(KernelMethods) if not name.startswith("_"))


def is_language(function: object) -> bool:
    """Whether this function belongs to the language itself, so that it is called and not transpiled."""
    return getattr(function, "__module__", "").startswith("tilekit.") and not isinstance(function, dtypes.DataType)
