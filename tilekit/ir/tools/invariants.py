# SPDX-License-Identifier: Apache-2.0
"""Whether an instruction could have been made by its class's own `create()`: the invariants are written there alone."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from tilekit.diag import errors
from tilekit.ir.inst import Instruction, Role
from tilekit.ir.surface import describe
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr, Var


def recreate(inst: Instruction) -> Instruction:
    """The instruction made once more from its parts by `create()`, which raises where they do not fit together.

    A parameter of `create` has the name of a field, or `f_<field>` for the field as a function of the variables that
    the instruction binds.
    """
    create: Callable[..., Instruction] = getattr(type(inst), "create")  # noqa: B009 - subclasses have it, the base does not
    arguments: dict[str, Any] = {}
    fields = {field.name for field in dataclasses.fields(inst)}
    for name in inspect.signature(create).parameters:
        field = name.removeprefix("f_")
        if field not in fields:
            raise errors.VerificationError(
                "TK191",
                f"create() of {inst.opcode or type(inst).__name__} takes {name!r}, which is no field",
                help=f"name its parameters as the fields are named: {', '.join(['output', *inst.roles()])}",
            )
        value = getattr(inst, field)
        arguments[name] = value if field == name else _function_of_axes(inst, value)
    return create(**arguments)


def _function_of_axes(inst: Instruction, expr: Expr | None) -> Callable[[tuple[Var, ...]], Expr] | None:
    if expr is None:
        return None
    bound = inst.bound_vars

    def apply(axes: tuple[Var, ...]) -> Expr:
        if bound and len(bound) != len(axes):
            raise errors.VerificationError(
                "TK194", f"{inst.opcode} binds {len(bound)} variables, but its tile has {len(axes)} dimensions"
            )
        return scalar.rewrite(expr, dict(zip(bound, axes, strict=False)))

    return apply


_KINDS: Mapping[type[Tensor], str] = {
    RegisterTensor: "a tile",
    SharedTensor: "a shared tensor",
    GlobalTensor: "a global tensor",
}


@functools.cache
def kinds(cls: type[Instruction]) -> Mapping[str, tuple[type[Tensor], ...]]:
    """The kinds of tensors that each operand and the output of an instruction may be, as its annotations say."""
    create: Callable[..., Instruction] = getattr(cls, "create")  # noqa: B009 - subclasses have it, the base does not
    hints = {**typing.get_type_hints(cls), "output": typing.get_type_hints(create).get("output")}
    tensors = [name for name, role in cls.roles().items() if role in (Role.OPERAND, Role.INOUT)]
    return {name: tuple(_tensors_in(hints[name])) for name in (*tensors, "output")}


def _tensors_in(hint: Any) -> Iterable[type[Tensor]]:
    parts = typing.get_args(hint)
    if parts:
        return [kind for part in parts for kind in _tensors_in(part)]
    return [hint] if isinstance(hint, type) and issubclass(hint, Tensor) else []


def _check_kinds(inst: Instruction) -> None:
    for name, wanted in kinds(type(inst)).items():
        value = getattr(inst, name)
        for tensor in cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,):
            if tensor is not None and wanted and not isinstance(tensor, wanted):
                words = " or ".join(_KINDS.get(kind, kind.__name__) for kind in wanted)
                raise errors.VerificationError(
                    "TK194", f"{name} of {inst.opcode} must be {words}, got {describe(tensor)}"
                )


def check_instruction(inst: Instruction) -> None:
    """Raise a `TilekitError` where the parts of an instruction do not fit together."""
    _check_kinds(inst)
    again = recreate(inst)
    if again.output is not inst.output:
        raise errors.VerificationError("TK194", f"{inst.opcode} gives no result, and here it has one")
    for name in inst.fields_of(Role.SCALAR):
        ours, wanted = (_types(getattr(one, name)) for one in (inst, again))
        if ours != wanted:
            raise errors.VerificationError("TK194", f"{name} of {inst.opcode} must be {wanted}, got {ours}")


def _types(value: Any) -> str:
    """The types of an expression or of several, in words."""
    exprs = cast("tuple[Expr | None, ...]", value if isinstance(value, tuple) else (value,))
    return ", ".join("None" if expr is None else str(scalar.dtype_of(expr)) for expr in exprs)


def check_tensor(tensor: Tensor, name: str) -> None:
    """Raise a `TilekitError` where the type of a tensor contradicts itself."""
    match tensor:
        case RegisterTensor():
            RegisterTensor.create(tensor.dtype, tensor.shape, tensor.optional_layout)
        case SharedTensor():
            SharedTensor.create(tensor.dtype, tensor.shape, tensor.optional_layout)
        case GlobalTensor():
            _check_view(tensor, name)
        case _:
            raise errors.VerificationError("TK191", f"{type(tensor).__name__} is no tensor of the tile IR")


def _check_view(tensor: GlobalTensor, name: str) -> None:
    shape, strides = tensor.layout.shape, tensor.layout.strides
    if len(shape) != len(strides):
        raise errors.VerificationError("TK194", f"{name} has {len(shape)} extents and {len(strides)} strides")
    for what, values in (("extent", shape), ("stride", strides)):
        for value in values:
            if not scalar.is_integer(dtype := scalar.dtype_of(value)):
                raise errors.VerificationError("TK194", f"{what} of {name} must be an integer, got {dtype}")
