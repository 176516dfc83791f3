# SPDX-License-Identifier: Apache-2.0
"""Before a kernel is first launched, some of its blocks are checked on the CPU, on copies of the arguments.

So it is with what runs on the CPU, and with a person's edit that is about to run on a GPU. Nobody asked for it, so it
may take only so long; what it finds is told in place of a launch.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilekit.diag.errors import KernelError, TilekitError
from tilekit.jit import held

if TYPE_CHECKING:
    from tilekit.runtime.compiled import CheckRunner

LAUNCH_ANYWAY = "it was not launched; tilekit.option.cpu.check_blocks(0) launches without this check"
SAMPLE_TIMEOUT_S = 5.0
# of an edit for a GPU, with its compile for the CPU and the way of its tensors from there
EDIT_TIMEOUT_S = 2.0
LARGEST_EDIT_BYTES = 1 << 29
_SEEDS = 1000
# what the simulator could not decide
_UNDECIDED = {"timeout", "died", "refused"}


def seed_of(source: str) -> int:
    """The seed by which blocks and their order are drawn: another one for each source, and never 0."""
    return zlib.crc32(source.encode()) % _SEEDS + 1


def sample(
    checker: CheckRunner, arguments: Sequence[Any], count: int, seed: int, timeout_s: float = SAMPLE_TIMEOUT_S
) -> str:
    """Check this many blocks and say what came of it; what is wrong is a KernelError that says how to launch anyway."""
    try:
        ran = checker.launch(arguments, sample=count, seed=seed, keep=False, strict=False, timeout_s=timeout_s)
    except KernelError as error:
        if error.kind == "timeout":
            return f"not checked: {count} blocks took longer than {timeout_s:.2g} s"
        if error.kind in _UNDECIDED:
            return f"not checked: {error.data['text']}"
        if error.kind != "interrupted":
            hint = error.diagnostic.help
            error.diagnostic = replace(error.diagnostic, help="\n".join(filter(None, [hint, LAUNCH_ANYWAY])))
        raise
    return "" if ran.check is None else str(ran.check)


def sample_edit(load: Callable[[], CheckRunner], arguments: Sequence[Any], count: int, seed: int) -> str:
    """The same for an edit that runs on a GPU: `load` compiles it for the CPU, which goes on if it takes too long."""
    end = time.monotonic() + EDIT_TIMEOUT_S
    size = held.nbytes(arguments)
    if size > LARGEST_EDIT_BYTES:
        return f"not checked: its tensors have {size / 1e6:.3g} MB"
    loading = _Background(load)
    here = held.copies(arguments, on_cpu=True)
    try:
        checker = loading.result(end)
    except TimeoutError:
        return f"not checked: its compile for the CPU took longer than {EDIT_TIMEOUT_S:g} s"
    except TilekitError as error:
        return f"not checked on the CPU: {error.message}"
    left = end - time.monotonic()
    if left <= 0:
        return f"not checked: its compile for the CPU took {EDIT_TIMEOUT_S:g} s"
    return sample(checker, here, count, seed, left)


class _Background:
    """Work in a thread that nobody waits for when the time is up, nor when the process ends."""

    def __init__(self, work: Callable[[], CheckRunner]) -> None:
        self._work = work
        self._made: CheckRunner | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="tilekit-precheck", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._made = self._work()
        except BaseException as error:
            self._error = error

    def result(self, end: float) -> CheckRunner:
        """What came of it, if it is there by this time of the monotonic clock."""
        self._thread.join(max(0.0, end - time.monotonic()))
        if self._error is not None:
            raise self._error
        if self._made is None:
            raise TimeoutError
        return self._made
