# SPDX-License-Identifier: Apache-2.0
"""Interrupt while no cell runs: it stops what a panel runs.

Between two messages ipykernel ignores SIGINT, and around each it puts back what it found. So a handler that is
installed between two messages stays, and is in force whenever no cell runs.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any


def listen(shell: Any, stop: Callable[[], None]) -> None:
    """From the end of the running cell on, call `stop` when the person presses Interrupt and no cell runs."""
    loop = getattr(getattr(shell, "kernel", None), "io_loop", None)
    if loop is not None:  # a terminal has no panels
        loop.add_callback(_install, stop)


def _install(stop: Callable[[], None]) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: stop())
