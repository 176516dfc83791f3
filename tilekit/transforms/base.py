# SPDX-License-Identifier: Apache-2.0
"""A pass over the tile IR: a function from programs to programs, watched at one door.

A pass keeps nothing between programs; its fields, if it has any, are its options. One that changes nothing returns the
object that it was given, so whoever watches sees at no cost which passes mattered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tilekit.diag import VerificationError
from tilekit.events import BY_HAND, EDIT_OF, Null, Sink, Stage, step
from tilekit.ir.func import Function
from tilekit.ir.prog import Program
from tilekit.ir.tools.verifier import verify
from tilekit.lowir import scalar

SILENT: Sink = Null()


class Pass:
    """Override `process_function`; `name` is the class's name in words."""

    @property
    def name(self) -> str:
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__.removesuffix("Pass")).lower()

    def process_function(self, func: Function) -> Function:
        """The function after this pass."""
        return func

    def process_program(self, prog: Program, sink: Sink = SILENT) -> Program:
        """The program after this pass; `sink` takes notes of what the pass found out."""
        for func in prog:
            made = self.process_function(func)
            if not isinstance(made, Function):  # pyright: ignore[reportUnnecessaryIsInstance]  # a person wrote it
                raise TypeError(f"process_function returned {made!r}, not a Function")
            prog = prog.with_function(made)
        return prog

    def __call__(self, prog: Program, sink: Sink = BY_HAND, *, check: bool = False) -> Program:
        """Run the pass, tell `sink`, and with `check` verify what came out."""
        with step(sink, Stage.TILE, self.name, prog) as underway:
            after = self.process_program(prog, sink)
            underway.made(after)
            if check and after is not prog:
                verify(after)
        return after


def run_passes(prog: Program, passes: Sequence[Pass], sink: Sink = BY_HAND, *, check: bool = False) -> Program:
    """The program after all passes, one after the other; `sink` may answer with an edited program after each."""
    for each in passes:
        prog = each(prog, sink, check=check)
        edited = sink.tile(each.name, prog)
        if isinstance(edited, Program):
            with step(sink, Stage.TILE, f"{EDIT_OF}{each.name}", prog) as underway:
                underway.made(edited)
                verify(edited)
                verify_call(prog, edited)
            prog = edited
    return prog


def verify_call(prog: Program, made: Program) -> None:
    """Whether a program that somebody made of another can be called as that one.

    Raises
    ------
    VerificationError
        It has another number of functions, or parameters of other types.
    """
    if [_types(func) for func in made] != [_types(func) for func in prog]:
        said = [", ".join(f"{func.name}({', '.join(_types(func))})" for func in each) for each in (made, prog)]
        raise VerificationError("TK212", f"{said[0] or 'nothing'} cannot be called in place of {said[1]}")


def _types(func: Function) -> list[str]:
    return [str(scalar.dtype_of(param)) for param in func.params]
