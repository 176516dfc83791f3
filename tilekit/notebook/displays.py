# SPDX-License-Identifier: Apache-2.0
"""How a handle, a kernel and its passes look as the value of a cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.display import display

from tilekit.diag import KernelError, TilekitError
from tilekit.jit.instantiated import InstantiatedScript
from tilekit.jit.kernel import Kernel
from tilekit.notebook import static
from tilekit.notebook.panels.panel import Panel
from tilekit.notebook.panels.passes import PassPanel
from tilekit.notebook.panels.steps import Steps

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from tilekit.jit.benched import Bench

# by its name: importing it would bring the compiler
_RECORDER = "tilekit.transforms.recorder", "Recorder"
_BENCH = "tilekit.jit.benched", "Bench"
# what says itself in words
_SENTENCES = (
    ("tilekit.runtime.launch", "CheckStats"),
    ("tilekit.jit.explained", "Explanation"),
    ("tilekit.cache.manage", "Listing"),
)


def _kernel(kernel: Kernel) -> str:
    return static.frame(static.kernel(kernel))


def _handle(handle: InstantiatedScript) -> str:
    if not handle.kernels:
        return static.frame(static.remark(repr(handle)))
    return static.frame("".join(map(static.kernel, handle.kernels)))


def _trace(recorder: Any) -> str:
    return static.frame(static.passes(recorder))


def _sentence(value: object, printer: Any, cycle: bool) -> None:
    printer.text(str(value))


def _trace_text(recorder: Any, printer: Any, cycle: bool) -> None:
    printer.text(Steps(recorder).plain())


def _trace_live(recorder: Any, keep: Callable[[Panel], None]) -> None:
    """The panel, below what the file keeps of it; in the page it folds that to its line."""
    steps = Steps(recorder, "the kernel")
    changed = len(steps.changed)
    line = f"{len(steps.steps)} steps · {changed} {'pass' if changed == 1 else 'passes'} changed the program"
    copy = f"<details><summary>{line}</summary>{static.passes(recorder)}</details>"
    display({"text/plain": steps.plain(), "text/html": static.frame(copy)}, raw=True)
    panel = PassPanel("the kernel", steps)
    keep(panel)
    # the copy says it all in text
    view = panel._repr_mimebundle_()
    display({**view, "text/plain": "the panel of these passes: run the cell to open it"}, raw=True)


def _bench(bench: Bench) -> None:
    """The table, and below it what is drawn over sizes: a saved notebook paints that again by itself."""
    display({"text/plain": repr(bench), "text/html": static.frame(bench._repr_html_())}, raw=True)
    if bench.has_sizes:
        plot = bench.figure().to_plotly_json()
        display({"application/vnd.plotly.v1+json": plot, "text/plain": "the same over the sizes, as a plot"}, raw=True)


def _show_error(shell: Any, kind: type, error: TilekitError, traceback: Any, tb_offset: int | None = None) -> None:
    """An error in a few lines; below a kernel's, folded, what its notes tell."""
    error.in_notebook = True
    try:
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
    finally:
        error.in_notebook = False
    if isinstance(error, KernelError) and error.diagnostic.notes:
        display({"text/plain": error.text_notes(), "text/html": error.html_notes()}, raw=True)


def take_errors(shell: Any) -> None:
    """Show our errors so, unless the person has handlers of their own."""
    if not shell.custom_exceptions:
        shell.set_custom_exc((TilekitError,), _show_error)


def leave_errors(shell: Any) -> None:
    if shell.custom_exceptions == (TilekitError,):
        shell.set_custom_exc((), None)


def _formatters(shell: InteractiveShell) -> tuple[Any, Any]:
    formatters: Any = shell.display_formatter
    return formatters.formatters["text/html"], formatters.formatters["text/plain"]


def _shows(shell: InteractiveShell) -> Any:
    """Those that display an object themselves, in as many outputs as it takes."""
    formatter: Any = shell.display_formatter
    return formatter.ipython_display_formatter


def is_live(shell: InteractiveShell) -> bool:
    """Whether a front end shows outputs as they come, and so could hold a panel."""
    return hasattr(shell, "kernel")


def register(shell: InteractiveShell, keep: Callable[[Panel], None]) -> None:
    """Teach the shell; `keep` is given each panel that a cell shows."""
    html, text = _formatters(shell)
    html.for_type(Kernel, _kernel)
    html.for_type(InstantiatedScript, _handle)
    html.for_type_by_name(*_RECORDER, _trace)
    text.for_type_by_name(*_RECORDER, _trace_text)
    for name in _SENTENCES:
        text.for_type_by_name(*name, _sentence)
    _shows(shell).for_type_by_name(*_BENCH, _bench)
    if is_live(shell):
        _shows(shell).for_type_by_name(*_RECORDER, lambda recorder: _trace_live(recorder, keep))


def unregister(shell: InteractiveShell) -> None:
    html, text = _formatters(shell)
    for kind in (Kernel, InstantiatedScript, ".".join(_RECORDER)):
        html.pop(kind, None)
    for name in (_RECORDER, *_SENTENCES):
        text.pop(".".join(name), None)
    for name in (_RECORDER, _BENCH):
        _shows(shell).pop(".".join(name), None)
