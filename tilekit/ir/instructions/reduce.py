# SPDX-License-Identifier: Apache-2.0
"""Reductions of a tile along some of its dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.inst import PURE, Instruction, operand, static
from tilekit.ir.layout import ops
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layouts import LayoutContext
from tilekit.ir.machine import Array, Machine, Steps
from tilekit.ir.surface import Surface
from tilekit.ir.tensor import RegisterTensor
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr


@dataclass(frozen=True)
class Reduction:
    """A reduction: what it starts from, how two partial results combine, and the same on a NumPy axis."""

    identity: Callable[[DataType], Any]
    combine: Callable[[Expr, Expr], Expr]
    over: Callable[[Array, tuple[int, ...]], Array]


def _sum(data: Array, axes: tuple[int, ...]) -> Array:
    # floats are summed in float64, so that the oracle's own rounding does not hide a wrong kernel
    wide = np.float64 if data.dtype.kind not in "iub" else data.dtype
    return np.sum(data.astype(wide), axis=axes, keepdims=True, dtype=wide)


REDUCTIONS: Mapping[str, Reduction] = {
    "sum": Reduction(lambda dtype: 0, scalar.add, _sum),
    "max": Reduction(lambda dtype: dtype.lowest, scalar.maximum, lambda x, axes: np.max(x, axis=axes, keepdims=True)),
    "min": Reduction(lambda dtype: dtype.highest, scalar.minimum, lambda x, axes: np.min(x, axis=axes, keepdims=True)),
    "any": Reduction(lambda dtype: False, scalar.logical_or, lambda x, axes: np.any(x, axis=axes, keepdims=True)),
    "all": Reduction(lambda dtype: True, scalar.logical_and, lambda x, axes: np.all(x, axis=axes, keepdims=True)),
}


def accumulator(dtype: DataType) -> DataType:
    """The type that partial results are kept in: 16-bit floats are reduced in float32 and rounded once."""
    return dtypes.float32 if dtype.is_float() and dtype.nbits < 32 else dtype


class ReduceInst(Instruction, opcode="reduce", effects=PURE, order=10):
    """The tile `x` reduced along `dims`; they stay as extents of 1 with `keepdim`."""

    x: RegisterTensor = operand()
    dims: tuple[int, ...] = static()
    op: str = static()
    keepdim: bool = static(default=False)

    @staticmethod
    def create(
        x: RegisterTensor,
        dims: int | Sequence[int] | None,
        op: str,
        keepdim: bool = False,
        output: RegisterTensor | None = None,
    ) -> ReduceInst:
        if op in ("any", "all") and x.dtype is not dtypes.boolean:
            raise errors.LanguageError("TK214", f"{op} needs a boolean tile, got {x.dtype}", help="compare it with 0")
        if op not in ("any", "all") and x.dtype is dtypes.boolean:
            raise errors.LanguageError("TK214", f"cannot compute {op} of a boolean tile", help="cast it to int32 first")
        along = _dims(op, x, dims)
        shape = tuple(1 if d in along else extent for d, extent in enumerate(x.shape) if keepdim or d not in along)
        if output is None:
            output = RegisterTensor.create(x.dtype, shape)
        elif output.dtype is not x.dtype or output.shape != shape:
            raise errors.LanguageError(
                "TK213", f"{op} gives {x.dtype}{list(shape)}, but out is {output.dtype}{list(output.shape)}"
            )
        return ReduceInst(output, x, along, op, keepdim)

    @property
    def reduction(self) -> Reduction:
        return REDUCTIONS[self.op]

    def propose(
        self, known: Mapping[RegisterTensor, RegisterLayout], ctx: LayoutContext
    ) -> Mapping[RegisterTensor, RegisterLayout]:
        out = self.register_output
        if out in known or self.x not in known:
            return {}
        return {out: ops.reduce(known[self.x], dims=list(self.dims), keepdims=self.keepdim)}

    def check(self, layouts: Mapping[RegisterTensor, RegisterLayout]) -> str | None:
        wanted = ops.reduce(layouts[self.x], dims=list(self.dims), keepdims=self.keepdim)
        if layouts[self.register_output] == wanted:
            return None
        return "the result of a reduction must lie where the reduced threads are, each of them holding a copy"

    def execute(self, machine: Machine) -> Steps:
        value = machine.read(self.x)
        data = self.reduction.over(value.data, self.dims)
        defined = np.all(value.defined, axis=self.dims, keepdims=True)
        shape = self.register_output.shape
        machine.write(self.register_output, data.reshape(shape), defined.reshape(shape))
        yield from ()


def _dims(op: str, x: RegisterTensor, dim: int | Sequence[int] | None) -> tuple[int, ...]:
    rank = len(x.shape)
    if dim is None:
        return tuple(range(rank))
    given = [dim] if isinstance(dim, int) else list(dim)
    dims = sorted(d + rank if d < 0 else d for d in given)
    if len(set(dims)) != len(dims) or not all(0 <= d < rank for d in dims):
        raise errors.LanguageError("TK213", f"{op}: dim={given} are not distinct dimensions of a rank-{rank} tile")
    return tuple(dims)


class ReduceMethods(Surface):
    """The reductions of the kernel language."""

    def _reduce(
        self, op: str, x: RegisterTensor, dim: int | Sequence[int] | None, keepdim: bool, out: RegisterTensor | None
    ) -> RegisterTensor:
        self._tile(op, x)
        return self._emit(ReduceInst.create(x, dim, op, keepdim, out))

    def sum(
        self,
        x: RegisterTensor,
        *,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        out: RegisterTensor | None = None,
    ) -> RegisterTensor:
        """Return the sum along `dim` (every dimension by default).

        16-bit floats are summed in float32 and rounded once. The threads that held a reduced row all get the result.
        """
        return self._reduce("sum", x, dim, keepdim, out)

    def max(
        self,
        x: RegisterTensor,
        *,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        out: RegisterTensor | None = None,
    ) -> RegisterTensor:
        """Return the largest element along `dim` (every dimension by default); NaN if there is one."""
        return self._reduce("max", x, dim, keepdim, out)

    def min(
        self,
        x: RegisterTensor,
        *,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        out: RegisterTensor | None = None,
    ) -> RegisterTensor:
        """Return the smallest element along `dim` (every dimension by default); NaN if there is one."""
        return self._reduce("min", x, dim, keepdim, out)

    def any(
        self,
        x: RegisterTensor,
        *,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        out: RegisterTensor | None = None,
    ) -> RegisterTensor:
        """Return whether any element of the boolean tile holds along `dim`."""
        return self._reduce("any", x, dim, keepdim, out)

    def all(
        self,
        x: RegisterTensor,
        *,
        dim: int | Sequence[int] | None = None,
        keepdim: bool = False,
        out: RegisterTensor | None = None,
    ) -> RegisterTensor:
        """Return whether every element of the boolean tile holds along `dim`."""
        return self._reduce("all", x, dim, keepdim, out)
