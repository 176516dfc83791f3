# SPDX-License-Identifier: Apache-2.0
"""Which function emits which instruction on which target: the nearest class, then the newest target that fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from tilekit import target as targets
from tilekit.backends.context import Context
from tilekit.diag import errors
from tilekit.ir.inst import Instruction
from tilekit.target import Target

I = TypeVar("I", bound=Instruction)  # noqa: E741 - an instruction
Emitter = Callable[[I, Context], None]

_emitters: dict[type[Instruction], list[tuple[Target, Emitter[Instruction]]]] = {}


def emitter(inst: type[I], *, target: str = "sm_80") -> Callable[[Emitter[I]], Emitter[I]]:
    """Register a function as the emitter of an instruction class on `target` and everything that supports it."""

    def register(function: Emitter[I]) -> Emitter[I]:
        found = _emitters.setdefault(inst, [])
        found.append((targets.parse(target), cast("Emitter[Instruction]", function)))
        return function

    return register


def find(inst: Instruction, target: Target) -> Emitter[Instruction]:
    """The emitter for an instruction, or an error that says which targets have one."""
    for cls in type(inst).__mro__:
        known = _emitters.get(cast("type[Instruction]", cls), [])
        fitting = [(at, function) for at, function in known if target.supports(at)]
        if fitting:
            return max(fitting, key=lambda pair: pair[0].capability)[1]
        if known:
            newest = ", ".join(sorted(at.name for at, _ in known))
            raise errors.CodegenError(
                "TK401",
                f"{inst.opcode} has no code for {target.name}",
                at=inst.span,
                help=f"it needs {newest} or newer",
            )
    raise errors.CodegenError("TK401", f"{inst.opcode} has no code on any target", at=inst.span)


def emitted() -> frozenset[type[Instruction]]:
    """Every instruction class that has an emitter."""
    return frozenset(_emitters)
