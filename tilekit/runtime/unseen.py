# SPDX-License-Identifier: Apache-2.0
"""An edited kernel on a GPU, until it has ended well once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilekit.runtime import gpu_child
from tilekit.runtime.launch import LaunchStats
from tilekit.runtime.launch_cuda import CudaKernel

# The first launch of an edited kernel on a GPU, where nobody may be there to interrupt it.
UNSEEN_TIMEOUT_S = 10.0


@dataclass
class UnseenKernel:
    """An edited kernel on a GPU: its first launch goes to a child process, which dies in our stead if it is wrong."""

    kernel: CudaKernel
    cubin: bytes
    index: int
    ended_well: bool = False

    def launch(self, arguments: Sequence[Any], /) -> LaunchStats:
        if self.ended_well:
            return self.kernel.launch(arguments)
        child = gpu_child.child(self.index)
        stats = child.run(self.kernel.manifest, self.cubin, arguments, timeout_s=UNSEEN_TIMEOUT_S)
        self.ended_well = True
        return stats

    def interrupt(self) -> None:
        """Stop the first launch; a later one runs in this process, where nothing stops it."""
        gpu_child.child(self.index).interrupt()
