# SPDX-License-Identifier: Apache-2.0
"""Which function emits which instruction on which target: the nearest class, then the newest target that fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from tilekit import target as targets
from tilekit.backends.context import Context
from tilekit.diag import errors
from tilekit.ir.inst import Instruction
from tilekit.target import Target

I = TypeVar("I", bound=Instruction)  # noqa: E741 - an instruction
Emit = Callable[[I, Context], None]


@dataclass(frozen=True)
class Emitter:
    """The code of an instruction class from a target on, and what it needs beside registers."""

    target: Target
    emit: Emit[Any]
    # bytes of shared memory that the instruction writes first and reads after a barrier of its own
    workspace: Callable[[Any], int]
    # whether every thread of the block waits for all others at its end
    barrier: bool


_emitters: dict[type[Instruction], list[Emitter]] = {}


def _no_workspace(inst: Instruction) -> int:
    return 0


def emitter(
    inst: type[I],
    *,
    target: str = "sm_80",
    workspace: Callable[[I], int] = _no_workspace,
    barrier: bool = False,
) -> Callable[[Emit[I]], Emit[I]]:
    """Register a function as the emitter of an instruction class on `target` and everything that supports it.

    Parameters
    ----------
    workspace
        The bytes of shared memory that the code of an instruction needs for itself: it finds them at `ctx.workspace`,
        writes them, waits at a barrier of its own, and reads them.
    barrier
        Whether the code ends with a barrier.
    """

    def register(function: Emit[I]) -> Emit[I]:
        found = Emitter(targets.parse(target), function, workspace, barrier)
        _emitters.setdefault(inst, []).append(found)
        return function

    return register


def find(inst: Instruction, target: Target) -> Emitter:
    """The emitter for an instruction, or an error that says which targets have one."""
    for cls in type(inst).__mro__:
        known = _emitters.get(cast("type[Instruction]", cls), [])
        fitting = [found for found in known if target.supports(found.target)]
        if fitting:
            return max(fitting, key=lambda found: found.target.capability)
        if known:
            newest = ", ".join(sorted(found.target.name for found in known))
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


def claimed(cls: type[Instruction]) -> list[Target]:
    """The targets that the emitters of an instruction class are written for, oldest first."""
    bases = cast("tuple[type[Instruction], ...]", cls.__mro__)
    found = {emitter.target for base in bases for emitter in _emitters.get(base, ())}
    return sorted(found, key=lambda target: (target.capability, target.name))
