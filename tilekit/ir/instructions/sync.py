# SPDX-License-Identifier: Apache-2.0
"""Barriers among the threads of a block."""

from __future__ import annotations

from tilekit.ir.inst import Instruction
from tilekit.ir.machine import Machine, Steps
from tilekit.ir.surface import Surface


class SyncThreadsInst(Instruction, opcode="sync"):
    """Every thread of the group waits for the others; what they wrote before is visible after."""

    @staticmethod
    def create() -> SyncThreadsInst:
        return SyncThreadsInst(None)

    def execute(self, machine: Machine) -> Steps:
        yield from machine.barrier()


class SyncMethods(Surface):
    """The barriers of the kernel language."""

    def sync(self) -> None:
        """Wait for every thread of the group (PTX bar.sync): memory written before is visible after."""
        self._emit(SyncThreadsInst.create())
