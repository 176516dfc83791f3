# SPDX-License-Identifier: Apache-2.0
"""Semaphores; their functions make the whole block wait."""

from __future__ import annotations

from tilekit.backends.context import Context
from tilekit.backends.registry import emitter
from tilekit.ir.instructions.semaphore import LockSemaphoreInst, ReleaseSemaphoreInst
from tilekit.lowir import prims


@emitter(LockSemaphoreInst, barrier=True)
def lock_semaphore(inst: LockSemaphoreInst, ctx: Context) -> None:
    ctx.builder.evaluate(prims.lock_semaphore(inst.ptr, inst.value))


@emitter(ReleaseSemaphoreInst, barrier=True)
def release_semaphore(inst: ReleaseSemaphoreInst, ctx: Context) -> None:
    ctx.builder.evaluate(prims.release_semaphore(inst.ptr, inst.value))
