# SPDX-License-Identifier: Apache-2.0
"""What the launches of a kernel left behind, apart from the kernel: a repeated call touches nothing else of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilekit.runtime.launch import LaunchStats


@dataclass(slots=True)
class History:
    """Of one kernel, or of none of its launches yet."""

    launches: int = 0
    last_run: LaunchStats | None = None
    # everything that the last launch or check printed; on a GPU see CudaKernel
    printed: str = ""
    # the arguments of the last call as `held.hold` has them, so that nobody's memory is kept
    arguments: tuple[Any, ...] | None = None
