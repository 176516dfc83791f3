# SPDX-License-Identifier: Apache-2.0
"""The tile IR: programs over whole tensors, at the granularity of a thread block.

Scripts import the classes of tensors from here; the modules of this package import one another by their names.
"""

from __future__ import annotations

import importlib
from typing import Any

_TENSORS = ("GlobalTensor", "RegisterTensor", "SharedTensor")


def __getattr__(name: str) -> Any:
    if name in _TENSORS:
        return getattr(importlib.import_module("tilekit.ir.tensor"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_TENSORS})
