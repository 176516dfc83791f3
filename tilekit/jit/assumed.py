# SPDX-License-Identifier: Apache-2.0
"""Whether what a kernel assumes of its parameters holds for the arguments of a launch on the CPU."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilekit.diag.errors import KernelError

if TYPE_CHECKING:
    from tilekit.ir.prog import Program


def assumes(program: Program) -> bool:
    """Whether a program says what its caller guarantees."""
    collect = importlib.import_module("tilekit.ir.tools.instruction_collector").collect
    return bool(collect(program.function, importlib.import_module("tilekit.ir.instructions.assume").AssumeInst))


def refuse_what_is_false(program: Program, arguments: Sequence[Any]) -> None:
    """Raise the error of the first assumption that these arguments break."""
    if len(arguments) != len(program.function.params):
        return  # the launch has words for it
    broken = importlib.import_module("tilekit.ir.tools.assumptions").first_false(program.function, arguments)
    if broken is not None:
        raise KernelError(
            "TK706",
            "the kernel assumes what does not hold for these arguments",
            at=broken.span,
            help="on a GPU such a call has no meaning: pass what the kernel assumes, or take the assumption out",
            data={"kind": "false_assumption"},
        )
