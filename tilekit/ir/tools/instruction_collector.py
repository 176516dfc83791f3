# SPDX-License-Identifier: Apache-2.0
"""Collecting nodes of the IR in program order."""

from __future__ import annotations

from typing import Any, TypeVar

from tilekit.ir.func import Function
from tilekit.ir.functors.functor import IRVisitor
from tilekit.ir.inst import Instruction

T = TypeVar("T")


class _Collector(IRVisitor):
    def __init__(self, wanted: type[Any] | tuple[type[Any], ...]) -> None:
        super().__init__()
        self.wanted = wanted
        self.found: list[Any] = []

    def _dispatch(self, node: Any) -> Any:
        if isinstance(node, self.wanted):
            self.found.append(node)
        return super()._dispatch(node)


def collect(node: Any, wanted: type[T] | tuple[type[T], ...]) -> list[T]:
    """Every node of these classes in `node`, each once, in program order; does not look inside scalar expressions."""
    collector = _Collector(wanted)
    collector.visit(node)
    return collector.found


def collect_instructions(func: Function) -> list[Instruction]:
    """The instructions of a function in program order."""
    return collect(func, Instruction)
