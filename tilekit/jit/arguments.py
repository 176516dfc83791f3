# SPDX-License-Identifier: Apache-2.0
"""The arguments of one call: bound to parameters, checked, and condensed to the key of a specialization."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, cast

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.diag.errors import TilekitError
from tilekit.dtypes import DataType, PointerType
from tilekit.jit.spec import TensorSpec
from tilekit.lang.params import CallParameters, Passing, passing
from tilekit.runtime import tensors
from tilekit.runtime.tensors import Device, DeviceKind, TensorFacts

# what a pointer's address and an integer may be known to be a multiple of, largest first
BUCKETS = (16, 1)


@dataclass(frozen=True)
class JitKey:
    """What a specialization depends on: constants by type and value, and divisors of what is passed at launch."""

    constants: tuple[tuple[type, Any], ...] = field(compare=False)
    divisors: tuple[int, ...]
    # what tells constants apart: as numbers -0.0 is 0.0, and a nan not even itself
    texts: tuple[tuple[type, str], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple((kind, repr(value)) for kind, value in self.constants))

    def values(self, params: CallParameters) -> dict[str, Any]:
        """The compile-time arguments by name."""
        return {params.param_names[i]: value for i, (_, value) in zip(params.const_params, self.constants, strict=True)}

    def divisibility(self, params: CallParameters) -> dict[str, int]:
        """The divisor of each launch argument by name, where one is known."""
        pairs = zip(params.kernel_params, self.divisors, strict=True)
        return {params.param_names[i]: divisor for i, divisor in pairs if divisor > 1}


@dataclass(frozen=True)
class Call:
    """A checked call."""

    key: JitKey
    # the arguments passed at launch, in the order of the kernel's parameters
    launch: tuple[Any, ...]
    device: Device | None
    # the tensors' facts, by parameter name
    facts: Mapping[str, TensorFacts]


def bind(script: str, params: CallParameters, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
    """One value per parameter, defaults filled in."""
    if not kwargs and not params.with_default and len(args) == len(params.param_names):
        return args
    try:
        bound = params.signature.bind(*args, **kwargs)
    except TypeError as problem:
        names = ", ".join(params.param_names)
        raise errors.ArgumentError(
            "TK626", f"{script} takes ({names}): {problem}", help=_signature(script, params)
        ) from None
    bound.apply_defaults()
    return tuple(bound.arguments[name] for name in params.param_names)


def check(script: str, params: CallParameters, values: Sequence[Any], *, allow_specs: bool = False) -> Call:
    """Check every value against its parameter."""
    constants: list[tuple[type, Any]] = []
    divisors: list[int] = []
    launch: list[Any] = []
    facts: dict[str, TensorFacts] = {}
    for name, kind, value in zip(params.param_names, params.param_types, values, strict=True):
        match passing(kind):
            case Passing.CONSTANT:
                constants.append(_constant(script, name, cast("type", kind), value))
                continue
            case Passing.SCALAR:
                number = _scalar(script, name, cast("DataType", kind), value)
                divisors.append(_divisor(number) if isinstance(number, int) and not isinstance(number, bool) else 1)
                launch.append(number)
            case Passing.POINTER:
                found = _pointer(script, name, cast("PointerType", kind), value, allow_specs)
                if found is not None:
                    facts[name] = found
                divisors.append(_divisor(found.pointer) if found is not None else 1)
                launch.append(value)
    return Call(JitKey(tuple(constants), tuple(divisors)), tuple(launch), _device(script, facts), facts)


def _divisor(value: int) -> int:
    return next(bucket for bucket in BUCKETS if value % bucket == 0)


def _constant(script: str, name: str, kind: type, value: Any) -> tuple[type, Any]:
    if kind is float and isinstance(value, numbers.Real) and not isinstance(value, bool):
        return float, float(value)
    if kind is int and isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int, int(value)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return kind, value
    raise errors.ArgumentError("TK625", f"{script}: {name} is a compile-time {kind.__name__}, got {_describe(value)}")


def _scalar(script: str, name: str, kind: DataType, value: Any) -> int | float | bool:
    number = value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value
    if isinstance(number, dtypes.Literal):
        number = number.value
    if kind.is_boolean() and isinstance(number, bool):
        return number
    if kind.is_integer() and isinstance(number, numbers.Integral) and not isinstance(number, bool):
        if kind.min_value <= int(number) <= kind.max_value:
            return int(number)
        raise errors.ArgumentError(
            "TK625",
            f"{script}: {name} is {kind} and cannot hold {number}",
            help="declare the parameter as int64" if kind.nbits < 64 else None,
        )
    if kind.is_float() and isinstance(number, numbers.Real) and not isinstance(number, bool):
        if math.isfinite(number) and not kind.min_value <= float(number) <= kind.max_value:
            raise errors.ArgumentError("TK625", f"{script}: {name} is {kind} and cannot hold {number}")
        return float(number)
    raise errors.ArgumentError("TK625", f"{script}: {name} takes a number of type {kind}, got {_describe(value)}")


def _pointer(script: str, name: str, kind: PointerType, value: Any, allow_specs: bool) -> TensorFacts | None:
    if isinstance(value, TensorSpec) and allow_specs:
        strides: list[int] = []
        count = 1
        for extent in reversed(value.shape):
            strides.append(count)
            count *= extent
        size = (0, count * value.dtype.nbytes)
        found = TensorFacts(0, value.dtype, value.shape, tuple(reversed(strides)), tensors.META, size)
    elif tensors.is_tensor(value):
        try:
            found = tensors.facts(value)
        except TilekitError as error:
            raise errors.ArgumentError(
                error.code, f"{script}: {name}: {error.message}", help=error.diagnostic.help
            ) from None
    elif isinstance(value, int) and not isinstance(value, bool) and kind.is_raw():
        return None
    else:
        raise errors.ArgumentError("TK622", f"{script}: {name} takes a tensor of {kind.base}, got {_describe(value)}")
    if not kind.is_raw() and found.dtype is not kind.base:
        raise errors.ArgumentError(
            "TK623",
            f"{script}: {name} is a {found.dtype} tensor, but the kernel takes {kind.base}",
            help=f"convert it, or declare the parameter as {name}: ~{found.dtype}",
        )
    if found.device.kind is DeviceKind.META and not allow_specs:
        raise errors.ArgumentError(
            "TK623", f"{script}: {name} is a meta tensor and holds no data", help="use compile(…) to build without data"
        )
    return found


def _device(script: str, facts: Mapping[str, TensorFacts]) -> Device | None:
    first: tuple[str, Device] | None = None
    for name, tensor in facts.items():
        if tensor.device.kind is DeviceKind.META:
            continue
        if first is None:
            first = (name, tensor.device)
        elif tensor.device != first[1]:
            raise errors.ArgumentError(
                "TK623",
                f"{script}: {first[0]} is on {first[1]} and {name} is on {tensor.device}",
                help=f"move one of them: {name}.to({str(first[1])!r})",
            )
    return None if first is None else first[1]


def check_contiguous(script: str, facts: Mapping[str, TensorFacts], strided: Set[str]) -> None:
    """Refuse a tensor with gaps, unless the kernel views it with strides of its own."""
    for name, tensor in facts.items():
        if not tensor.contiguous and name not in strided:
            raise errors.ArgumentError(
                "TK623",
                f"{script}: {name} is not contiguous: shape {list(tensor.shape)} with strides {list(tensor.strides)}",
                help=f"pass {name}.contiguous(), or give the kernel's global_view the strides",
            )


def _describe(value: Any) -> str:
    if tensors.is_tensor(value):
        return f"a tensor of shape {list(value.shape)}"
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} of type {type(value).__name__}"


def _signature(script: str, params: CallParameters) -> str:
    parts: list[str] = []
    for name, kind in zip(params.param_names, params.param_types, strict=True):
        default = params.signature.parameters[name].default
        text = f"{name}: {kind.__name__ if isinstance(kind, type) else kind}"
        parts.append(text if default is inspect.Parameter.empty else f"{text} = {default!r}")
    return f"its form is {script}({', '.join(parts)})"


def require_sample(blocks: object, seed: object) -> None:
    """Refuse what names no blocks of a grid, or no order of theirs."""
    if not (blocks == "all" or (isinstance(blocks, int) and not isinstance(blocks, bool) and blocks > 0)):
        raise errors.ArgumentError("TK625", f'blocks is "all" or how many, not {blocks!r}')
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise errors.ArgumentError("TK625", f"seed is a whole number from 0 on, not {seed!r}")
