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
from tilekit.ir.layouts import LayoutContext, broadcast_from
from tilekit.ir.machine import Array, Machine, Steps
from tilekit.ir.surface import Surface, axes, require, result_tile
from tilekit.ir.tensor import RegisterTensor
from tilekit.lowir import scalar, scalar_eval
from tilekit.lowir.scalar import Expr


@dataclass(frozen=True)
class Reduction:
    """A reduction: what it starts from, how two partial results combine, and the same on a NumPy axis."""

    identity: Callable[[DataType], Any]
    combine: Callable[[Expr, Expr], Expr]
    over: Callable[[Array, tuple[int, ...]], Array]


def _sum(data: Array, axes: tuple[int, ...]) -> Array:
    # floats are summed in float64, so that the oracle's own rounding does not hide a wrong kernel
    wide = np.int64 if "int" in data.dtype.name else np.float64
    return np.sum(data.astype(wide), axis=axes, keepdims=True)


def _folded(combine: Callable[[Expr, Expr], Expr]) -> Callable[[Array, tuple[int, ...]], Array]:
    """A reduction by the very operation that kernels combine two elements with."""

    def over(data: Array, axes: tuple[int, ...]) -> Array:
        front = np.moveaxis(data, axes, range(len(axes)))
        parts = front.reshape(-1, *front.shape[len(axes) :])
        x, y = (scalar.var(name, dtypes.from_numpy(data.dtype)) for name in "xy")
        while len(parts) > 1:
            half = len(parts) // 2
            pairs = scalar_eval.evaluate(combine(x, y), {x: parts[:half], y: parts[half : 2 * half]})
            parts = np.concatenate([pairs, parts[2 * half :]])
        return np.expand_dims(parts[0], axes)

    return over


REDUCTIONS: Mapping[str, Reduction] = {
    "sum": Reduction(lambda dtype: 0, scalar.add, _sum),
    "max": Reduction(lambda dtype: dtype.lowest, scalar.maximum, _folded(scalar.maximum)),
    "min": Reduction(lambda dtype: dtype.highest, scalar.minimum, _folded(scalar.minimum)),
    "any": Reduction(lambda dtype: False, scalar.logical_or, _folded(scalar.logical_or)),
    "all": Reduction(lambda dtype: True, scalar.logical_and, _folded(scalar.logical_and)),
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
        require("reduction", op, REDUCTIONS)
        if op in ("any", "all") and x.dtype is not dtypes.boolean:
            raise errors.LanguageError("TK214", f"{op} needs a boolean tile, got {x.dtype}", help="compare it with 0")
        if op not in ("any", "all") and x.dtype is dtypes.boolean:
            raise errors.LanguageError("TK214", f"cannot compute {op} of a boolean tile", help="cast it to int32 first")
        along = _dims(op, x, dims)
        shape = tuple(1 if d in along else extent for d, extent in enumerate(x.shape) if keepdim or d not in along)
        return ReduceInst(result_tile(x.dtype, shape, output), x, along, op, keepdim)

    @property
    def reduction(self) -> Reduction:
        return REDUCTIONS[self.op]

    def propose(
        self, known: Mapping[RegisterTensor, RegisterLayout], ctx: LayoutContext
    ) -> Mapping[RegisterTensor, RegisterLayout]:
        out, x = self.register_output, self.x
        if x in known:
            return {} if out in known else {out: ops.reduce(known[x], dims=self.dims, keepdims=self.keepdim)}
        if out not in known or not ctx.insists:
            return {}
        kept = known[out] if self.keepdim else ops.unsqueeze(known[out], self.dims)
        return {x: broadcast_from(kept, x.shape, x.dtype)}

    def check(self, layouts: Mapping[RegisterTensor, RegisterLayout]) -> str | None:
        wanted = ops.reduce(layouts[self.x], dims=self.dims, keepdims=self.keepdim)
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
    dims = sorted(axes("dim", dim, rank))
    if len(set(dims)) != len(dims) or not all(0 <= d < rank for d in dims):
        given = [dim] if isinstance(dim, int) else list(dim)
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
