# SPDX-License-Identifier: Apache-2.0
"""Instructions: what a thread group does to whole tensors.

An instruction class says once what each of its fields is (its *role*), what it does besides giving a result (its
*effects*), which layouts it wants, and what it means. Printing, parsing, visiting, rewriting, dead-code elimination
and fingerprints are derived from that.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast, dataclass_transform

from tilekit.ir.layouts import LayoutContext, Layouts
from tilekit.ir.machine import Machine, Steps
from tilekit.ir.node import Node
from tilekit.ir.tensor import LaidOut, RegisterTensor, SharedTensor, Tensor
from tilekit.lowir.scalar import Expr, Var


class Role(enum.Enum):
    """What a field of an instruction is."""

    OPERAND = "operand"  # a tensor that is read
    INOUT = "inout"  # a tensor that is written in place
    SCALAR = "scalar"  # scalar expressions
    BINDER = "binder"  # scalar variables that this instruction binds
    STATIC = "static"  # plain data


def operand(**options: Any) -> Any:
    """A tensor, or tuple of tensors, that is read."""
    return field(metadata={"role": Role.OPERAND}, **options)


def inout(**options: Any) -> Any:
    """A tensor that is written in place."""
    return field(metadata={"role": Role.INOUT}, **options)


def scalars(**options: Any) -> Any:
    """An expression, an optional expression, or a tuple of expressions."""
    return field(metadata={"role": Role.SCALAR}, **options)


def binder(**options: Any) -> Any:
    """Variables that run over the positions of a tile; this instruction's scalars may use them."""
    return field(metadata={"role": Role.BINDER}, **options)


def static(**options: Any) -> Any:
    """Plain data: numbers, strings, enums, tuples of them."""
    return field(metadata={"role": Role.STATIC}, **options)


class Effects(enum.Enum):
    """What an instruction does besides giving its result; a class that names none has side effects."""

    PURE = "pure"  # computes its result from its operands
    READS = "reads"  # reads memory: may be removed when the result is unused, may not be moved across a store
    SIDE = "side"  # never removed


PURE, READS, SIDE = Effects.PURE, Effects.READS, Effects.SIDE

# opcode -> class, filled by the class statements themselves
REGISTRY: dict[str, type[Instruction]] = {}


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(operand, inout, scalars, binder, static))
class _InstructionMeta(type):
    """Turns each instruction class into a frozen dataclass, so that a class statement is the whole declaration."""


@dataclass(frozen=True, eq=False)
class Instruction(Node, metaclass=_InstructionMeta):
    """One operation on tensors.

    A subclass names its `opcode` (its name in printed IR) and, if it has no side effects, its `effects`. `order` ranks
    its layout rule: among instructions with the same knowledge the lowest proposes first.
    """

    output: Tensor | None

    opcode: ClassVar[str] = ""
    effects: ClassVar[Effects] = SIDE
    order: ClassVar[int] = 50

    def __init_subclass__(cls, opcode: str = "", effects: Effects = SIDE, order: int = 50) -> None:
        super().__init_subclass__()
        cls.opcode, cls.effects, cls.order = opcode, effects, order
        dataclass(frozen=True, eq=False)(cls)
        if not opcode:
            return
        if opcode in REGISTRY:
            raise TypeError(f"two instructions are called {opcode!r}")
        REGISTRY[opcode] = cls

    @classmethod
    @functools.cache
    def roles(cls) -> Mapping[str, Role]:
        """The role of each field of this class, in order; `output` and `span` have none."""
        return {f.name: f.metadata["role"] for f in dataclasses.fields(cls) if "role" in f.metadata}

    def fields_of(self, *wanted: Role) -> dict[str, Any]:
        """The fields of these roles with their values."""
        return {name: getattr(self, name) for name, role in self.roles().items() if role in wanted}

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors this instruction reads or writes in place, in field order."""
        return _flat(self.fields_of(Role.OPERAND, Role.INOUT))

    @property
    def reads(self) -> tuple[Tensor, ...]:
        return _flat(self.fields_of(Role.OPERAND))

    @property
    def writes(self) -> tuple[Tensor, ...]:
        """The tensors whose contents this instruction sets: those it writes in place, and its output."""
        written = _flat(self.fields_of(Role.INOUT))
        return written if self.output is None else (*written, self.output)

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The scalar expressions, in field order."""
        return _flat(self.fields_of(Role.SCALAR))

    @property
    def bound_vars(self) -> tuple[Var, ...]:
        """The variables that this instruction binds for its scalar expressions."""
        return _flat(self.fields_of(Role.BINDER))

    @property
    def gives_value(self) -> bool:
        """Whether the output holds something afterwards."""
        return self.output is not None

    @property
    def attributes(self) -> dict[str, Any]:
        """All fields beyond `output` and `inputs`: scalar expressions, bound variables and plain data."""
        return self.fields_of(Role.SCALAR, Role.BINDER, Role.STATIC)

    @property
    def register_tensors(self) -> tuple[RegisterTensor, ...]:
        """Every register tensor among the inputs and the output."""
        tensors = self.inputs if self.output is None else (*self.inputs, self.output)
        return tuple(t for t in tensors if isinstance(t, RegisterTensor))

    @property
    def laid_out_tensors(self) -> tuple[LaidOut, ...]:
        """Every register and every shared tensor among the inputs and the output."""
        tensors = self.inputs if self.output is None else (*self.inputs, self.output)
        return tuple(t for t in tensors if isinstance(t, (RegisterTensor, SharedTensor)))

    @property
    def register_output(self) -> RegisterTensor:
        assert isinstance(self.output, RegisterTensor), f"{self.opcode} gives no register tensor"
        return self.output

    @property
    def shared_output(self) -> SharedTensor:
        assert isinstance(self.output, SharedTensor), f"{self.opcode} gives no shared tensor"
        return self.output

    def propose(self, known: Layouts, ctx: LayoutContext) -> Layouts:
        """Layouts for tensors of this instruction that are not in `known`; empty where the rule cannot say yet."""
        return {}

    def check(self, layouts: Layouts) -> str | None:
        """Why these layouts do not work for this instruction, or None."""
        return None

    def execute(self, machine: Machine) -> Steps:
        """What the instruction means, on NumPy arrays; yields where it waits for other thread groups or blocks."""
        raise NotImplementedError(f"{type(self).__name__} has no NumPy meaning")


def _flat(fields: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of the fields one after the other, tuples opened, None left out."""
    found: list[Any] = []
    for value in fields.values():
        if isinstance(value, tuple):
            found.extend(cast("tuple[Any, ...]", value))
        elif value is not None:
            found.append(value)
    return tuple(found)
