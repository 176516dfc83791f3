# SPDX-License-Identifier: Apache-2.0
"""Register tiles that are used where nobody has written them, which no machine sees: registers always hold something.

The verifier finds a tile that no path has written. One that is written in parts is followed by the evaluator, which
knows of each element whether it was ever given a value. It runs a few blocks, for a short time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tilekit.diag.errors import KernelError, TilekitError
from tilekit.diag.span import Span
from tilekit.ir import evaluator
from tilekit.ir.evaluator.evaluate import BlockIndex, grid
from tilekit.ir.evaluator.group import Group
from tilekit.ir.evaluator.scheduler import Barrier
from tilekit.ir.evaluator.state import Launch
from tilekit.ir.instructions.register import AllocateRegisterInst
from tilekit.ir.instructions.transform import SliceAssignInst
from tilekit.ir.prog import Program
from tilekit.ir.tools.instruction_collector import collect
from tilekit.jit import held
from tilekit.jit.evaluated import as_memory
from tilekit.lowir.scalar import Var
from tilekit.runtime.launch_cpu import choose_blocks

BLOCKS = 8
BUDGET_S = 0.5
LARGEST_BYTES = 1 << 26


def fills_in_parts(program: Program) -> bool:
    """Whether a tile begins without a value and parts of a tile are written: else the verifier knows it all."""
    func = program.function
    is_empty = any(not inst.gives_value for inst in collect(func, AllocateRegisterInst))
    return is_empty and bool(collect(func, SliceAssignInst))


def refuse_unwritten_elements(program: Program, arguments: Sequence[Any], *, waits: bool, seed: int) -> None:
    """Raise a KernelError where an element is used that nobody has written, as far as a short look at blocks tells.

    The arguments are left as they are. Blocks that wait for each other, `waits`, are run with all of them.
    """
    if held.nbytes(arguments) > LARGEST_BYTES:
        return
    copied = held.copies(arguments)  # kept until the end: the evaluator knows addresses alone
    memory = [as_memory(argument) for argument in copied]
    end = time.monotonic() + BUDGET_S

    class Hurried(Group):
        """A thread group that gives up when the time is over."""

        def step(self, span: Span | None) -> None:
            super().step(span)
            if time.monotonic() > end:
                raise TimeoutError

    def group(launch: Launch, block: BlockIndex, scalars: Mapping[Var, Any], barrier: Barrier) -> Group:
        return Hurried(launch, block, scalars, barrier)

    extents = grid(program, memory)
    if 0 in extents:
        return
    chosen = choose_blocks(extents, BLOCKS, seed)
    blocks = "all" if waits else [evaluator.block_index(number, extents) for number in chosen]
    try:
        evaluator.run(program, memory, blocks=blocks, seed=seed, group=group)
    except KernelError as error:
        if error.kind == "uninitialized":
            raise _told(error) from None
    except (TimeoutError, TilekitError):
        pass  # what else goes wrong is the simulator's to tell, which runs the code itself


def _told(error: KernelError) -> KernelError:
    """The evaluator's error with the facts that one of the simulator has."""
    hint = "write every element first, or give register_tensor an init"
    facts = {"text": error.message, "line": None, "byte_offset": None, "is_shared": False, "thread": None}
    data = {"tensor": None, "index": None, **error.data, **facts, "first": None, "second": None, "hint": hint}
    return KernelError(
        error.code,
        error.message,
        at=error.diagnostic.at,
        notes=error.diagnostic.notes,
        help=hint,
        data={**data, "notes": tuple((text, None) for text, _ in error.diagnostic.notes)},
    )
