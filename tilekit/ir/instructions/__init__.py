# SPDX-License-Identifier: Apache-2.0
"""The instructions, one family a file; importing this package registers them all."""

from tilekit.ir.instructions import (
    assume,
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
    "assume",
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
