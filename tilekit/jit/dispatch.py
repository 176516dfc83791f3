# SPDX-License-Identifier: Apache-2.0
"""The short way of a call: arguments like those of an earlier call go straight to the kernel that it found.

A call condenses its arguments to what they could change: the values of compile-time constants, what integers and
addresses are divisible by, types, and where the tensors live; of a kernel with several schedules also the values of
integers. A `probe`, written once for the signature of a kernel, does that in about as many Python instructions as there
are facts. Whatever it does not know at a glance (a NumPy array, a keyword, a tensor with gaps) takes the long way,
which checks everything and has words for what is wrong. A call with the very same tensors has a way that is shorter
still: see `repeated`.
"""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tilekit import config
from tilekit.diag.errors import KernelError
from tilekit.dtypes import DataType, PointerType
from tilekit.jit import held, repeated, session
from tilekit.jit.arguments import BUCKETS
from tilekit.jit.repeated import Repeated
from tilekit.lang.params import CallParameters, ParamType, Passing, passing
from tilekit.runtime.compiled import CpuRunner
from tilekit.runtime.launch import LAUNCHED
from tilekit.runtime.launch_cuda import CudaKernel

if TYPE_CHECKING:
    from tilekit.jit.kernel import Kernel
    from tilekit.target import Target

# what decides; the arguments as a GPU takes them, numbers and addresses; and of the call and its objects, for
# `repeated`: which they are, the tensors themselves, and what a kernel remembers
Probed: TypeAlias = "tuple[tuple[Any, ...], list[Any], tuple[Any, ...], tuple[weakref.ref[Any], ...], tuple[Any, ...]]"
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
    names = {"Tensor": torch.Tensor, "Parameter": torch.nn.Parameter, "ref": weakref.ref, "hold": held.hold_view}
    body = _Body(names, by_value)
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
    identity: list[str] = field(default_factory=list[str])
    held: list[str] = field(default_factory=list[str])
    pointers: list[str] = field(default_factory=list[str])

    def add(self, name: str, kind: ParamType, argument: Any) -> None:
        self.identity.append(repeated.identity(name, kind))
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
                self.held.append(name)
            case Passing.POINTER:
                assert isinstance(kind, PointerType)
                self._pointer(name, kind, argument)
                self.values.append(f"p{name}")
                self.held.append(f"r{name} if (base := {name}._base) is None else hold({name}, base)")

    def require(self, condition: str) -> None:
        """Only arguments for which this holds are taken the short way."""
        self.lines.append(f"if not ({condition}): return None")

    def _scalar(self, name: str, kind: DataType) -> None:
        if kind.is_boolean():
            self.require(f"type({name}) is bool")
        elif kind.is_integer():
            self.require(f"type({name}) is int and {kind.min_value} <= {name} <= {kind.max_value}")
            self.key.append(name if self.by_value else _divisor(name))
        else:
            self.require(f"type({name}) is float and {float(kind.min_value)} <= {name} <= {float(kind.max_value)}")

    def _pointer(self, name: str, kind: PointerType, argument: Any) -> None:
        self.require(f"type({name}) is Tensor or type({name}) is Parameter")
        self.require(f"{name}.is_contiguous() and not {name}.is_neg()")
        self.lines.append(f"p{name} = {name}.data_ptr(); r{name} = ref({name})")
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
            lines.append("every = " + " | ".join(f"p{name}" for name in self.pointers))
            each = ", ".join(_divisor(f"p{name}") for name in self.pointers)
            key.append(f"not every & {BUCKETS[0] - 1} or ({each},)")
        key.insert(0, "device" if self.pointers else "None")
        refs = [f"r{name}" for name in self.pointers]
        parts = [f"({', '.join(part)},)" if part else "()" for part in (key, self.identity, refs, self.held)]
        lines.append(f"return {parts[0]}, [{', '.join(self.values)}], {', '.join(parts[1:])}")
        unpacked = f"({', '.join(names)},) = arguments" if names else "() = arguments"
        text = "\n    ".join(["def probe(arguments):", unpacked, *lines])
        exec(compile(text, "<probe>", "exec"), self.names)
        return self.names["probe"]


def _divisor(name: str) -> str:
    """The expression for the largest bucket that divides an integer."""
    buckets = " or ".join(f"not {name} & {bucket - 1} and {bucket}" for bucket in BUCKETS if bucket > 1)
    return f"({buckets} or 1)"


@dataclass(frozen=True)
class Known:
    """What the calls of a handle have found, until something else decides for it."""

    ready: dict[tuple[Any, ...], Ready]
    repeated: Repeated


@dataclass(frozen=True)
class Circumstances:
    """What decides beside the arguments, when somebody begins to look for a kernel; `known` is where to keep it."""

    known: Known
    era: object
    options: Mapping[str, object]
    moment: tuple[Target | None, int, int, int]


@dataclass
class Ready:
    """A kernel that a call found, and under which circumstances it would find the same one again."""

    kernel: Kernel
    runner: Any
    found: Circumstances
    # the last one in which it was current
    era: object
    next_look: float = 0.0

    def is_current(self) -> bool:
        """Look at everything that could have changed, for something did."""
        now = config.era[0]
        if (
            config.session_defaults() == self.found.options
            and session.moment() == self.found.moment
            and self.kernel.runner is self.runner
            and self.kernel.report is None
        ):
            self.era = now
            return True
        return False

    def look(self, now: float) -> None:
        """Look whether someone deleted the kernel from the cache."""
        self.kernel.keep()
        self.next_look = now + _LOOK_SECONDS


class Dispatch:
    """The kernels of one handle by the arguments of the calls that found them."""

    def __init__(self, params: CallParameters, *, by_value: bool) -> None:
        self._params = params
        self._by_value = by_value
        self._probe: Probe | None = None
        self.forget()

    def forget(self) -> None:
        """Take the long way again, for something else decides now."""
        self.known = Known({}, Repeated(self._params))  # not cleared: what a thread still finds goes to the old one

    def launch(self, arguments: Sequence[Any]) -> Kernel | None:
        """Launch the kernel that an earlier call with such arguments found; None if there was none."""
        if self._probe is None:
            return None
        try:
            probed = self._probe(arguments)
        except (AttributeError, RuntimeError, TypeError, ValueError):
            return None  # the long way says what is wrong with them
        if probed is None:
            return None
        key, values, identity, refs, remembered = probed
        ready = self.known.ready.get(key)
        if ready is None or (ready.era is not config.era[0] and not ready.is_current()):
            return None
        kernel, runner = ready.kernel, ready.runner
        if not isinstance(runner, CudaKernel):
            kernel.launch([arguments[i] for i in self._params.kernel_params])
            return kernel
        now = time.monotonic()
        if now > ready.next_look:
            ready.look(now)
        kernel.history.arguments = remembered
        try:
            stats = runner.start(values, key[0])
        except KernelError as error:
            raise kernel.failed(error, checked=False) from error.__cause__
        kernel.launched(stats)
        if stats is LAUNCHED:
            ready.found.known.repeated.saw(ready, values, identity, refs, remembered, key[0])
        return kernel

    def circumstances(self) -> Circumstances:
        """What the long way is about to find a kernel under; another thread may change it meanwhile."""
        era = config.era[0]
        return Circumstances(self.known, era, dict(config.session_defaults()), session.moment())

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
            ready = found.known.ready
            if len(ready) >= _MOST_KNOWN:
                ready.clear()
            ready[probed[0]] = Ready(kernel, kernel.runner, found, found.era)
