# SPDX-License-Identifier: Apache-2.0
"""Whether what a kernel assumes of its parameters holds for the arguments of a launch on the CPU.

What can be said in whole numbers is kept as text beside the program, so a launch needs no compiler to check it.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilekit.diag.errors import KernelError, TilekitError
from tilekit.diag.span import Span
from tilekit.runtime import grid
from tilekit.runtime.manifest import Manifest

if TYPE_CHECKING:
    from tilekit.ir.prog import Program
    from tilekit.jit.specialized import Specialized


@dataclass(frozen=True)
class Assumption:
    """A condition over the integer parameters, and the line of the program's text that it stands in."""

    condition: str
    line: int


def of_program(program: Program) -> tuple[Assumption, ...] | None:
    """What every run of a program assumes of its parameters; None if some of it needs more than whole numbers."""
    find = importlib.import_module("tilekit.ir.tools.assumptions").conditions
    found: list[tuple[str, Span | None]] | None = find(program.function)
    if not found:
        return None if found is None else ()
    spans = program.line_spans()
    return tuple(Assumption(condition, spans.index(span)) for condition, span in found)


def refuse_what_is_false(specialized: Specialized, manifest: Manifest, arguments: Sequence[Any]) -> None:
    """Raise the error of the first assumption that these arguments break."""
    if specialized.assumptions == () or len(arguments) != len(manifest.params):
        return  # the launch has words for a wrong number of them
    if specialized.assumptions is None:
        find = importlib.import_module("tilekit.ir.tools.assumptions").first_false
        inst = find(specialized.program.function, arguments)
        broken = None if inst is None else (inst.span,)
    else:
        broken = _first_false(specialized, manifest, arguments)
    if broken is not None:
        raise KernelError(
            "TK706",
            "the kernel assumes what does not hold for these arguments",
            at=broken[0],
            help="on a GPU such a call has no meaning: pass what the kernel assumes, or take the assumption out",
            data={"kind": "false_assumption"},
        )


def _first_false(specialized: Specialized, manifest: Manifest, arguments: Sequence[Any]) -> tuple[Span | None] | None:
    """The place of the first assumption that does not hold; None where all do, or no block comes to one."""
    try:
        if min(manifest.extents(arguments)) <= 0:
            return None
    except TilekitError:
        return None  # the launch says what is wrong with the grid
    assumptions = specialized.assumptions or ()
    holds = _compiled(
        tuple(each.condition for each in assumptions), tuple(manifest.params[i].name for i in manifest.integers)
    )(*[arguments[i] for i in manifest.integers])
    broken = next((each for each, is_true in zip(assumptions, holds, strict=True) if not is_true), None)
    return None if broken is None else (specialized.line_spans[broken.line],)


@functools.cache
def _compiled(conditions: tuple[str, ...], integers: tuple[str, ...]) -> Callable[..., tuple[Any, ...]]:
    return grid.compile_counts(conditions, integers)
