# SPDX-License-Identifier: Apache-2.0
"""A shell in this process that runs cells and keeps what they show, as a notebook in a browser would get it."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

_COLOR = re.compile(r"\x1b\[[0-9;]*m")

VECTOR_ADD = """\
import tilus
import torch
from tilus import float32, int32
from tilus.utils import cdiv


class VectorAdd(tilus.Script):
    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32, z_ptr: ~float32):
        self.attrs.blocks = [cdiv(n, 256)]
        self.attrs.warps = 2
        start = self.blockIdx.x * 256
        gx = self.global_view(x_ptr, dtype=float32, shape=[n])
        gy = self.global_view(y_ptr, dtype=float32, shape=[n])
        gz = self.global_view(z_ptr, dtype=float32, shape=[n])
        x = self.load_global(gx, offsets=[start], shape=[256])
        y = self.load_global(gy, offsets=[start], shape=[256])
        self.store_global(gz, x + y, offsets=[start])
"""

CALL = """\
n = 1000
x, y, z = torch.randn(n), torch.randn(n), torch.empty(n)
add = VectorAdd()
add(n, x, y, z)
"""


@dataclass
class Shown:
    """An output of a cell: its final form, and how often it was replaced."""

    data: dict[str, str]
    id: str | None = None
    updates: int = 0


class Publisher(DisplayPublisher):
    """Keeps outputs, and replaces them by their ids."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.outputs: list[Shown] = []

    def publish(
        self, data: Any, metadata: Any = None, *, transient: Any = None, update: bool = False, **_: Any
    ) -> None:
        name = (transient or {}).get("display_id")
        if update:
            shown = next(output for output in self.outputs if output.id == name)
            shown.data, shown.updates = data, shown.updates + 1
        else:
            self.outputs.append(Shown(data, name))


@dataclass
class Ran:
    """What a cell did."""

    value: Any
    error: BaseException | None
    stdout: str
    shown: list[Shown] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What the cell showed beside its prints and its value."""
        return "\n".join(shown.data["text/plain"] for shown in self.shown)

    @property
    def html(self) -> str:
        return "\n".join(shown.data["text/html"] for shown in self.shown)


class Notebook:
    """A shell whose front end can replace an output, as a browser's; `as_terminal` takes that away."""

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        self.shell = InteractiveShell.instance(config=config)
        self.shell.run_line_magic("colors", "nocolor")
        self.publisher = Publisher(parent=self.shell)
        self._plain, self.shell.display_pub = self.shell.display_pub, self.publisher

    def run(self, raw: str, **options: Any) -> Ran:
        """Run a cell that may fail."""
        self.publisher.outputs.clear()
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            result = self.shell.run_cell(raw, store_history=options.pop("store_history", True), **options)
        error = result.error_before_exec or result.error_in_exec
        return Ran(result.result, error, _COLOR.sub("", out.getvalue()), list(self.publisher.outputs))

    def ran(self, raw: str, **options: Any) -> Ran:
        """Run a cell that must not fail."""
        ran = self.run(raw, **options)
        assert ran.error is None, ran.stdout
        return ran

    @contextlib.contextmanager
    def as_terminal(self) -> Iterator[None]:
        """Within the block, outputs are printed."""
        self.shell.display_pub = self._plain
        try:
            yield
        finally:
            self.shell.display_pub = self.publisher

    def forget(self) -> None:
        """Forget the user's names and `__future__` imports, and start counting cells anew."""
        # what `shell.reset(new_session=True)` does, but for its collection of garbage, which takes most of the time
        self.shell.history_manager.reset(new_session=True)
        self.shell.execution_count = 1
        self.shell.user_ns.clear()
        self.shell.user_module.__spec__ = None  # a new process looks at it
        self.shell.user_ns_hidden.clear()
        self.shell.init_user_ns()
        self.shell.compile.reset_compiler_flags()

    def close(self) -> None:
        if "tilekit" in self.shell.extension_manager.loaded:
            self.shell.run_line_magic("unload_ext", "tilekit")
        self.shell.restore_sys_module_state()
        InteractiveShell.clear_instance()
