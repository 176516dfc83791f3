# SPDX-License-Identifier: Apache-2.0
"""What a panel does to its kernel when a person asks for it, one request after the other, and what it tells of that.

A front end's message may arrive in any thread, also beside a running cell, so callbacks only hand over; one thread of
this module does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from tilekit.diag import KernelError, TilekitError
from tilekit.events import PATCHED
from tilekit.jit import durations, precheck
from tilekit.jit.compare import Comparison
from tilekit.jit.kernel import Kernel

if TYPE_CHECKING:
    from tilekit.notebook.panels.panel import EditPanel

RUNS_EDIT = f"{PATCHED}: every call of this kernel runs the edit"

_worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tilekit-panels")
_at_work: AtWork | None = None  # what the worker is busy with


def stop() -> None:
    """Stop what a panel runs now, if one does; any thread may call."""
    if _at_work is not None:
        _at_work.stop()


class AtWork:
    """One panel of one kernel that compiles what a person edited; `settled` is called when a request is done."""

    def __init__(self, kernel: Kernel, settled: Callable[[], None]) -> None:
        self.kernel = kernel
        self._settled = settled
        self._stopped = False

    @property
    def panel(self) -> EditPanel:
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the comparison, or let it not begin; a compile is not stopped."""
        self._stopped = True
        self.kernel.interrupt()

    def submit(self, work: Callable[[], None]) -> Future[None]:
        """Have it done when all that was asked for before is done."""
        return _worker.submit(self._settle, work)

    def _settle(self, work: Callable[[], None]) -> None:
        global _at_work
        _at_work, self._stopped = self, False
        try:
            work()
        except Exception as error:
            self.fail(error, message(error))
        finally:
            _at_work = None
            self._settled()
            self.panel.set_trait("busy", "")

    def fail(self, error: Exception, status: str) -> None:
        """Say what went wrong."""
        self.say(status)
        self.panel.set_trait("verdict", "failed")

    def refuse(self, error: TilekitError) -> None:
        """Say why an edit is not compiled."""
        self.fail(error, f"{error.message}: the last good build stays in place")

    def say(self, status: str) -> None:
        """Say how things are, and nothing of a comparison."""
        self.panel.set_trait("status", status)
        self.panel.set_trait("comparison", "")
        self.panel.set_trait("verdict", "")

    def compare(self) -> None:
        """Run the edit beside what was generated, and say what differs and what either takes."""
        panel = self.panel
        panel.set_trait("busy", "comparing")
        if self._stopped:
            panel.set_trait("comparison", "not compared with the generated kernel: stopped")
            return
        try:
            found = self.kernel.compare()
        except Exception as error:
            # the edit is compiled and stays; what it does wrong is for the person to mend or revert
            refused = isinstance(error, KernelError) and error.data.get("checked")
            panel.set_trait("comparison", f"{message(error)}{f' · {precheck.LAUNCH_ANYWAY}' if refused else ''}")
            panel.set_trait("verdict", "failed")
            return
        panel.set_trait("comparison", " · ".join(filter(None, [str(found), _times(found), self.kernel.sample])))
        panel.set_trait("verdict", "same" if found.same else "differs")


def message(error: Exception) -> str:
    """What went wrong, in a sentence."""
    return error.message if isinstance(error, TilekitError) else f"{type(error).__name__}: {error}"


def _times(found: Comparison) -> str:
    return f"generated {durations.measured(found.generated_seconds)}, edited {durations.measured(found.edited_seconds)}"
