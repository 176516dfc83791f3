# SPDX-License-Identifier: Apache-2.0
"""How a handle, a kernel and its passes look as the value of a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tilekit.jit.instantiated import InstantiatedScript
from tilekit.jit.kernel import Kernel
from tilekit.notebook import static
from tilekit.notebook.panels.steps import Steps

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

# by its name: importing it would bring the compiler
_RECORDER = "tilekit.transforms.recorder", "Recorder"


def _kernel(kernel: Kernel) -> str:
    return static.frame(static.kernel(kernel))


def _handle(handle: InstantiatedScript) -> str:
    if not handle.kernels:
        return static.frame(static.remark(repr(handle)))
    return static.frame("".join(map(static.kernel, handle.kernels)))


def _trace(recorder: Any) -> str:
    return static.frame(static.passes(recorder))


def _trace_text(recorder: Any, printer: Any, cycle: bool) -> None:
    printer.text(Steps(recorder).plain())


def _formatters(shell: InteractiveShell) -> tuple[Any, Any]:
    formatters: Any = shell.display_formatter
    return formatters.formatters["text/html"], formatters.formatters["text/plain"]


def register(shell: InteractiveShell) -> None:
    html, text = _formatters(shell)
    html.for_type(Kernel, _kernel)
    html.for_type(InstantiatedScript, _handle)
    html.for_type_by_name(*_RECORDER, _trace)
    text.for_type_by_name(*_RECORDER, _trace_text)


def unregister(shell: InteractiveShell) -> None:
    html, text = _formatters(shell)
    for kind in (Kernel, InstantiatedScript, ".".join(_RECORDER)):
        html.pop(kind, None)
    text.pop(".".join(_RECORDER), None)
