# SPDX-License-Identifier: Apache-2.0
"""What a program means, on NumPy arrays: the oracle that layouts, emitters and machines are compared with."""

from tilekit.ir.evaluator.evaluate import block_index, grid, run
from tilekit.ir.evaluator.group import Group
from tilekit.ir.evaluator.memory import Memory

__all__ = ["Group", "Memory", "block_index", "grid", "run"]
