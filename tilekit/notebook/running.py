# SPDX-License-Identifier: Apache-2.0
"""A `%%tilus` cell while it runs: it watches every compile and launch, and shows them under the cell."""

from __future__ import annotations

import contextvars
import math
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.displaypub import CapturingDisplayPublisher, DisplayPublisher
from IPython.display import display

from tilekit.diag import TilekitError, errors
from tilekit.jit import observer, session
from tilekit.jit.kernel import Kernel
from tilekit.jit.progress import Underway
from tilekit.jit.script import Script
from tilekit.notebook import static
from tilekit.notebook.options import FirstLine, Options
from tilekit.notebook.summary import CellSummary, Progress
from tilekit.runtime import launch_cuda
from tilekit.runtime.tensors import DeviceKind

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from tilekit.jit.benched import Bench

# a compile shorter than this says nothing before it is done: a line that flashes by only disturbs
PATIENCE_S = 0.4
TICK_S = 0.25


class RunningCell:
    """Shows one line per kernel when it is first compiled or used, and all that can be opened when the cell ends."""

    def __init__(self, shell: InteractiveShell, first_line: FirstLine, chosen: Options) -> None:
        self._shell = shell
        self.first_line = first_line
        self.options = chosen
        self.summary = CellSummary()
        # the kernel that was launched last
        self.last: Kernel | None = None
        self._seen: set[int] = set()
        self._output = Output(shell, self.summary)
        self._ticker: Ticker | None = None
        self._observing = observer.observing(self)
        self._observing.__enter__()
        self._target = session.default_target(chosen.target)
        self._target.__enter__()
        self._checking = session.checking(0 if chosen.check else None)
        self._checking.__enter__()
        self.is_open = True

    # ------------------------------------------------------------------------------------------ what the compiler says

    def compiling(self, script: str, stage: str) -> None:
        now = self.summary.progress
        begin = now.begin if isinstance(now, Progress) and now.script == script else time.perf_counter()
        self.summary.progress = Progress(script, stage, begin)
        if self._ticker is None and self._output.can_update:
            self._ticker = Ticker(self._output.show_brief)

    def compiled(self, kernel: Kernel) -> None:
        self._stop_ticker()
        self._add(kernel)

    def running(self, progress: Underway | None) -> None:
        self._stop_ticker()
        self.summary.progress = progress
        self._output.show_brief(now=progress is None)

    def launched(self, kernel: Kernel) -> None:
        self._stop_ticker()
        self.last = kernel
        self._add(kernel)

    def traced(self, page: Path) -> bool:
        if page not in self.summary.pages:
            self.summary.pages.append(page)
        return True

    def _add(self, kernel: Kernel) -> None:
        if kernel.number not in self._seen:
            self._seen.add(kernel.number)
            self.summary.kernels.append(kernel)
            self._output.show_brief()

    def _stop_ticker(self) -> None:
        if self._ticker is not None:
            self._ticker.stop()
            self._ticker = None
        self.summary.progress = None

    @property
    def is_live(self) -> bool:
        """Whether a front end shows the cell's outputs as they come, and so could hold a panel."""
        return self._output.can_update and hasattr(self._shell, "kernel")

    # ---------------------------------------------------------------------------------------------------- how it ends

    def finish(self, classes: list[type[Script]], remarks: list[str]) -> None:
        """Wait for the GPUs, compile what `--args` asks for, and check the classes that nothing was compiled of."""
        for index in sorted({k.machine.device.index for k in self.summary.kernels if _is_cuda(k) and k.launches}):
            launch_cuda.synchronize(index)
        if self.options.args is not None:
            try:
                self._compile_only(classes, self.options.args)
            except TilekitError as error:
                raise self.first_line.placed(error, self.options.args_at or self.first_line.span) from None
        compiled = {kernel.script for kernel in self.summary.kernels}
        self.summary.notes = [note(cls) for cls in classes if cls.__name__ not in compiled]
        self.summary.notes += remarks
        self.close()

    def bench(self, told: Mapping[str, Any]) -> Bench | None:
        """Measure the kernel that was launched last, if the first line asks for it; `told` is what the cell adds."""
        at = self.options.bench_at
        if at is None:
            return None
        try:
            if self.last is None:
                raise errors.LanguageError(
                    "TK802", "--bench measures the kernel that the cell launches, and this cell launches none"
                )
            return self.last.bench(**told)
        except TilekitError as error:
            raise self.first_line.placed(error, at) from None

    def _compile_only(self, classes: list[type[Script]], arguments: tuple[Any, ...]) -> None:
        kernels = [cls for cls in classes if has_call(cls)]
        if len(kernels) != 1:
            names = ", ".join(cls.__name__ for cls in kernels) or "none"
            raise errors.LanguageError(
                "TK802", f"--args compiles the one kernel that the cell defines, and this cell defines {names}"
            )
        handle: Any = kernels[0]()
        handle.compile(*arguments, target=self.options.target)

    def close(self) -> None:
        """Stop watching, and show what there is: also of a cell that failed."""
        if not self.is_open:
            return
        self.is_open = False
        self._stop_ticker()
        self._observing.__exit__(None, None, None)
        self._target.__exit__(None, None, None)
        self._checking.__exit__(None, None, None)
        self._output.show_all()


