# SPDX-License-Identifier: Apache-2.0
"""The short way of a call: arguments like those of an earlier call go straight to the kernel that it found.

A call condenses its arguments to what they could change: the values of compile-time constants, what integers and
addresses are divisible by, types, and where the tensors live; of a kernel with several schedules also the values of
integers. A `probe`, written once for the signature of a kernel, does that in about as many Python instructions as there
are facts. Whatever it does not know at a glance (a NumPy array, a keyword, a tensor with gaps) takes the long way,
which checks everything and has words for what is wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tilekit import config
from tilekit.diag.errors import KernelError
from tilekit.dtypes import DataType, PointerType
from tilekit.jit import session
from tilekit.jit.arguments import BUCKETS
from tilekit.lang.params import CallParameters, ParamType, Passing, passing
from tilekit.runtime.compiled import CpuRunner
from tilekit.runtime.launch_cuda import CudaKernel

if TYPE_CHECKING:
    from tilekit.jit.kernel import Kernel
    from tilekit.target import Target

# what decides, and the arguments as a GPU takes them: numbers, and addresses in place of tensors
Probed: TypeAlias = "tuple[tuple[Any, ...], list[Any]]"
Probe: TypeAlias = "Callable[[Sequence[Any]], Probed | None]"

# how often a kernel on a GPU looks whether someone deleted it from the cache
_LOOK_SECONDS = 0.05
# a kernel that is called with ever new values starts to forget
_MOST_KNOWN = 4096


def probe_of(params: CallParameters, arguments: Sequence[Any], *, by_value: bool) -> Probe | None:
    """The probe for this signature, from the arguments of a call that went well; None if they are not torch's.

    With `by_value`, integers decide by their values.
    """
    torch = sys.modules.get("torch")
    if torch is None or len(arguments) != len(params.param_names):
        return None
    body = _Body({"tensors": {torch.Tensor, torch.nn.Parameter}}, by_value)
    for number, (kind, argument) in enumerate(zip(params.param_types, arguments, strict=True)):
        if passing(kind) is Passing.POINTER and not isinstance(argument, torch.Tensor):
            return None
        body.add(f"a{number}", kind, argument)
    return body.function([f"a{number}" for number in range(len(arguments))])


@dataclass
class _Body:
    """The statements of a probe; `names` are what they may name beside the arguments."""

    names: dict[str, Any]
    by_value: bool
    lines: list[str] = field(default_factory=list[str])
    key: list[str] = field(default_factory=list[str])
    values: list[str] = field(default_factory=list[str])
    pointers: list[str] = field(default_factory=list[str])

    def add(self, name: str, kind: ParamType, argument: Any) -> None:
        match passing(kind):
            case Passing.CONSTANT:
                assert isinstance(kind, type)
                self.require(f"type({name}) is {kind.__name__}")
                # as numbers -0.0 is 0.0, and a nan not even itself
                self.key.append(f"{name}.hex()" if kind is float else name)
            case Passing.SCALAR:
                assert isinstance(kind, DataType)
                self._scalar(name, kind)
                self.values.append(name)
            case Passing.POINTER:
                assert isinstance(kind, PointerType)
                self._pointer(name, kind, argument)
                self.values.append(f"p{name}")

    def require(self, condition: str) -> None:
        """Only arguments for which this holds are taken the short way."""
        self.lines.append(f"if not ({condition}): return None")

    def _scalar(self, name: str, kind: DataType) -> None:
        if kind.is_boolean():
            self.require(f"type({name}) is bool")
        elif kind.is_integer():
            self.require(f"type({name}) is int and {kind.min_value} <= {name} <= {kind.max_value}")
            divides = [f"not {name} % {bucket}" for bucket in BUCKETS if bucket > 1]
            self.key += [name] if self.by_value else divides
        else:
            self.require(f"type({name}) is float and {float(kind.min_value)} <= {name} <= {float(kind.max_value)}")

    def _pointer(self, name: str, kind: PointerType, argument: Any) -> None:
        self.require(f"type({name}) in tensors and {name}.is_contiguous()")
        self.lines.append(f"p{name} = {name}.data_ptr()")
        if not self.pointers:
            self.lines.append(f"device = {name}.get_device()")
        else:
            self.require(f"{name}.get_device() == device")
        if kind.is_raw():
            self.key.append(f"{name}.dtype")
        else:
            # no other would have been accepted
            self.names[f"dtype_{name}"] = argument.dtype
            self.require(f"{name}.dtype is dtype_{name}")
        self.pointers.append(name)

    def function(self, names: Sequence[str]) -> Probe:
        key, lines = list(self.key), list(self.lines)
        if self.pointers:
            on_cpu = " and ".join(f"{name}.is_cpu" for name in self.pointers)
            lines.append(f"if device < 0 and not ({on_cpu}): return None")
            every = " | ".join(f"p{name}" for name in self.pointers)
            for bucket in (bucket for bucket in BUCKETS if bucket > 1):
                each = ", ".join(f"not p{name} % {bucket}" for name in self.pointers)
                key.append(f"not ({every}) % {bucket} or ({each},)")
        key.insert(0, "device" if self.pointers else "None")
        lines.append(f"return ({', '.join(key)},), [{', '.join(self.values)}]")
        unpacked = f"({', '.join(names)},) = arguments" if names else "() = arguments"
        text = "\n    ".join(["def probe(arguments):", unpacked, *lines])
        exec(compile(text, "<probe>", "exec"), self.names)
        return self.names["probe"]


@dataclass(frozen=True)
class Circumstances:
    """What decides beside the arguments, when somebody begins to look for a kernel; `known` is where to keep it."""

    known: dict[tuple[Any, ...], Ready]
    options: Mapping[str, object]
    moment: tuple[Target | None, int, int, int]


@dataclass
class Ready:
    """A kernel that a call found, and under which circumstances it would find the same one again."""

    kernel: Kernel
    runner: Any
    found: Circumstances
    next_look: float = 0.0

    def is_current(self) -> bool:
        return (
            config.session_defaults() == self.found.options
            and session.moment() == self.found.moment
            and self.kernel.runner is self.runner
            and self.kernel.report is None
        )

    def launch(self, arguments: Sequence[Any], values: list[Any], index: int) -> None:
        """Launch on a GPU, with addresses in place of tensors; `arguments` are what the kernel remembers."""
        kernel = self.kernel
        now = time.monotonic()
        if now > self.next_look:
            kernel.keep()
            self.next_look = now + _LOOK_SECONDS
        kernel.remember(arguments)
        try:
            stats = self.runner.start(values, index)
        except KernelError as error:
            raise kernel.failed(error, checked=False) from error.__cause__
        kernel.launched(stats)


class Dispatch:
    """The kernels of one handle by the arguments of the calls that found them."""

    def __init__(self, params: CallParameters, *, by_value: bool) -> None:
        self._params = params
        self._by_value = by_value
        self._probe: Probe | None = None
        self._known: dict[tuple[Any, ...], Ready] = {}

    def launch(self, arguments: Sequence[Any]) -> Kernel | None:
        """Launch the kernel that an earlier call with such arguments found; None if there was none."""
        if not self._known or self._probe is None:
            return None
        try:
            probed = self._probe(arguments)
        except (AttributeError, RuntimeError, TypeError, ValueError):
            return None  # the long way says what is wrong with them
        ready = None if probed is None else self._known.get(probed[0])
        if probed is None or ready is None or not ready.is_current():
            return None
        index, values = probed[0][0], probed[1]
        given = arguments if not self._params.const_params else [arguments[i] for i in self._params.kernel_params]
        if isinstance(ready.runner, CudaKernel):
            ready.launch(given, values, index)
        else:
            ready.kernel.launch(given)
        return ready.kernel

    def circumstances(self) -> Circumstances:
        """What the long way is about to find a kernel under; another thread may change it meanwhile."""
        return Circumstances(self._known, dict(config.session_defaults()), session.moment())

    def learn(self, arguments: Sequence[Any], kernel: Kernel, found: Circumstances) -> None:
        """Remember what the long way found for these arguments."""
        if self._probe is None:
            self._probe = probe_of(self._params, arguments, by_value=self._by_value)
        if self._probe is None:
            return
        try:
            probed = self._probe(arguments)
        except (AttributeError, RuntimeError, TypeError, ValueError):
            return
        if probed is not None and probed[0][0] is not None and isinstance(kernel.runner, (CudaKernel, CpuRunner)):
            if len(found.known) >= _MOST_KNOWN:
                found.known.clear()
            found.known[probed[0]] = Ready(kernel, kernel.runner, found)

    def forget(self) -> None:
        """Take the long way again, for something else decides now."""
        self._known = {}  # not cleared: what another thread still finds goes to the old one
