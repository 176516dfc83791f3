# SPDX-License-Identifier: Apache-2.0
"""How far something long is: observers are told, a terminal shows a line until it ends.

Of a launch on the CPU the thread tells that waits for it, by its blocks, so a short launch costs nothing, and no block
costs more than a count.
"""

from __future__ import annotations

import shutil
import sys
import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilekit.jit import durations, observer
from tilekit.runtime.launch import LaunchStats

if TYPE_CHECKING:
    from tilekit.jit.tuning.schedules import Schedules

# a launch says nothing before it took so long, unless it is known to take longer still
PATIENCE_S = 1.0
LONG_S = 3.0
_BAR = 24


class Underway(ABC):
    """Something that takes long, in words and as a bar."""

    @property
    @abstractmethod
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""

    @property
    @abstractmethod
    def words(self) -> str: ...

    def __str__(self) -> str:
        done = int(self.share * _BAR)
        return f"{'━' * done}{'╌' * (_BAR - done)} {self.words}"


@dataclass(frozen=True)
class LaunchProgress(Underway):
    """A launch under way; `guess` is how long it would take by the blocks of the launch before.

    `timeout_s` is when it is stopped; 0: never.
    """

    script: str
    finished: int
    total: int
    seconds: float
    guess: float | None = None
    timeout_s: float = 0.0

    @property
    def share(self) -> float:
        return self.finished / self.total

    @property
    def left(self) -> float | None:
        """Seconds, at the rate of the blocks that have ended; before one has, by the guess."""
        if self.finished:
            return self.seconds / self.finished * (self.total - self.finished)
        return None if self.guess is None else max(self.guess - self.seconds, 0.0)

    @property
    def words(self) -> str:
        count = f"{self.finished:,} of {self.total:,} {'block' if self.total == 1 else 'blocks'}"
        if self.left is None:
            return f"{self.script}: {count}, {self.seconds:.0f} s"
        is_late = 0.0 < self.timeout_s < self.seconds + self.left
        end = f": stopped at {self.timeout_s:g} s unless tilekit.option.cpu.timeout(…) allows more" if is_late else ""
        return f"{self.script}: {count}, about {durations.left(self.left)} left{end}"


@dataclass(frozen=True)
class TuningProgress(Underway):
    """Many schedules under way: how many of them are `what`, tried or only compiled.

    `left` is a guess in seconds; `table` shows every candidate as it is now.
    """

    script: str
    what: str
    done: int
    total: int
    left: float
    best: str | None
    table: Schedules

    @property
    def share(self) -> float:
        return self.done / self.total

    @property
    def words(self) -> str:
        count = f"{self.script}: {self.done} of {self.total} schedules {self.what}"
        best = "" if self.best is None else f", best {self.best}"
        return f"{count}, about {durations.left(self.left)} left{best}"


class Launching(AbstractContextManager["Launching"]):
    """A launch whose waiting thread calls this object; `before` is what the kernel's last one told."""

    def __init__(self, script: str, timeout_s: float, before: LaunchStats | None = None) -> None:
        self._script = script
        self._timeout_s = timeout_s
        self._pace = _seconds_per_block(before)
        self._begin = time.perf_counter()
        self._is_shown = False

    def __call__(self, finished: int, total: int) -> None:
        seconds = time.perf_counter() - self._begin
        guess = None if self._pace is None else self._pace * total
        if not self._is_shown and seconds < PATIENCE_S and (guess or 0.0) < LONG_S:
            return
        self._is_shown = True
        tell(LaunchProgress(self._script, finished, total, seconds, guess, self._timeout_s))

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            tell(None)


def tell(progress: Underway | None) -> None:
    """Tell observers, and show a line on a terminal; None: it has ended."""
    for watcher in observer.observers():
        watcher.running(progress)
    if sys.stderr.isatty():
        room = shutil.get_terminal_size().columns - 1
        sys.stderr.write("\r\x1b[2K" + ("" if progress is None else str(progress)[:room]))
        sys.stderr.flush()


def _seconds_per_block(run: LaunchStats | None) -> float | None:
    blocks = 0 if run is None else run.counters.get("blocks", 0)
    return run.seconds / blocks if run is not None and run.seconds is not None and blocks else None
