# SPDX-License-Identifier: Apache-2.0
"""Products of matrices on tensor cores."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.inst import PURE, Instruction, operand
from tilekit.ir.layout import atoms, ops
from tilekit.ir.layout.atoms import BlockMmaConfig
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shapes import LayoutOperationError
from tilekit.ir.layouts import LayoutContext, Layouts, dot_operand
from tilekit.ir.machine import Array, Machine, Mask, Steps
from tilekit.ir.surface import Surface, describe, result_tile
from tilekit.ir.tensor import RegisterTensor

# the dtype of the operands -> those in which products can be summed up, the usual one first
ACCUMULATORS: Mapping[DataType, tuple[DataType, ...]] = {
    dtypes.float16: (dtypes.float32, dtypes.float16),
    dtypes.bfloat16: (dtypes.float32,),
    dtypes.tfloat32: (dtypes.float32,),
    dtypes.float32: (dtypes.float32,),
    dtypes.int8: (dtypes.int32,),
}


class DotInst(Instruction, opcode="dot", effects=PURE, order=3):
    """The matrix product `a @ b`, plus `c` where there is one; the output may be `c` itself."""

    a: RegisterTensor = operand()
    b: RegisterTensor = operand()
    c: RegisterTensor | None = operand(default=None)

    @staticmethod
    def create(
        a: RegisterTensor, b: RegisterTensor, c: RegisterTensor | None = None, output: RegisterTensor | None = None
    ) -> DotInst:
        if len(a.shape) != 2 or len(b.shape) != 2:
            raise errors.LanguageError(
                "TK213",
                f"dot multiplies matrices, got {describe(a)} and {describe(b)}",
                help="squeeze or reshape them to two dimensions",
            )
        if a.shape[1] != b.shape[0]:
            raise errors.LanguageError(
                "TK213",
                f"dot of {list(a.shape)} and {list(b.shape)}: {a.shape[1]} columns do not meet {b.shape[0]} rows",
                help="transpose one of them" if a.shape[1] == b.shape[1] or a.shape[0] == b.shape[0] else None,
            )
        if a.dtype is not b.dtype:
            raise errors.LanguageError(
                "TK212", f"dot needs operands of one dtype, got {a.dtype} and {b.dtype}", help="cast one of them"
            )
        if a.dtype not in ACCUMULATORS:
            raise errors.LanguageError(
                "TK214",
                f"no matrix instruction multiplies {a.dtype}",
                help=f"cast the operands to one of {', '.join(map(str, ACCUMULATORS))}",
            )
        given = c if output is None else output
        if given is None:
            raise errors.LanguageError(
                "TK104",
                "dot does not know in which dtype to sum up the products",
                help=f"give acc_dtype={ACCUMULATORS[a.dtype][0]}, or the tile to add to",
            )
        _check_accumulator(a.dtype, given.dtype)
        _check_extents(a, b, given.dtype)
        out = result_tile(given.dtype, (a.shape[0], b.shape[1]), output)
        if c is not None and (c.dtype is not out.dtype or c.shape != out.shape):
            raise errors.LanguageError(
                "TK213", f"dot gives {out.dtype}{list(out.shape)}, which cannot be added to {describe(c)}"
            )
        return DotInst(out, a, b, c)

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        """The result decides: its atoms say which parts of the operands a warp needs. Where nobody knows where the
        result lies, the warps are dealt out so that the operands take the fewest registers; along the side of an
        operand that is computed, so that no two warps compute the same of it.
        """
        a, b, c, out = self.a, self.b, self.c, self.register_output
        given = next((known[t] for t in (out, c) if t in known), None)
        try:
            if given is not None:
                la, lb = atoms.operand_layouts(dot_operand(a.dtype), out.dtype, given, a.shape[1])
                wanted: dict[RegisterTensor, RegisterLayout] = {a: la, b: lb, out: given}
            else:
                wanted = dict(zip((a, b, out), self._dealt_out(known, ctx), strict=True))
        except LayoutOperationError:
            return {}
        if c is not None:
            wanted[c] = wanted[out]
        return {tensor: layout for tensor, layout in wanted.items() if tensor not in known}

    def _dealt_out(self, known: Layouts, ctx: LayoutContext) -> tuple[RegisterLayout, ...]:
        """The cheapest way to deal the product out to the warps that goes with the operands that are known.

        Where there are too many warps for the product, several compute the same part of it.
        """
        a, b, out = self.a, self.b, self.register_output
        (m, k), n = a.shape, b.shape[1]
        count = ctx.num_threads // 32
        for used in (used for used in range(count, 0, -1) if count % used == 0):
            warps = [(used // along, along) for along in range(1, used + 1) if used % along == 0]
            configs = atoms.dot_configs(dot_operand(a.dtype), out.dtype, m, n, k, warps)
            for config in sorted(configs, key=lambda config: self._repeated(config, ctx)):
                several = ops.replicated(1, 1, num_workers=count // used)
                la, lb, lc = (several * layout for layout in (config.la, config.lb, config.lc))
                if self._why_not(known.get(a, la), known.get(b, lb), lc) is None:
                    ctx.because(f"for {used} warps, each with its part of the product")
                    return la, lb, lc
        raise LayoutOperationError("no way to deal the product out to the warps suits the operands")

    def _repeated(self, config: BlockMmaConfig, ctx: LayoutContext) -> int:
        """How often warps compute the elements of the operands that are not loaded."""
        layouts = ((self.a, config.la), (self.b, config.lb))
        return math.prod(layout.num_replicas for tile, layout in layouts if not ctx.is_loaded(tile))

    def _why_not(self, la: RegisterLayout, lb: RegisterLayout, lc: RegisterLayout) -> str | None:
        try:
            atoms.plan_dot(dot_operand(self.a.dtype), self.register_output.dtype, la, lb, lc)
        except LayoutOperationError as error:
            return str(error)
        return None

    def check(self, layouts: Layouts) -> str | None:
        out = layouts[self.register_output]
        if self.c is not None and layouts[self.c] != out:
            return "the tile that is added must lie as the result does"
        return self._why_not(layouts[self.a], layouts[self.b], out)

    def execute(self, machine: Machine) -> Steps:
        a, b = machine.read(self.a), machine.read(self.b)
        # products and sums are exact or nearly so in float64, so that the oracle's own rounding hides no wrong kernel
        with np.errstate(all="ignore"):
            data = _wide(a.data, self.a.dtype) @ _wide(b.data, self.b.dtype)
        defined: Mask = np.all(a.defined, axis=1, keepdims=True) & np.all(b.defined, axis=0, keepdims=True)
        if self.c is not None:
            c = machine.read(self.c)
            data, defined = data + c.data.astype(np.float64), defined & c.defined
        if self.register_output.dtype.is_integer():
            data = data.astype(np.int64)
        machine.write(self.register_output, data, defined)
        yield from ()


def _wide(data: Array, dtype: DataType) -> NDArray[np.float64]:
    """Operands as a matrix instruction takes them, in float64, which holds every product of theirs."""
    seen = dtypes.quantize(data, dtypes.tfloat32) if dtype is dtypes.float32 else data
    return np.asarray(seen).astype(np.float64)


def _check_accumulator(of: DataType, accumulator: DataType) -> None:
    known = ACCUMULATORS[of]
    if accumulator not in known:
        raise errors.LanguageError(
            "TK212",
            f"no matrix instruction sums up products of {of} in {accumulator}",
            help=f"sum up in {' or '.join(map(str, known))}, then cast the result",
        )


def _check_extents(a: RegisterTensor, b: RegisterTensor, accumulator: DataType) -> None:
    """Refuse what is not made of whole matrix instructions."""
    (m, k), n = a.shape, b.shape[1]
    known = atoms.atoms_for(dot_operand(a.dtype), accumulator)
    for name, extent, steps in (
        ("m", m, {atom.m for atom in known}),
        ("n", n, {atom.n for atom in known}),
        ("k", k, {atom.k for atom in known}),
    ):
        step = min(steps)
        if extent % step:
            whole = -(-extent // step) * step
            raise errors.LanguageError(
                "TK213",
                f"dot of {list(a.shape)} and {list(b.shape)}: {name} = {extent} is no multiple of {step}, "
                f"as matrix instructions for {a.dtype} need it",
                help=f"pad the tile to {whole}: loads outside read 0",
            )


class DotMethods(Surface):
    """The matrix products of the kernel language."""

    def dot(
        self,
        a: RegisterTensor,
        b: RegisterTensor,
        c: RegisterTensor | None = None,
        /,
        *,
        acc_dtype: DataType | None = None,
        out: RegisterTensor | None = None,
    ) -> RegisterTensor:
        """Return the matrix product `a @ b`, plus `c` where it is given.

        Parameters
        ----------
        a, b
            Tiles of shapes [m, k] and [k, n] and one dtype: float16, bfloat16, int8, or float32 and tfloat32, whose
            elements are rounded to 10 bits of fraction (TF32) before they are multiplied.
        c
            A tile of shape [m, n] to add.
        acc_dtype
            The dtype of the result, in which the products are summed up: float32, float16 for float16 operands, int32
            for int8 ones. It is that of `c` or `out` where one of them is given.
        out
            A tile of the result's shape and dtype to write instead of making a new one; it may be `c`.

        Returns
        -------
        RegisterTensor
            A tile of shape [m, n].

        Raises
        ------
        LanguageError
            TK213 where shapes do not fit, or m, n or k is no multiple of that of a matrix instruction, TK212 where
            dtypes differ or none sums up in `acc_dtype`, TK214 where none multiplies the operands, TK104 where nothing
            says the dtype of the result.
        LayoutError
            TK310 where the operands do not lie where the warps need them.

        Notes
        -----
        Each warp works on its part with PTX mma.sync: m16n8k16 (float16, bfloat16), m16n8k8 (TF32), m16n8k32 (int8);
        sm_80 or newer. The order in which the products are added is not fixed.
        """
        self._tile("dot", a)
        self._tile("dot", b)
        if c is not None:
            self._tile("dot", c)
        given = out if out is not None else c
        if acc_dtype is not None and given is not None and given.dtype is not acc_dtype:
            raise errors.LanguageError(
                "TK212", f"dot: acc_dtype is {acc_dtype}, but the given tile is {given.dtype}", help="give one of them"
            )
        if given is None and acc_dtype is not None and len(a.shape) == len(b.shape) == 2:
            out = RegisterTensor.create(acc_dtype, (a.shape[0], b.shape[1]))
        return self._emit(DotInst.create(a, b, c, out))
