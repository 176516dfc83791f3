# SPDX-License-Identifier: Apache-2.0
"""Everything that `self` offers inside a kernel: the methods of every instruction family, and the context."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Literal, TypeAlias

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.assume import AssumeMethods
from tilekit.ir.instructions.copy_async import CopyAsyncMethods
from tilekit.ir.instructions.dot import DotMethods
from tilekit.ir.instructions.elementwise import ElementwiseMethods
from tilekit.ir.instructions.memory import MemoryMethods
from tilekit.ir.instructions.print import PrintMethods
from tilekit.ir.instructions.reduce import ReduceMethods
from tilekit.ir.instructions.register import RegisterMethods
from tilekit.ir.instructions.semaphore import SemaphoreMethods
from tilekit.ir.instructions.shared import SharedMethods
from tilekit.ir.instructions.sync import SyncMethods
from tilekit.ir.instructions.transform import TransformMethods
from tilekit.ir.instructions.workspace import WorkspaceMethods
from tilekit.ir.surface import Number, describe
from tilekit.ir.tensor import RegisterTensor
from tilekit.lang import operators, values
from tilekit.lang.attributes import Attributes, Dim3
from tilekit.lang.builder import Builder
from tilekit.lang.cuda import Cuda
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr

Unroll: TypeAlias = int | Literal["all"] | None


@dataclass(frozen=True)
class LoopRange:
    """What a run-time loop runs over."""

    start: Number
    stop: Number
    step: Number
    unroll: Unroll = None


def loop_range(limits: Sequence[Any], unroll: Unroll = None) -> LoopRange:
    """A range from the arguments that Python's `range` takes."""
    if not 1 <= len(limits) <= 3:
        raise errors.LanguageError("TK104", f"range takes one to three arguments, got {len(limits)}")
    for limit in limits:
        if not _is_integer(limit):
            raise errors.LanguageError("TK215", f"range needs integers, got {describe(limit)}")
    start, stop = (0, limits[0]) if len(limits) == 1 else limits[:2]
    return LoopRange(start, stop, limits[2] if len(limits) == 3 else 1, unroll)


def _is_integer(value: Any) -> bool:
    if isinstance(value, dtypes.Literal):
        return value.dtype.is_integer()
    if isinstance(value, Expr):
        dtype = scalar.dtype_of(value)
        return isinstance(dtype, DataType) and dtype.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


class KernelMethods(
    AssumeMethods,
    CopyAsyncMethods,
    DotMethods,
    ElementwiseMethods,
    MemoryMethods,
    PrintMethods,
    ReduceMethods,
    RegisterMethods,
    SemaphoreMethods,
    SharedMethods,
    SyncMethods,
    TransformMethods,
    WorkspaceMethods,
):
    """The kernel language. An object of a script class with these methods is what `__call__` sees as `self`."""

    _builder: Builder
    _attrs: Attributes
    _cuda: Cuda

    def _emit(self, inst: Instruction) -> Any:
        return self._builder.emit(inst)

    def _fill(self, value: Number, like: RegisterTensor) -> RegisterTensor:
        return operators.filled(self._builder, value, like)

    def _expand(self, expr: Expr) -> Expr:
        return self._builder.expand(expr)

    @property
    def attrs(self) -> Attributes:
        """The launch facts: set `attrs.blocks` to the grid and `attrs.warps` to the warps of a block."""
        return self._attrs

    @property
    def cuda(self) -> Cuda:
        """Layouts of tensor-core tiles and facts about the GPU, asked while the kernel is compiled."""
        return self._cuda

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

    def range(self, start: Number, end: Number | None = None, step: Number = 1, *, unroll: Unroll = None) -> LoopRange:
        """Return a range for a run-time loop with an unroll hint: `for i in self.range(0, n, 16, unroll=4)`.

        Parameters
        ----------
        start, end, step
            As in Python's range. A step that is known only at run time may count up or down, and must not be 0.
        unroll
            None for no hint, "all", or a factor.
        """
        is_factor = isinstance(unroll, int) and not isinstance(unroll, bool) and unroll >= 1
        is_all = isinstance(unroll, str) and unroll == "all"
        if unroll is not None and not is_all and not is_factor:
            raise errors.LanguageError(
                "TK104", f'unroll must be None, "all" or a positive integer, got {describe(unroll)}'
            )
        return loop_range([0, start, step] if end is None else [start, end, step], unroll)

    def fast_divmod(self, a: Number, b: Number) -> tuple[Any, Any]:
        """Return the quotient and the remainder of two integers, `a // b` and `a % b` as Python has them.

        Parameters
        ----------
        a
            An integer.
        b
            A positive integer; one that is the same in all blocks, such as an extent of the problem, divides fastest.
        """
        for value in (a, b):
            if not _is_integer(value):
                raise errors.LanguageError("TK215", f"fast_divmod needs integers, got {describe(value)}")
        if values.known(b) == 0 and not isinstance(values.known(b), Expr):
            raise errors.LanguageError("TK104", "fast_divmod cannot divide by 0")
        return operators.scalar_binary(ast.FloorDiv, a, b), operators.scalar_binary(ast.Mod, a, b)

    def static_assert(self, cond: object, msg: str = "") -> None:
        """Stop compiling with `msg` unless the compile-time condition holds."""
        if isinstance(cond, Expr):
            value = scalar.constant_value(cond)
            if value is None:
                raise errors.LanguageError("TK106", "static_assert needs a condition that is known at compile time")
            cond = value
        if not cond:
            raise errors.LanguageError("TK110", f"static assertion failed: {msg}" if msg else "static assertion failed")


# the functions behind the language's methods, and every name that it defines
_FUNCTIONS = frozenset(
    member for cls in KernelMethods.__mro__[:-1] for member in vars(cls).values() if isinstance(member, FunctionType)
)
_NAMES = tuple(sorted(name for name in dir(KernelMethods) if not name.startswith("_")))


# what tilus has and this version does not: a kernel that uses it is right, and told so
_TILUS_ALONE = """
atomic cluster clc cumprod cumsum fence flatten mbarrier rand randint randint4x randn repeat
repeat_interleave scan single_thread single_warp store_global_scatter store_shared_scatter tcgen05 thread_group tma
warp_group wgmma
"""
MISSING = frozenset(_TILUS_ALONE.split())


def names() -> list[str]:
    """The public names of the kernel language."""
    return list(_NAMES)


def is_language(function: object) -> bool:
    """Whether this function belongs to the language itself, so that it is called and not transpiled."""
    return function in _FUNCTIONS
