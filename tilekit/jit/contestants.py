# SPDX-License-Identifier: Apache-2.0
"""What a kernel reads and writes in a call, how its peers are called on the same, and whether results agree.

A peer is any callable. It is given all arguments of the call if its signature takes so many, and else the tensors that
the kernel reads: `lambda a, b: a @ b`, `torch.matmul`. Its result is what it returns, or, if that is no tensor, what it
wrote where the kernel writes.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from tilekit.diag import errors
from tilekit.jit import agreement, held
from tilekit.jit.agreement import Agreement
from tilekit.jit.kernel import Kernel
from tilekit.runtime import tensors
from tilekit.runtime.manifest import Param
from tilekit.runtime.tensors import Library

Peer: TypeAlias = "Callable[..., Any] | tuple[Callable[..., Any], Callable[..., Any]]"


@dataclass(frozen=True)
class Subject:
    """The kernel of a call; `positions` are those of its parameters among the arguments, the others are constants."""

    kernel: Kernel
    args: Sequence[Any]
    positions: Sequence[int]

    @property
    def launched(self) -> list[Any]:
        return self.launched_of(self.args)

    def launched_of(self, values: Sequence[Any]) -> list[Any]:
        return [values[i] for i in self.positions]

    def outputs(self, values: Sequence[Any]) -> dict[str, Any]:
        """The tensors among `values` that the kernel writes, by name."""
        return {param.name: values[i] for i, param in self._tensors() if param.written}

    def inputs(self, values: Sequence[Any]) -> list[Any]:
        """The tensors among `values` that the kernel reads."""
        return [values[i] for i, param in self._tensors() if param.read]

    @property
    def nbytes(self) -> int | None:
        """What the kernel reads and writes, as far as the manifest says; None where an argument is an address."""
        if any(param.is_pointer and not tensors.is_tensor(self.args[i]) for i, param in self._params):
            return None
        windows = [(tensors.facts(self.args[i]).window, param) for i, param in self._tensors()]
        return sum((end - begin) * (param.read + param.written) for (begin, end), param in windows)

    def private(self, *, wide: bool = False) -> list[Any]:
        """The arguments for one program: its own copies of what is written, in which outputs are spoiled.

        `wide` gives all floats as float64.
        """
        written = {i for i, param in self._tensors() if param.written or self.kernel.patched}
        values = held.copies_of(self.args, written)
        if wide:
            values = [_widened(value) if tensors.is_tensor(value) else value for value in values]
        spoil_outputs(values, self._tensors())
        return values

    def call(self, peer: Peer, values: Sequence[Any]) -> Callable[[], Any]:
        """What calls a peer on these arguments; what prepares its arguments runs here."""
        inputs = self.inputs(values)
        if not isinstance(peer, tuple):
            found = given(peer, values, inputs)
            return lambda: peer(*found)
        function, prepare = peer
        prepared = prepare(*given(prepare, values, inputs))
        ready = prepared if isinstance(prepared, tuple) else (prepared,)
        return lambda: function(*ready)

    def results(self, returned: Any, values: Sequence[Any]) -> dict[str, Any]:
        """The results of a peer under the names of the kernel's outputs."""
        return results(self.outputs(values), returned)

    def amount(self, value: float | Callable[..., float]) -> float:
        """A number, or what a function makes of the arguments."""
        return float(value(*given(value, self.args, self.inputs(self.args)))) if callable(value) else value

    @cached_property
    def _params(self) -> list[tuple[int, Param]]:
        return list(zip(self.positions, params_of(self.kernel), strict=True))

    def _tensors(self) -> list[tuple[int, Param]]:
        return [(i, param) for i, param in self._params if tensors.is_tensor(self.args[i])]


def params_of(kernel: Kernel) -> Sequence[Param]:
    """The parameters of a kernel, and what it does behind its pointers: also of one that the evaluator runs."""
    if kernel.compiled is not None:
        return kernel.compiled.manifest.params
    # the compiler up to its text, which only machines without a C++ compiler need here
    drivers = importlib.import_module("tilekit.drivers")
    return drivers.params_of(drivers.generate_source(kernel.program, kernel.machine.target)[1])


