# SPDX-License-Identifier: Apache-2.0
"""Register tiles: making them and copying them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.inst import PURE, Instruction, binder, operand, scalars
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layouts import LayoutContext
from tilekit.ir.machine import Machine, Steps
from tilekit.ir.surface import Number, Surface, describe, typed
from tilekit.ir.tensor import RegisterTensor
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var


class AllocateRegisterInst(Instruction, opcode="register_tensor", effects=PURE, order=25):
    """A new tile; `init` gives the element at position `axes`, and without it the tile holds nothing yet."""

    axes: tuple[Var, ...] = binder(default=())
    init: Expr | None = scalars(default=None)

    @staticmethod
    def create(
        output: RegisterTensor, f_init: Callable[[tuple[Var, ...]], Expr | float] | None = None
    ) -> AllocateRegisterInst:
        axes = tuple(scalar.var("ijkl"[n] if n < 4 else f"i{n}", dtypes.int32) for n in range(len(output.shape)))
        if f_init is None:
            return AllocateRegisterInst(output)
        init = scalar.as_expr(f_init(axes), output.dtype)
        if (dtype := scalar.dtype_of(init)) != output.dtype:
            raise errors.LanguageError("TK212", f"a tile of {output.dtype} cannot be filled with {dtype}")
        used = scalar.free_vars(init)
        return AllocateRegisterInst(output, axes if any(axis in used for axis in axes) else (), init)

    @property
    def gives_value(self) -> bool:
        return self.init is not None

    def execute(self, machine: Machine) -> Steps:
        tile = self.register_output
        if self.init is None:
            machine.write(tile, np.zeros((), dtypes.numpy_dtype(tile.dtype)), np.zeros((), dtype=bool))
        elif self.axes:
            machine.write(tile, machine.over(self.axes, tile.shape, self.init), np.ones((), dtype=bool))
        else:
            machine.write(tile, np.asarray(machine.scalar(self.init)), np.ones((), dtype=bool))
        yield from ()


class AssignInst(Instruction, opcode="assign", effects=PURE, order=14):
    """Copy the tile `x` into the output, which may be a tile that already holds something."""

    x: RegisterTensor = operand()

    @staticmethod
    def create(output: RegisterTensor, x: RegisterTensor) -> AssignInst:
        if output.dtype is not x.dtype or output.shape != x.shape:
            raise errors.LanguageError(
                "TK213",
                f"cannot assign {describe(x)} to {describe(output)}",
                help="shape and dtype of a name that a loop or a branch rebinds must stay the same",
            )
        return AssignInst(output, x)

    def propose(
        self, known: Mapping[RegisterTensor, RegisterLayout], ctx: LayoutContext
    ) -> Mapping[RegisterTensor, RegisterLayout]:
        out, x = self.register_output, self.x
        if out in known:
            return {} if x in known else {x: known[out]}
        return {out: known[x]} if x in known else {}

    def check(self, layouts: Mapping[RegisterTensor, RegisterLayout]) -> str | None:
        if layouts[self.register_output] == layouts[self.x]:
            return None
        return "the two tiles of an assignment must have one layout"

    def execute(self, machine: Machine) -> Steps:
        value = machine.read(self.x)
        machine.write(self.register_output, value.data, value.defined)
        yield from ()


class RegisterMethods(Surface):
    """The register part of the kernel language."""

    def register_tensor(
        self,
        *,
        dtype: DataType,
        shape: Sequence[int],
        init: Number | Callable[..., Expr | float] | None = None,
    ) -> RegisterTensor:
        """Return a new tile in registers, spread over the threads of the group.

        Parameters
        ----------
        dtype
            The element type.
        shape
            Compile-time integers.
        init
            A scalar for every element, or a function of the position: `lambda i, j: i + j`. Without it the tile is
            uninitialized.
        """
        tile = RegisterTensor.create(dtype, tuple(shape))
        if init is None:
            return self._emit(AllocateRegisterInst.create(tile))
        if isinstance(init, (Expr, dtypes.Literal)) or not callable(init):
            value = init
            if not isinstance(value, (Expr, dtypes.Literal)) and not hasattr(value, "__float__"):
                raise errors.LanguageError(
                    "TK215", f"init needs a number, or a function of the position, got {describe(value)}"
                )
            return self._emit(AllocateRegisterInst.create(tile, lambda _: typed(value, dtype)))
        arity = len(inspect.signature(init).parameters)
        if arity != len(tile.shape):
            raise errors.LanguageError(
                "TK214", f"init takes {arity} positions, but the tile has {len(tile.shape)} dimensions"
            )
        return self._emit(AllocateRegisterInst.create(tile, lambda axes: typed(init(*axes), dtype)))

    def assign(self, dst: RegisterTensor, src: RegisterTensor) -> None:
        """Copy the tile `src` into `dst`, of the same shape and dtype."""
        self._tile("assign", dst)
        self._tile("assign", src)
        self._emit(AssignInst.create(dst, src))
