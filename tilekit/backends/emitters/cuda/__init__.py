# SPDX-License-Identifier: Apache-2.0
"""The emitters for CUDA, one file for each file of `ir/instructions`; importing this package registers them."""

from tilekit.backends.emitters.cuda import (
    copy_async,
    dot,
    elementwise,
    memory,
    print,
    reduce,
    register,
    semaphore,
    shared,
    sync,
    transform,
    workspace,
)

__all__ = [
    "copy_async",
    "dot",
    "elementwise",
    "memory",
    "print",
    "reduce",
    "register",
    "semaphore",
    "shared",
    "sync",
    "transform",
    "workspace",
]
