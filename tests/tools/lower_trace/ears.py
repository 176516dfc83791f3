# SPDX-License-Identifier: Apache-2.0
"""A listener that keeps what it hears of a recording."""

from __future__ import annotations

import json

from tilekit.tools.lower_trace.journal import Head, Run
from tilekit.tools.lower_trace.recording import Event

HEAD = Head("0.1.0", "script", ("script.py",), "/", 1, None, "2026-11-30T09:33:26.123456Z", "html")


class Ear:
    """Keeps the lines, and reads them as anybody does."""

    def __init__(self, on_disk: bool = False) -> None:
        self.on_disk = on_disk
        self.lines: list[str] = []
        self.events: list[Event] = []
        self.ends: list[str] = []

    def hear(self, event: Event) -> None:
        self.lines += event.lines
        self.events.append(event)

    def close(self) -> None:
        self.ends.append("close")

    def let_go(self) -> None:
        self.ends.append("let go")

    def read(self) -> Run:
        run = Run(HEAD)
        for line in self.lines[1:]:
            run.feed(json.loads(line))
        return run
