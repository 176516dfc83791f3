# SPDX-License-Identifier: Apache-2.0
"""The shortest way of a call: the same numbers and the very same tensor objects as in a call before, on a GPU.

What such a call launches is known down to the arguments of `cuLaunchKernelEx`: nothing is packed, and no lock is taken.
An entry is found by the values of numbers and the identities of tensors, and the latest one by comparing these. It goes
when one of its tensors dies, so that an identity is never that of another tensor. A tensor that is still itself may
have got other memory or gaps, so its address is compared and gaps are looked for. Nobody can tell at this price that
`data` was set to the same memory seen as another dtype.

Calls with ever new tensors leave no entries: the first time, only who was there is noted.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from tilekit import config
from tilekit.dtypes import DataType, PointerType
from tilekit.jit import observer
from tilekit.lang.params import CallParameters, ParamType
from tilekit.runtime import launch_cuda
from tilekit.runtime.launch import LAUNCHED
from tilekit.runtime.launch_cuda import Context, Packed

if TYPE_CHECKING:
    from tilekit.jit.dispatch import Ready
    from tilekit.jit.kernel import Kernel

Again: TypeAlias = "Callable[[Sequence[Any]], Kernel | None]"

# how many calls of one handle are kept, and how many noted
_MOST = 1024


def identity(name: str, kind: ParamType) -> str:
    """The expression for what tells an argument of the right type from others, by value or as an object."""
    if isinstance(kind, PointerType):
        return f"id({name})"
    # as numbers -0.0 is 0.0
    return f"({name} or {name}.hex())" if _python_type(kind) is float else name


def _python_type(kind: type | DataType) -> type:
    if isinstance(kind, type):
        return kind
    return bool if kind.is_boolean() else int if kind.is_integer() else float


class Repeated:
    """The repeated calls of one handle: `again` launches one, or gives None where another way must be taken."""

    def __init__(self, params: CallParameters) -> None:
        self.again: Again = _never
        self._params = params
        self._pointers = [isinstance(params.param_types[i], PointerType) for i in params.kernel_params]
        self._entries: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._latest: list[tuple[Any, ...]] = []
        self._noted: dict[tuple[Any, ...], tuple[weakref.ref[Any], ...]] = {}

    def saw(
        self,
        ready: Ready,
        values: Sequence[Any],
        key: tuple[Any, ...],
        refs: tuple[weakref.ref[Any], ...],
        held: tuple[Any, ...],
        index: int,
    ) -> None:
        """Note a launch that went well, and keep it the second time; `held` is what the kernel remembers of it."""
        # with the same key they differ only if a tensor that was noted is dead, and then not as tensors do
        if self._noted.get(key) != refs:
            _put(self._noted, key, refs)
            return
        self._noted.pop(key, None)
        packed: Packed | None = ready.runner.pack(values, index)
        if packed is None:
            return
        entries = self._entries
        own = iter([weakref.ref(ref(), lambda _: entries.pop(key, None)) for ref in refs])
        kinds = zip(key, self._params.param_types, strict=True)
        who = [next(own) if isinstance(kind, PointerType) else value for value, kind in kinds]
        addresses = tuple(value for value, is_pointer in zip(values, self._pointers, strict=True) if is_pointer)
        stream = launch_cuda.current_stream(index)
        kernel = ready.kernel
        known = *who, packed, ready, kernel, kernel.history, addresses, index, held, packed.there, packed.kernel
        entry = (*known, stream, packed.on(stream))
        _put(entries, key, entry)
        self._latest[:] = [entry]
        if self.again is _never:
            self.again = _written(self._params, entries, self._latest, packed.there)


def _put(places: dict[tuple[Any, ...], Any], key: tuple[Any, ...], value: Any) -> None:
    if len(places) >= _MOST:
        places.clear()
    places[key] = value


def _never(_: Sequence[Any]) -> None:
    """Nothing was repeated yet."""


def _written(
    params: CallParameters,
    entries: dict[tuple[Any, ...], tuple[Any, ...]],
    latest: list[tuple[Any, ...]],
    there: Context,
) -> Again:
    """`again` for this signature."""
    named = {f"a{i}": kind for i, kind in enumerate(params.param_types)}
    pointers = [name for name, kind in named.items() if isinstance(kind, PointerType)]
    plain = [(name, kind) for name, kind in named.items() if not isinstance(kind, PointerType)]
    types = [f"type({name}) is not {_python_type(kind).__name__}" for name, kind in plain]
    key = ", ".join(identity(name, kind) for name, kind in named.items())
    same = [f"w{name}() is {name}" for name in pointers]
    text = _TEXT.format(
        who=", ".join(f"w{name}" for name in named),
        is_latest=" and ".join([*(f"w{name} == {identity(name, kind)}" for name, kind in plain), *same]),
        arguments=", ".join(named),
        is_strange=" or ".join(types) or "False",
        key=key,
        addresses=", ".join(f"{name}.data_ptr()" for name in pointers),
        is_contiguous=" and ".join(f"{name}.is_contiguous()" for name in pointers),
        is_elsewhere="" if there.is_alone else " or not there.is_current()",
    )
    names: dict[str, Any] = {
        "entries": entries,
        "latest": latest,
        "get": entries.get,
        "era": config.era,
        "stream_of": launch_cuda.stream_getter(),
        "monotonic": time.monotonic,
        "observers": observer.present,
        "launched": LAUNCHED,
        "launch": there.api.cuLaunchKernelEx,
    }
    exec(compile(text, "<again>", "exec"), names)
    return names["again"]


# A launch that the driver refuses did nothing: another way makes it again, in the right context, or has words for it.
_TEXT = """
def again(arguments):
    try:
        ({arguments},) = arguments
        if {is_strange}:
            return None
        found = latest[0]
        {who}, packed, ready, kernel, history, addresses, index, held, there, name, stream, call = found
        if not ({is_latest}):
            found = get(({key},))
            if found is None:
                return None
            latest[0] = found
            {who}, packed, ready, kernel, history, addresses, index, held, there, name, stream, call = found
        if ready.era is not era[0] or ({addresses},) != addresses or not ({is_contiguous}){is_elsewhere}:
            return None
    except (AttributeError, RuntimeError, ValueError):
        return None
    now = stream_of(index)
    if now != stream:
        call = packed.on(now)
        entries[{key},] = latest[0] = (*found[:-2], now, call)
    now = monotonic()
    if now > ready.next_look:
        ready.look(now)
    if launch(*call):
        return None
    there.last_kernel = name
    history.arguments = held
    history.last_run = launched
    history.printed = ""
    history.launches += 1
    if observers:
        for watcher in tuple(observers):
            watcher.launched(kernel)
    return kernel
"""
