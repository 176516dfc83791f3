# SPDX-License-Identifier: Apache-2.0
"""The emitters for CUDA, one file for each file of `ir/instructions`; importing this package registers them."""

from tilekit.backends.emitters.cuda import elementwise, memory, reduce, register, sync

__all__ = ["elementwise", "memory", "reduce", "register", "sync"]
