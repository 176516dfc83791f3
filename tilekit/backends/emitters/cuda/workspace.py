# SPDX-License-Identifier: Apache-2.0
"""Workspaces in global memory."""

from __future__ import annotations

from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.instructions.workspace import AllocateGlobalInst


@emitter(AllocateGlobalInst)
def global_tensor(inst: AllocateGlobalInst, ctx: Context) -> None:
    """The launch lends it: it is a parameter of the kernel."""