class Output:
    """Where the summary stands: one output of the cell, replaced in place where the front end can do that."""

    def __init__(self, shell: InteractiveShell, summary: CellSummary) -> None:
        self.can_update = can_update(shell)
        self._summary = summary
        self._handle: Any = None
        self._shown_at = -math.inf
        self._lock = threading.Lock()

    def show_brief(self, *, now: bool = False) -> None:
        """The lines alone, while the cell still runs; not again at once, for a loop may compile many kernels."""
        if self.can_update and (now or time.monotonic() - self._shown_at > TICK_S / 2):
            self._show(brief=True)

    def show_all(self) -> None:
        """The lines and what they open to, for good."""
        if self._handle is not None or not self._summary.is_empty:
            self._show(brief=False)

    def _show(self, *, brief: bool) -> None:
        bundle = self._summary.bundle(brief=brief)
        with self._lock:
            self._shown_at = time.monotonic()
            if self._handle is None:
                self._handle = display(bundle, raw=True, display_id=True)
            else:
                self._handle.update(bundle, raw=True)


class PlainCells(observer.Observer):
    """Shows how far a long launch is in cells that are no `%%tilus` cells; the line is empty when it has ended."""

    def __init__(self, shell: InteractiveShell, is_elsewhere: Callable[[], bool]) -> None:
        self._shell = shell
        self._is_elsewhere = is_elsewhere
        self._handle: Any = None
        # the pages that a cell has links to already
        self._linked: set[tuple[int, Path]] = set()

    def running(self, progress: Underway | None) -> None:
        if progress is None:
            self._end()
        elif not self._is_elsewhere() and can_update(self._shell):
            self._show({"text/plain": str(progress), "text/html": static.frame(static.launch(progress))})

    def traced(self, page: Path) -> bool:
        if not self._is_elsewhere() and (session.cell(), page) not in self._linked:
            self._linked.add((session.cell(), page))
            bundle = {"text/plain": static.plain_link(page), "text/html": static.frame(static.link(page))}
            display(bundle, raw=True)
        return True

    def _show(self, bundle: dict[str, str]) -> None:
        if self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)

    def _end(self) -> None:
        if self._handle is not None:
            self._show({"text/plain": "", "text/html": ""})
            self._handle = None


def can_update(shell: InteractiveShell) -> bool:
    """Whether the front end replaces an output in place; a terminal and `%%capture` show every update as one more."""
    return type(shell.display_pub) not in (DisplayPublisher, CapturingDisplayPublisher)


class Ticker:
    """Calls `tick` every now and then from a thread, after a while of patience, until it is stopped."""

    def __init__(self, tick: Callable[[], None]) -> None:
        self._tick = tick
        self._stopped = threading.Event()
        # the output must land under the cell that runs, which the kernel knows by the context
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._run,), name="tilekit-progress", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        wait = PATIENCE_S
        while not self._stopped.wait(wait):
            self._tick()
            wait = TICK_S

    def stop(self) -> None:
        """Return when no tick is under way and none will come."""
        self._stopped.set()
        self._thread.join()


def has_call(cls: type[Script]) -> bool:
    """Whether a script class has a kernel; without one it is a base of others."""
    return cls.__call__ is not Script.__call__


def note(cls: type[Script]) -> str:
    """Check a script class as far as that needs no arguments, and say what it waits for."""
    if not has_call(cls):
        return f"{cls.__name__}: no __call__, so a base class"
    try:
        handle = cls()
    except errors.LanguageError as error:
        if error.code != "TK104":
            raise
        return f"{cls.__name__}: compiles at its first call"
    handle.require_program()
    return repr(handle)


def _is_cuda(kernel: Kernel) -> bool:
    return kernel.machine.device.kind is DeviceKind.CUDA
