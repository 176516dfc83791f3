# SPDX-License-Identifier: Apache-2.0
"""The parameters of a kernel's `__call__`: which are compile-time constants, which are passed at launch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from tilekit.diag import errors
from tilekit.diag.span import Span
from tilekit.dtypes import DataType, PointerType
from tilekit.lang import source

ParamType: TypeAlias = "type[int] | type[float] | type[bool] | type[str] | DataType | PointerType"
DECORATED = "a decorator replaces this method, but kernel methods are read, not run"
CONSTANT_TYPES = (int, float, bool, str)


class Passing(Enum):
    """How an argument reaches the kernel."""

    CONSTANT = "constant"  # a Python value, part of the jit key
    SCALAR = "scalar"  # by value at launch
    POINTER = "pointer"  # the address of a tensor


@dataclass(frozen=True)
class CallParameters:
    """The signature of `__call__` without self, and the kind of each parameter, by index."""

    signature: inspect.Signature
    param_names: tuple[str, ...]
    param_types: tuple[ParamType, ...]
    with_default: bool
    const_params: tuple[int, ...] = field(init=False)
    kernel_params: tuple[int, ...] = field(init=False)
    tuning_params: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        kinds = [passing(kind) for kind in self.param_types]
        set_once = object.__setattr__
        set_once(self, "const_params", tuple(i for i, kind in enumerate(kinds) if kind is Passing.CONSTANT))
        set_once(self, "kernel_params", tuple(i for i, kind in enumerate(kinds) if kind is not Passing.CONSTANT))
        integers = (i for i, kind in enumerate(self.param_types) if isinstance(kind, DataType) and kind.is_integer())
        set_once(self, "tuning_params", tuple(integers))

    @staticmethod
    def of(call: Callable[..., Any]) -> CallParameters:
        """Read them from a script's `__call__`, or say which annotation is wrong and where."""
        signature = inspect.signature(call)
        spans = _spans(call)
        parameters = _without_self(signature, spans)
        if hasattr(call, "__wrapped__"):
            raise errors.LanguageError("TK107", DECORATED, at=spans["def"], help="remove the decorator")
        names: list[str] = []
        types: list[ParamType] = []
        for parameter in parameters:
            names.append(parameter.name)
            types.append(_checked(parameter, spans.get(parameter.name)))
        if signature.return_annotation not in (inspect.Signature.empty, None, "None"):
            raise errors.LanguageError(
                "TK107",
                "a kernel returns nothing: it writes to the tensors it is given",
                at=spans["return"],
                help="remove the return annotation and pass the output as a parameter",
            )
        with_default = any(p.default is not inspect.Parameter.empty for p in parameters)
        return CallParameters(signature.replace(parameters=parameters), tuple(names), tuple(types), with_default)


def passing(kind: ParamType) -> Passing:
    if kind in CONSTANT_TYPES:
        return Passing.CONSTANT
    return Passing.POINTER if isinstance(kind, PointerType) else Passing.SCALAR


def _spans(call: Callable[..., Any]) -> Mapping[str, Span]:
    """Where each parameter stands, the return annotation ("return"), and the name in the `def` line ("def")."""
    read = source.read(call)
    arguments = read.node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    found = {argument.arg: read.span(argument) for argument in every if argument is not None}
    if read.node.returns is not None:
        found["return"] = read.span(read.node.returns)
    return {**found, "def": read.header}


def _without_self(signature: inspect.Signature, spans: Mapping[str, Span]) -> list[inspect.Parameter]:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind not in positional:
        raise errors.LanguageError(
            "TK107", "a kernel is a method: its first parameter is self", at=spans["def"], help="def __call__(self, …)"
        )
    return parameters[1:]


def _checked(parameter: inspect.Parameter, at: Span | None) -> ParamType:
    name, annotation = parameter.name, parameter.annotation
    if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        raise errors.LanguageError(
            "TK107", f"parameter {name} must be an ordinary one: no *args, **kwargs, / or *", at=at
        )
    if annotation is inspect.Parameter.empty:
        raise errors.LanguageError(
            "TK107",
            f"parameter {name} has no type",
            at=at,
            help=f"annotate it: {name}: ~float16 for a tensor, {name}: int32 for a number passed at launch, "
            f"{name}: int for a compile-time constant",
        )
    if isinstance(annotation, str):
        raise errors.LanguageError(
            "TK107",
            f"the type of parameter {name} is the string {annotation!r}, not a type",
            at=at,
            help="remove the quotes, and `from __future__ import annotations`, which turns every type into a string",
        )
    if annotation in CONSTANT_TYPES or isinstance(annotation, PointerType):
        return annotation
    if isinstance(annotation, DataType) and not annotation.is_vector() and annotation.nbits >= 8:
        return annotation
    shown = annotation.__name__ if isinstance(annotation, type) else repr(annotation)
    raise errors.LanguageError(
        "TK107",
        f"parameter {name} cannot be of type {shown}",
        at=at,
        help="use a type such as int32 or float32, a pointer such as ~float16, or int, float, bool, str for a constant",
    )
