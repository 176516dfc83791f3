# SPDX-License-Identifier: Apache-2.0
"""Copies from global to shared memory that run beside the threads that ask for them.

`copy_async` starts a copy, `copy_async_commit_group` makes a group of those started since the last one, and the data
is there when `copy_async_wait_group` or `copy_async_wait_all` has waited for it, not before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilekit.diag import errors
from tilekit.ir.inst import Instruction, binder, inout, operand, scalars, static
from tilekit.ir.instructions.memory import box_access, generic_access
from tilekit.ir.machine import Access, Machine, Steps
from tilekit.ir.surface import Surface, check_dims, check_offsets, describe, index, last_dims, require
from tilekit.ir.tensor import GlobalTensor, SharedTensor
from tilekit.lowir.scalar import Expr, Var

# how long the L2 cache should keep what a copy reads
EVICTION = ("evict_normal", "evict_first")


class CopyAsyncInst(Instruction, opcode="copy_async", order=21):
    """Start to copy the box of `src` at `offsets` to all of `dst`; zero where the box is out of bounds."""

    dst: SharedTensor = inout()
    src: GlobalTensor = operand()
    offsets: tuple[Expr, ...] = scalars()
    dims: tuple[int, ...] = static()
    evict: str | None = static(default=None)
    check_bounds: bool = static(default=True)

    @staticmethod
    def create(
        dst: SharedTensor,
        src: GlobalTensor,
        offsets: Sequence[Expr],
        dims: Sequence[int],
        evict: str | None = None,
        check_bounds: bool = True,
    ) -> CopyAsyncInst:
        if dst.dtype is not src.dtype:
            raise errors.LanguageError(
                "TK212",
                f"copy_async: the shared tensor is {dst.dtype}, the tensor in global memory {src.dtype}",
                help="a copy converts nothing: give both one dtype",
            )
        check_offsets("copy_async", len(src.shape), offsets)
        check_dims("copy_async", len(src.shape), dims, len(dst.shape))
        _check_eviction(evict)
        return CopyAsyncInst(None, dst, src, tuple(offsets), tuple(dims), evict, check_bounds)

    def access(self, pointer: Expr) -> Access:
        access = box_access(self.src, pointer, self.offsets, self.dims, self.dst.shape)
        return access if self.check_bounds else access._replace(mask=None)

    def execute(self, machine: Machine) -> Steps:
        machine.start_copy(self.dst, self.access(machine.address_of(self.src)))
        yield from ()


class CopyAsyncGenericInst(Instruction, opcode="copy_async_generic", order=21):
    """Start to copy to each position of `dst` the element at `ptr + offset` where `mask` holds, else zero."""

    dst: SharedTensor = inout()
    ptr: Expr = scalars()
    axes: tuple[Var, ...] = binder()
    offset: Expr = scalars()
    mask: Expr | None = scalars(default=None)
    evict: str | None = static(default=None)

    @staticmethod
    def create(
        dst: SharedTensor,
        ptr: Expr,
        f_offset: Callable[[tuple[Var, ...]], Expr | int],
        f_mask: Callable[[tuple[Var, ...]], Expr | bool] | None = None,
        evict: str | None = None,
    ) -> CopyAsyncGenericInst:
        _check_eviction(evict)
        access = generic_access(ptr, dst.shape, f_offset, f_mask)
        return CopyAsyncGenericInst(None, dst, access.pointer, access.axes, access.offset, access.mask, evict)

    @property
    def access(self) -> Access:
        return Access(self.ptr, self.axes, self.offset, self.mask)

    def execute(self, machine: Machine) -> Steps:
        machine.start_copy(self.dst, self.access)
        yield from ()


class CopyAsyncCommitGroupInst(Instruction, opcode="copy_async_commit_group"):
    """Every copy started since the last group becomes a group."""

    @staticmethod
    def create() -> CopyAsyncCommitGroupInst:
        return CopyAsyncCommitGroupInst(None)

    def execute(self, machine: Machine) -> Steps:
        machine.commit_copies()
        yield from ()


class CopyAsyncWaitGroupInst(Instruction, opcode="copy_async_wait_group"):
    """Wait for every group of copies but the `n` youngest."""

    n: int = static()

    @staticmethod
    def create(n: int) -> CopyAsyncWaitGroupInst:
        if isinstance(n, bool) or not isinstance(n, int):  # pyright: ignore[reportUnnecessaryIsInstance]  # it comes from a user
            raise errors.LanguageError(
                "TK106",
                f"copy_async_wait_group needs how many groups may be left, a compile-time integer, got {describe(n)}",
            )
        if n < 0:
            raise errors.LanguageError(
                "TK104", f"copy_async_wait_group cannot leave {n} groups", help="0 waits for all"
            )
        return CopyAsyncWaitGroupInst(None, n)

    def execute(self, machine: Machine) -> Steps:
        machine.wait_for_copies(self.n)
        yield from ()


class CopyAsyncWaitAllInst(Instruction, opcode="copy_async_wait_all"):
    """Wait for every copy, in a group or not."""

    @staticmethod
    def create() -> CopyAsyncWaitAllInst:
        return CopyAsyncWaitAllInst(None)

    def execute(self, machine: Machine) -> Steps:
        machine.wait_for_copies(None)
        yield from ()


def _check_eviction(evict: str | None) -> None:
    if evict is not None:
        require("eviction priority", evict, EVICTION)


class CopyAsyncMethods(Surface):
    """The asynchronous copies of the kernel language."""

    def copy_async(
        self,
        src: GlobalTensor,
        dst: SharedTensor,
        offsets: Sequence[Expr | int],
        dims: Sequence[int] | None = None,
        evict: str | None = None,
        check_bounds: bool = True,
    ) -> None:
        """Start to copy a box of a global tensor to shared memory, past the registers; positions out of bounds get 0.

        The data is there after `copy_async_wait_all()`, or `copy_async_wait_group(n)` for a group that was committed;
        other threads see it after the `sync()` that follows.

        Parameters
        ----------
        src
            The tensor, from `global_view`.
        dst
            The shared tensor, or a slice of one, all of which is written; of the dtype of `src`.
        offsets
            The index of the box's first element, one per dimension of `src`.
        dims
            The dimension of `src` that each dimension of `dst` runs along; by default the last ones, in order.
        evict
            `"evict_first"` for data that is read once, so that the L2 cache keeps other data; `"evict_normal"` or None.
        check_bounds
            False where the box always lies inside: then nothing is masked.

        Raises
        ------
        LanguageError
            TK212 where dtypes differ, TK213 where dimensions do not fit, TK102 for an unknown `evict`.

        Notes
        -----
        PTX cp.async of 16, 8 or 4 bytes (sm_80), as many as lie side by side, and aligned, in both memories. Where they
        are fewer, elements go through a register.
        """
        self._global("copy_async", src)
        self._shared("copy_async", dst)
        along = last_dims(len(src.shape), len(dst.shape), dims)
        starts = [index("offsets", o) for o in offsets]
        self._emit(CopyAsyncInst.create(dst, src, starts, along, evict, check_bounds))

    def copy_async_commit_group(self) -> None:
        """Make a group of the copies since the last group; it may be empty (PTX cp.async.commit_group, sm_80)."""
        self._emit(CopyAsyncCommitGroupInst.create())

    def copy_async_wait_group(self, n: int) -> None:
        """Wait until at most the `n` youngest groups of copies are on their way (PTX cp.async.wait_group).

        Parameters
        ----------
        n
            A compile-time integer; 0 waits for every group.

        Raises
        ------
        LanguageError
            TK106 where `n` is not known at compile time, TK104 where it is negative.
        VerificationError
            TK196 where the kernel commits no more groups than `n`, and no other wait is there for its copies.

        Notes
        -----
        What the copies brought is there for the thread that waited; `sync()` makes it so for all. sm_80 or newer.
        """
        self._emit(CopyAsyncWaitGroupInst.create(n))

    def copy_async_wait_all(self) -> None:
        """Wait for every copy that was started, in a group or not (PTX cp.async.wait_all, sm_80)."""
        self._emit(CopyAsyncWaitAllInst.create())
