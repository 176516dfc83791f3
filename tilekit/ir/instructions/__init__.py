# SPDX-License-Identifier: Apache-2.0
"""The instructions, one family a file; importing this package registers them all."""

from tilekit.ir.instructions import elementwise, memory, reduce, register, sync

__all__ = ["elementwise", "memory", "reduce", "register", "sync"]
