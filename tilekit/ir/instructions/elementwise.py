# SPDX-License-Identifier: Apache-2.0
"""Elementwise instructions: each is one scalar expression, applied at every position with NumPy broadcasting.

`combine` is the whole meaning. The evaluator evaluates it on arrays, the emitter prints it on registers, so the two
cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.inst import PURE, Instruction, operand, static
from tilekit.ir.layout import mapping
from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layouts import LayoutContext, broadcast_from, broadcast_to
from tilekit.ir.machine import Machine, Steps
from tilekit.ir.surface import Number, Surface, broadcast_shapes, require, result_tile, same_dtype
from tilekit.ir.tensor import RegisterTensor
from tilekit.lowir import scalar, scalar_eval
from tilekit.lowir.functions import FUNCTIONS, Domain
from tilekit.lowir.scalar import Expr

Layouts: TypeAlias = Mapping[RegisterTensor, RegisterLayout]
Combine: TypeAlias = Callable[[Expr, Expr], Expr]

UNARY: Mapping[str, Callable[[Expr], Expr]] = {
    "neg": scalar.neg,
    "logical_not": scalar.logical_not,
    **{
        name: (lambda x, name=name: scalar.call(name, [x]))
        for name in ("abs", "exp", "exp2", "log", "sin", "cos", "sqrt", "rsqrt", "round")
    },
    "square": lambda x: scalar.mul(x, x),
}
FLOAT_ONLY = frozenset(name for name in UNARY if name in FUNCTIONS and FUNCTIONS[name].domain is Domain.FLOAT)


def _bitwise(of_integers: Combine, of_truths: Combine) -> Combine:
    """An operator on bits, which on truth values is that of logic, as in Python."""
    return lambda x, y: (of_truths if scalar.dtype_of(x) is dtypes.boolean else of_integers)(x, y)


BINARY: Mapping[str, Combine] = {
    "maximum": scalar.maximum,
    "minimum": scalar.minimum,
    "floordiv": scalar.floordiv,
    "mod": scalar.mod,
    "bitwise_and": _bitwise(scalar.bitwise_and, scalar.logical_and),
    "bitwise_or": _bitwise(scalar.bitwise_or, scalar.logical_or),
    "bitwise_xor": _bitwise(scalar.bitwise_xor, scalar.ne),
    "left_shift": scalar.shl,
    "right_shift": scalar.shr,
    "less": scalar.lt,
    "less_equal": scalar.le,
    "equal": scalar.eq,
    "not_equal": scalar.ne,
    "logical_and": scalar.logical_and,
    "logical_or": scalar.logical_or,
}
COMPARISONS = frozenset({"less", "less_equal", "equal", "not_equal"})
INTEGER_ONLY = frozenset({"floordiv", "mod", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"})


class Elementwise(Instruction):
    """An instruction whose result at a position depends on its operands at that position alone."""

    def combine(self, *elements: Expr) -> Expr:
        """The result at one position from the operands there, in the order of `inputs`."""
        raise NotImplementedError

    @property
    def register_inputs(self) -> tuple[RegisterTensor, ...]:
        return tuple(t for t in self.inputs if isinstance(t, RegisterTensor))

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        out = self.register_output
        full = next((t for t in (out, *self.register_inputs) if t in known and t.shape == out.shape), None)
        layout = known[full] if full is not None else self._meeting(known) if ctx.insists else None
        if layout is None:
            return {}
        wanted = {t: broadcast_to(layout, t.shape) for t in self.register_inputs} | {out: layout}
        return {tensor: wanted[tensor] for tensor in wanted if tensor not in known}

    def _meeting(self, known: Layouts) -> RegisterLayout | None:
        """A layout of the result that finds every known operand where it needs it."""
        out = self.register_output
        held = [known[t] for t in self.register_inputs if t in known]
        for first in held:
            layout = broadcast_from(first, out.shape, out.dtype)
            if all(mapping.local_map(layout, other) is not None for other in held):
                return layout
        return None

    def check(self, layouts: Layouts) -> str | None:
        out = layouts[self.register_output]
        for tensor in self.register_inputs:
            if mapping.local_map(out, layouts[tensor]) is None:
                return (
                    f"a thread that holds an element of the result does not hold the matching element of "
                    f"{tensor.name or 'an operand'}"
                )
        return None

    def execute(self, machine: Machine) -> Steps:
        values = [machine.read(t) for t in self.register_inputs]
        elements = [scalar.var(f"x{i}", t.dtype) for i, t in enumerate(self.register_inputs)]
        data = scalar_eval.evaluate(self.combine(*elements), dict(zip(elements, (v.data for v in values), strict=True)))
        defined = np.ones((), dtype=bool)
        for value in values:
            defined = defined & value.defined
        machine.write(self.register_output, data, defined)
        yield from ()


class AddInst(Elementwise, opcode="add", effects=PURE, order=8):
    """`x + y`."""

    x: RegisterTensor = operand()
    y: RegisterTensor = operand()

    @staticmethod
    def create(x: RegisterTensor, y: RegisterTensor, output: RegisterTensor | None = None) -> AddInst:
        return AddInst(_binary_output("+", x, y, output), x, y)

    def combine(self, *elements: Expr) -> Expr:
        return scalar.add(*elements)


class SubInst(Elementwise, opcode="sub", effects=PURE, order=8):
    """`x - y`."""

    x: RegisterTensor = operand()
    y: RegisterTensor = operand()

    @staticmethod
    def create(x: RegisterTensor, y: RegisterTensor, output: RegisterTensor | None = None) -> SubInst:
        return SubInst(_binary_output("-", x, y, output), x, y)

    def combine(self, *elements: Expr) -> Expr:
        return scalar.sub(*elements)


class MulInst(Elementwise, opcode="mul", effects=PURE, order=8):
    """`x * y`."""

    x: RegisterTensor = operand()
    y: RegisterTensor = operand()

    @staticmethod
    def create(x: RegisterTensor, y: RegisterTensor, output: RegisterTensor | None = None) -> MulInst:
        return MulInst(_binary_output("*", x, y, output), x, y)

    def combine(self, *elements: Expr) -> Expr:
        return scalar.mul(*elements)


class DivInst(Elementwise, opcode="div", effects=PURE, order=8):
    """`x / y`, floats only, IEEE rounding."""

    x: RegisterTensor = operand()
    y: RegisterTensor = operand()

    @staticmethod
    def create(x: RegisterTensor, y: RegisterTensor, output: RegisterTensor | None = None) -> DivInst:
        if not x.dtype.is_float():
            raise errors.LanguageError(
                "TK214", f"cannot divide {x.dtype} tiles with /", help="use // for integers, or cast to a float first"
            )
        return DivInst(_binary_output("/", x, y, output), x, y)

    def combine(self, *elements: Expr) -> Expr:
        return scalar.div(*elements)


class ElementwiseUnaryInst(Elementwise, opcode="unary", effects=PURE, order=8):
    """A function of one tile, by its name in `UNARY`."""

    x: RegisterTensor = operand()
    op: str = static()

    @staticmethod
    def create(x: RegisterTensor, op: str, output: RegisterTensor | None = None) -> ElementwiseUnaryInst:
        if op in FUNCTIONS and op not in UNARY:
            raise errors.LanguageError(
                "TK102",
                f"{op} is a function of numbers alone",
                help=f"to have it on tiles, name it in UNARY of {__name__}",
            )
        require("function of one tile", op, UNARY)
        if op in FLOAT_ONLY and not x.dtype.is_float():
            raise errors.LanguageError(
                "TK214", f"{op} needs a float tile, got {x.dtype}", help=f"cast it first: self.{op}(x.to(float32))"
            )
        if op == "logical_not" and x.dtype is not dtypes.boolean:
            raise errors.LanguageError("TK214", f"not needs a boolean tile, got {x.dtype}", help="compare it with 0")
        if op != "logical_not" and x.dtype is dtypes.boolean:
            raise errors.LanguageError("TK214", f"cannot compute {op} of a boolean tile", help="cast it to an integer")
        return ElementwiseUnaryInst(result_tile(x.dtype, x.shape, output), x, op)

    def combine(self, *elements: Expr) -> Expr:
        return UNARY[self.op](*elements)


class ElementwiseBinaryInst(Elementwise, opcode="binary", effects=PURE, order=8):
    """A function of two tiles, by its name in `BINARY`."""

    x: RegisterTensor = operand()
    y: RegisterTensor = operand()
    op: str = static()

    @staticmethod
    def create(
        x: RegisterTensor, y: RegisterTensor, op: str, output: RegisterTensor | None = None
    ) -> ElementwiseBinaryInst:
        require("function of two tiles", op, BINARY)
        if op in INTEGER_ONLY and x.dtype.is_float():
            raise errors.LanguageError("TK214", f"{op} needs integer tiles, got {x.dtype}")
        if op in ("logical_and", "logical_or") and x.dtype is not dtypes.boolean:
            raise errors.LanguageError("TK214", f"{op} needs boolean tiles, got {x.dtype}", help="compare them with 0")
        out = _binary_output(op, x, y, output, dtypes.boolean if op in COMPARISONS else None)
        return ElementwiseBinaryInst(out, x, y, op)

    def combine(self, *elements: Expr) -> Expr:
        return BINARY[self.op](*elements)


class CastInst(Elementwise, opcode="cast", effects=PURE, order=8):
    """The values of `x` in the dtype of the result."""

    x: RegisterTensor = operand()

    @staticmethod
    def create(x: RegisterTensor, output: RegisterTensor) -> CastInst:
        if x.shape != output.shape:
            raise errors.LanguageError("TK213", f"a cast keeps the shape: {list(x.shape)} is not {list(output.shape)}")
        return CastInst(output, x)

    def combine(self, *elements: Expr) -> Expr:
        return scalar.cast(elements[0], self.register_output.dtype)


class WhereInst(Elementwise, opcode="where", effects=PURE, order=8):
    """`x` where the condition holds, else `y`."""

    cond: RegisterTensor = operand()
    x: RegisterTensor = operand()
    y: RegisterTensor = operand()

    @staticmethod
    def create(
        cond: RegisterTensor, x: RegisterTensor, y: RegisterTensor, output: RegisterTensor | None = None
    ) -> WhereInst:
        if cond.dtype is not dtypes.boolean:
            raise errors.LanguageError(
                "TK214", f"where needs a boolean condition, got {cond.dtype}", help="compare it with 0"
            )
        same_dtype("where", x, y)
        return WhereInst(result_tile(x.dtype, broadcast_shapes("where", cond, x, y), output), cond, x, y)

    def combine(self, *elements: Expr) -> Expr:
        return scalar.where(*elements)


def _binary_output(
    op: str, x: RegisterTensor, y: RegisterTensor, output: RegisterTensor | None, dtype: DataType | None = None
) -> RegisterTensor:
    same_dtype(op, x, y)
    if dtype is None and x.dtype is dtypes.boolean and not op.startswith(("logical", "bitwise")):
        raise errors.LanguageError("TK214", f"cannot compute {op} of boolean tiles", help="cast them to an integer")
    return result_tile(dtype or x.dtype, broadcast_shapes(op, x, y), output)


class ElementwiseMethods(Surface):
    """The elementwise part of the kernel language."""

    def _unary(self, op: str, x: RegisterTensor, out: RegisterTensor | None) -> RegisterTensor:
        self._tile(op, x)
        return self._emit(ElementwiseUnaryInst.create(x, op, out))

    def _binary(
        self, op: str, x: RegisterTensor | Number, y: RegisterTensor | Number, out: RegisterTensor | None
    ) -> RegisterTensor:
        x, y = self._tiles(op, x, y)
        return self._emit(ElementwiseBinaryInst.create(x, y, op, out))

    def add(
        self, x: RegisterTensor | Number, y: RegisterTensor | Number, *, out: RegisterTensor | None = None
    ) -> RegisterTensor:
        """Return `x + y`, elementwise with NumPy broadcasting.

        Parameters
        ----------
        x, y
            Tiles of one dtype, or a scalar, which is converted to the dtype of the other.
        out
            A tile of the result's shape and dtype to write instead of making a new one.
        """
        x, y = self._tiles("+", x, y)
        return self._emit(AddInst.create(x, y, out))

    def maximum(
        self, x: RegisterTensor | Number, y: RegisterTensor | Number, *, out: RegisterTensor | None = None
    ) -> RegisterTensor:
        """Return the larger of `x` and `y` at each position; NaN where either is NaN, as in torch.maximum."""
        return self._binary("maximum", x, y, out)

    def minimum(
        self, x: RegisterTensor | Number, y: RegisterTensor | Number, *, out: RegisterTensor | None = None
    ) -> RegisterTensor:
        """Return the smaller of `x` and `y` at each position; NaN where either is NaN, as in torch.minimum."""
        return self._binary("minimum", x, y, out)

    def abs(self, x: RegisterTensor, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Return the absolute value of each element."""
        return self._unary("abs", x, out)

    def exp(self, x: RegisterTensor, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Return e to the power of each element; float tiles."""
        return self._unary("exp", x, out)

    def exp2(self, x: RegisterTensor, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Return 2 to the power of each element; float tiles.

        Notes
        -----
        PTX ex2.approx.ftz for float32 and narrower: what is below 2**-126 is 0.
        """
        return self._unary("exp2", x, out)

    def log(self, x: RegisterTensor, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Return the natural logarithm of each element; float tiles."""
        return self._unary("log", x, out)

    def sin(self, x: RegisterTensor, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Return the sine of each element, in radians; float tiles."""
        return self._unary("sin", x, out)

    def cos(self, x: RegisterTensor, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Return the cosine of each element, in radians; float tiles."""
        return self._unary("cos", x, out)

    def round(self, x: RegisterTensor, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Return the nearest integer of each element, halves to even (PTX cvt.rni); float tiles."""
        return self._unary("round", x, out)

    def square(self, x: RegisterTensor, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Return the square of each element."""
        return self._unary("square", x, out)

    def sqrt(self, x: RegisterTensor, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Return the square root of each element, IEEE rounding; float tiles."""
        return self._unary("sqrt", x, out)

    def rsqrt(self, x: RegisterTensor, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Return one over the square root of each element; float tiles."""
        return self._unary("rsqrt", x, out)

    def clip(self, x: RegisterTensor, min: Number, max: Number, *, out: RegisterTensor | None = None) -> RegisterTensor:
        """Return `x` limited to [min, max]: first raised to `min`, then lowered to `max`."""
        return self._binary("minimum", self._binary("maximum", x, min, None), max, out)

    def cast(self, x: RegisterTensor, dtype: DataType) -> RegisterTensor:
        """Return the values of `x` in `dtype`; the same tile where it has that dtype.

        Floats round to nearest even. A float becomes an integer by truncation and saturates at the integer's range,
        NaN becoming 0 (PTX ISA, cvt).
        """
        self._tile("cast", x)
        if x.dtype is dtype:
            return x
        return self._emit(CastInst.create(x, RegisterTensor.create(dtype, x.shape)))

    def where(
        self,
        cond: RegisterTensor,
        x: RegisterTensor | Number,
        y: RegisterTensor | Number,
        *,
        out: RegisterTensor | None = None,
    ) -> RegisterTensor:
        """Return `x` where the boolean tile `cond` holds and `y` elsewhere."""
        self._tile("where", cond)
        x, y = self._tiles("where", x, y)
        return self._emit(WhereInst.create(cond, x, y, out))
