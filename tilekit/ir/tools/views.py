# SPDX-License-Identifier: Apache-2.0
"""Facts about the global views of a program."""

from __future__ import annotations

from tilekit.ir.instructions.memory import GlobalViewInst
from tilekit.ir.prog import Program
from tilekit.ir.tensor import GlobalLayout
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lowir import scalar


def strided_pointers(prog: Program) -> list[str]:
    """The pointer parameters that some view gives strides of its own, by name."""
    found: list[str] = []
    for view in collect(prog, GlobalViewInst):
        layout = view.view.layout
        plain = GlobalLayout.row_major(layout.shape)
        if not all(map(scalar.structurally_equal, layout.strides, plain.strides)):
            found.extend(scalar.name_hint(v) for v in scalar.free_vars(view.ptr))
    return found
