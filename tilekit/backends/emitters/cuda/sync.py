# SPDX-License-Identifier: Apache-2.0
"""Barriers."""

from __future__ import annotations

from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.instructions.sync import SyncThreadsInst
from tilekit.lowir import prims


@emitter(SyncThreadsInst, barrier=True)
def sync(inst: SyncThreadsInst, ctx: Context) -> None:
    ctx.builder.evaluate(prims.syncthreads())
