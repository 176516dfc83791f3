# SPDX-License-Identifier: Apache-2.0
"""How a trace is switched on: for the rest of a process, or for a block, which hears alone as long as it lasts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tilekit import config
from tilekit.config import TraceMode
from tilekit.tools.lower_trace import session, settings
from tilekit.tools.lower_trace.session import Session
from tilekit.tools.lower_trace.settings import NOT_GIVEN, NotGiven

# the one of the process, if there is one
_enabled: list[Session] = []


def enable(
    mode: str | TraceMode | NotGiven | None = NOT_GIVEN,
    trace_dir: str | os.PathLike[str] | None = None,
    codegen_output: str | os.PathLike[str] | NotGiven | None = NOT_GIVEN,
) -> None:
    """Trace every compile of this process from now on; calling it again is safe.

    Parameters
    ----------
    mode
        `"html"` writes a page that grows with each pass, `"terminal"` prints what each pass changed, `"both"` does
        both, and None disables. If it is not given, that of `TL_LOWER_TRACE`, or a page where that is not set.
    trace_dir
        Where the runs of all scripts are kept; else `TL_LOWER_TRACE_DIR`, or `./tmp/lower_trace_dir`.
    codegen_output
        Where the generated source of the first kernel is kept, to be read and edited; None for nowhere. If it is not
        given, `codegen.cpp` in the folder of the script where a page is made.

    Raises
    ------
    ConfigError
        The mode is none.

    Examples
    --------
    >>> from tilekit.tools import lower_trace
    >>> lower_trace.enable(mode="terminal")
    >>> lower_trace.disable()
    """
    chosen = settings.resolve(_or_page(mode), trace_dir, codegen_output)
    if _enabled and _enabled[0].settings == chosen:
        return
    disable()
    if chosen.mode is not TraceMode.OFF:
        _enabled.append(Session(chosen))
        _enabled[0].begin(outermost=True)


def disable() -> None:
    """Trace no compile of this process from now on, and forget what was traced; files stay.

    A `with tilekit.tracing(…)` block goes on to its end.

    Examples
    --------
    >>> from tilekit.tools import lower_trace
    >>> lower_trace.disable()  # also where nothing is traced
    """
    while _enabled:
        _enabled.pop().end()


def reset() -> None:
    """End the run that is traced now; the next compile begins another one, in a folder and with a page of its own.

    Without it, all that a process compiles stands in one page, each compile after the first under `run2_…`, `run3_…`.

    Examples
    --------
    >>> from tilekit.tools import lower_trace
    >>> lower_trace.reset()  # also where nothing is traced
    """
    active = session.active()
    if active is not None:
        active.reset()


@contextmanager
def tracing(
    mode: str | TraceMode | NotGiven | None = NOT_GIVEN,
    dir: str | os.PathLike[str] | None = None,
    *,
    filter: str | None = None,
    codegen_output: str | os.PathLike[str] | NotGiven | None = NOT_GIVEN,
    cached: str | None = None,
    max_lines: int | None = None,
    on_conflict: str | None = None,
) -> Iterator[Session]:
    """Within the block, trace what is compiled; a kernel that was compiled before is shown, too.

    What is not given is as the environment says, by `TL_LOWER_TRACE_DIR` and so on. Blocks nest, and the inner one
    hears alone; with `mode=None` nobody does.

    Parameters
    ----------
    mode
        `"html"`, `"terminal"`, `"both"`, or None for no trace.
    dir
        Where the runs of all scripts are kept.
    filter
        Patterns such as `"matmul*"` of the kernels to trace, and behind `pass:` of their passes, separated by commas.
    codegen_output
        Where the generated source of the first kernel is kept, to be read and edited; None for nowhere.
    cached
        `"trace"` runs the passes of a kernel from the cache again; with `"skip"` a line says that it is not traced, and
        an edit of it is compiled all the same.
    max_lines
        How many lines of a diff are printed at most; 0 for all.
    on_conflict
        What becomes of an edited source when the generated one has changed: `"regenerate"`, `"merge"`, `"keep"`, or
        `"error"`.

    Returns
    -------
    Session
        `compiles`, `folder` and `report` say what was traced.

    Raises
    ------
    ConfigError
        An argument means nothing.

    Examples
    --------
    >>> import tempfile
    >>> import tilekit
    >>> from tilekit import float32
    >>> class Double(tilekit.Script):
    ...     def __call__(self, x_ptr: ~float32):
    ...         self.attrs.blocks = [1]
    ...         self.attrs.warps = 1
    ...         g = self.global_view(x_ptr, dtype=float32, shape=[32])
    ...         self.store_global(g, self.load_global(g, offsets=[0], shape=[32]) * 2.0, offsets=[0])
    >>> with tempfile.TemporaryDirectory() as folder, tilekit.tracing("html", folder) as traced:
    ...     _ = Double().compile(tilekit.spec(float32, (32,)), device="cpu")
    >>> [compile.kernel for compile in traced.compiles]
    ['double']
    """
    made = Session(settings.resolve(_or_page(mode), dir, codegen_output, filter, cached, max_lines, on_conflict))
    made.begin()
    try:
        yield made
    finally:
        made.end()


def _or_page(mode: str | TraceMode | NotGiven | None) -> str | TraceMode | NotGiven | None:
    """Who asks in a call wants a trace, also where the environment says nothing of it."""
    is_told = bool(config.trace_variable(config.TRACE)[1])
    return TraceMode.HTML if mode is NOT_GIVEN and not is_told else mode
