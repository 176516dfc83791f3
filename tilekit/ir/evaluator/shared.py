# SPDX-License-Identifier: Apache-2.0
"""Shared memory as a kernel sees it, without layouts: each tensor is an array, a view of it a choice of its elements.

A copy that was started lands at the wait that covers it, as late as the hardware may let it; until then its elements
have no value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilekit.ir.evaluator.memory import Elements, Memory, Window
from tilekit.ir.machine import Array, Mask, Value
from tilekit.ir.tensor import SharedTensor

# what there is left to do of a copy
Landing: TypeAlias = Callable[[], None]


@dataclass(eq=False)
class Buffer:
    """The memory of one tensor, from its allocation until it is freed."""

    tensor: SharedTensor
    window: Window
    elements: Elements
    on_its_way: Mask  # by element: a copy into it has not been waited for
    is_free: bool = False

    @staticmethod
    def of(tensor: SharedTensor, name: str) -> Buffer:
        memory = Memory.empty(tensor.nbytes)
        window = Window(name, memory.buffer, memory.written)
        elements = window.elements(window.address, tensor.dtype)
        return Buffer(tensor, window, elements, np.zeros(tensor.size, np.bool_))


@dataclass(frozen=True, eq=False)
class View:
    """Elements of a buffer, by their numbers in it."""

    buffer: Buffer
    where: NDArray[np.int64]

    def text(self) -> str:
        """The part of the buffer that it shows, as an index says it: `s[2]`, `s[0:16, 3]`."""
        shape = self.buffer.tensor.shape
        if not self.where.size:
            return self.buffer.window.name
        parts = [
            _range(digits, extent) for digits, extent in zip(np.unravel_index(self.where, shape), shape, strict=True)
        ]
        while parts and parts[-1] == ":":
            parts.pop()
        return f"{self.buffer.window.name}[{', '.join(parts)}]" if parts else self.buffer.window.name

    def load(self) -> Value:
        data, defined = self.buffer.elements.load(self.where)
        return Value(data, defined & ~self.buffer.on_its_way[self.where])

    def store(self, data: Array, defined: Mask) -> None:
        elements = self.buffer.elements
        elements.store(self.where, data)
        assert elements.written is not None
        elements.written[self.where] = defined[..., np.newaxis]


def _range(digits: NDArray[np.int64], extent: int) -> str:
    """The indices of one dimension, from the first to the last one."""
    first, last = int(digits.min()), int(digits.max())
    if first == last:
        return str(first)
    return ":" if last - first == extent - 1 else f"{first}:{last + 1}"


@dataclass
class Copies:
    """The copies that a thread group has started and not waited for."""

    started: list[Landing] = field(default_factory=list[Landing])
    groups: list[list[Landing]] = field(default_factory=list[list[Landing]])

    def commit(self) -> None:
        self.groups.append(self.started)
        self.started = []

    def wait(self, pending: int | None) -> None:
        """Finish every group but the `pending` youngest; None: every copy, in a group or not."""
        if pending is None:
            self.commit()
        done = len(self.groups) - (pending or 0)
        for group in self.groups[: max(done, 0)]:
            for land in group:
                land()
        del self.groups[: max(done, 0)]
