# SPDX-License-Identifier: Apache-2.0
"""Who wants to know what is compiled and launched: a notebook shows it, everybody else does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tilekit.jit.kernel import Kernel


class Observer(Protocol):
    """Told about each compile and launch, in the thread that does it."""

    def compiling(self, script: str, stage: str) -> None: ...

    def compiled(self, kernel: Kernel) -> None: ...

    def launched(self, kernel: Kernel) -> None: ...


_observers: list[Observer] = []


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Within the block, `observer` is told."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def observers() -> tuple[Observer, ...]:
    return tuple(_observers)
