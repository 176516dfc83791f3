# SPDX-License-Identifier: Apache-2.0
"""One step of a traced compile, run again by itself on what it was given: the shortest way to what ended a process."""

from __future__ import annotations

from tilekit import target
from tilekit.backends import codegen
from tilekit.diag import TilekitError
from tilekit.ir.prog import Program
from tilekit.ir.text import parser
from tilekit.ir.tools.verifier import verify
from tilekit.lowir import passes, printer
from tilekit.lowir.nodes import IRModule
from tilekit.tools.lower_trace.journal import Compile, Run, Step
from tilekit.transforms import get_default_passes
from tilekit.transforms.recorder import text_of


class RerunError(TilekitError):
    """A step cannot be run by itself from what the journal has of it."""


def rerun(run: Run, compile: Compile, step: Step) -> str:
    """The text of what the step makes now; what it raises is raised.

    A program of the tile IR is read from the journal. Hidet IR cannot be read, so it is lowered again from the tile IR
    that it came from, and the Hidet passes before this one run, too.

    Raises
    ------
    RerunError
        The step is no pass of tilekit, or the journal does not have what it needs.
    """
    match step.base_phase:
        case "lower":
            return text_of(_lowered(run, compile))
        case "hidet":
            return text_of(_optimized(run, compile, step))
        case "codegen":
            return printer.print_module(_optimized(run, compile, step)).text
        case _ if step.languages == ("tile", "tile"):
            return str(_tile_pass(run, step))
        case _:
            raise _refused(step, "a toolchain ran it")


def _tile_pass(run: Run, step: Step) -> Program:
    if "custom" in step.notes:
        raise _refused(step, "it is a pass of one's own, which only the script has")
    found = next((each for each in get_default_passes() if each.name == step.name), None)
    if found is not None:
        return found.process_program(_program(run, step))
    if step.name != "verify":
        raise _refused(step, "tilekit has no pass of this name")
    program = _program(run, step)
    verify(program)
    return program


def _lowered(run: Run, compile: Compile) -> IRModule:
    lower = next((step for step in compile.steps if step.base_phase == "lower"), None)
    if lower is None:
        raise RerunError("TK433", f"{compile.kernel} was not lowered")
    return codegen.generate_ir_module(_program(run, lower), target.parse(compile.target)).module


def _optimized(run: Run, compile: Compile, step: Step) -> IRModule:
    """The module after the Hidet passes up to this step."""
    module = _lowered(run, compile)
    by_name = {each.name: each for each in passes.PASSES}
    for earlier in compile.steps[: step.seq + 1]:
        if earlier.base_phase != "hidet":
            continue
        if earlier.name not in by_name:
            raise _refused(earlier, "tilekit has no pass of this name")
        module = by_name[earlier.name](module)
    return module


def _program(run: Run, step: Step) -> Program:
    if step.before is None:
        raise _refused(step, "what it was given could not be printed")
    return parser.parse_program(run.text(step.before))


def _refused(step: Step, why: str) -> RerunError:
    return RerunError("TK433", f"{step.index} {step.title} cannot be run by itself: {why}")