def refuse_others(kernel: Kernel, arguments: Sequence[Any]) -> None:
    """Refuse arguments that a kernel was not compiled for: too few, or less divisible than those that it was for."""
    function = kernel.program.function
    params = [param.name for param in params_of(kernel)]
    if len(arguments) != len(params):
        raise errors.ArgumentError(
            "TK626", f"{kernel.name} is launched with ({', '.join(params)}), not with {len(arguments)} arguments"
        )
    for name, param, value in zip(params, function.params, arguments, strict=True):
        divisor = function.metadata.param2divisibility.get(param, 1)
        number = tensors.facts(value).pointer if tensors.is_tensor(value) else value
        if isinstance(number, int) and number % divisor:
            what = f"the address of {name}" if tensors.is_tensor(value) else name
            raise errors.ArgumentError(
                "TK644",
                f"{kernel.name} was compiled for {what} divisible by {divisor}, and this is {number}",
                help="the handle finds a kernel for any arguments: handle.bench(…)",
            )


def results(outputs: dict[str, Any], returned: Any) -> dict[str, Any]:
    """What a peer returned under the names of the outputs, or, if that is no tensor, what it wrote there."""
    found = returned if isinstance(returned, (tuple, list)) else [returned]
    if not any(map(tensors.is_tensor, found)):
        return outputs
    if len(found) != len(outputs):
        names = ", ".join(outputs)
        raise errors.ArgumentError(
            "TK643",
            f"it returns {len(found)} results and the kernel writes {len(outputs)}",
            help=f"return ({names}), with None for what is not to be compared",
        )
    return {name: tensor for name, tensor in zip(outputs, found, strict=True) if tensors.is_tensor(tensor)}


def given(function: Callable[..., Any], values: Sequence[Any], inputs: Sequence[Any]) -> Sequence[Any]:
    """What a function is called with."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return inputs  # as C functions have none
    for each in (values, inputs):
        try:
            signature.bind(*each)
        except TypeError:
            continue
        return each
    raise errors.ArgumentError(
        "TK643",
        f"it takes {signature}: neither the {len(values)} arguments of the call nor the {len(inputs)} tensors "
        "that the kernel reads",
    )


def compare(mine: Mapping[str, Any], others: Mapping[str, Any], allowed: float) -> Agreement:
    """The worst of all results, and where the first differs."""
    found = [agreement.agree(name, mine[name], other, allowed) for name, other in others.items() if name in mine]
    differing = [each.difference for each in found if each.difference]
    return Agreement(max((each.relative_error for each in found), default=0.0), "; ".join(differing[:1]))


def are_wide(results: Mapping[str, Any]) -> bool:
    """Whether all floats are float64."""
    kinds = [tensors.facts(tensor).dtype for tensor in results.values()]
    return all(kind.nbits == 64 for kind in kinds if kind.is_float())


def _widened(tensor: Any) -> Any:
    if tensors.library_of(tensor) is Library.TORCH:
        return tensor.double() if tensor.is_floating_point() else tensor
    return tensor if tensor.dtype.kind in "biu" or "int" in tensor.dtype.name else tensor.astype(np.float64)


def spoil_outputs(values: Sequence[Any], params: Sequence[tuple[int, Param]]) -> None:
    """Spoil the tensors that are written and never read, so that nobody is right by what a call before has left."""
    read = [tensors.facts(values[i]).window for i, param in params if param.read]
    for i, param in params:
        if param.written and not param.read and not _overlaps(tensors.facts(values[i]).window, read):
            _spoil(values[i])


def _spoil(tensor: Any) -> None:
    """Fill a tensor with NaN, or with the largest number of a type that has none."""
    dtype = tensors.facts(tensor).dtype
    value = float("nan") if dtype.is_float() else True if dtype.is_boolean() else int(dtype.max_value)
    if tensors.library_of(tensor) is Library.TORCH:
        tensor.fill_(value)
    else:
        tensor.fill(value)


def _overlaps(window: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(window[0] < end and begin < window[1] for begin, end in others)
