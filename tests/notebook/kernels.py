# SPDX-License-Identifier: Apache-2.0
"""A real kernel process, driven as a front end drives it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

from tests.caches import new_cache

_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Reply:
    """What came back for one cell; an output that was replaced is there in its last form."""

    status: str = ""
    stdout: str = ""
    value: str | None = None
    traceback: str = ""
    error: str = ""
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    widgets: int = 0
    # every form in which the other outputs came, in order
    history: list[str] = field(default_factory=list)

    def take(self, message: dict[str, Any]) -> None:
        content = message["content"]
        match message["msg_type"]:
            case "stream":
                self.stdout += content["text"]
            case "execute_result":
                self.value = content["data"]["text/plain"]
            case "error":
                self.error = content["ename"]
                self.traceback = _COLOR.sub("", "\n".join(content["traceback"]))
            case "display_data" if "application/vnd.jupyter.widget-view+json" in content["data"]:
                self.widgets += 1
            case "display_data" | "update_display_data":
                name = content["transient"].get("display_id", str(len(self.shown)))
                self.shown[name] = content["data"]
                self.history.append(content["data"]["text/plain"])
            case _:
                pass

    @property
    def text(self) -> str:
        return "\n".join(data["text/plain"] for data in self.shown.values())


class Kernel:
    """A running kernel."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager = manager
        self.client = client

    def run(self, code: str, timeout: float = 120) -> Reply:
        reply = Reply()
        answer = self.client.execute_interactive(code, output_hook=reply.take, timeout=timeout)
        reply.status = answer["content"]["status"]
        return reply

    def ran(self, code: str) -> Reply:
        reply = self.run(code)
        assert reply.status == "ok", reply.traceback
        return reply


@contextlib.contextmanager
def kernel(cache: Path) -> Iterator[Kernel]:
    """A new kernel whose cache, with the edits in it, is its own."""
    environment = {**os.environ, "TILEKIT_CACHE_DIR": str(new_cache(cache))}
    manager, client = start_new_kernel(env=environment, extra_arguments=["--IPKernelApp.log_level=ERROR"])
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
