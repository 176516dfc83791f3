# SPDX-License-Identifier: Apache-2.0
"""The line of the user's call, for errors that are about the call and not about a line of the kernel or of a pass."""

from __future__ import annotations

from types import FrameType

from tilekit.diag import sources
from tilekit.diag.errors import ArgumentError, LaunchError, PassError, TilekitError
from tilekit.diag.sources import Located
from tilekit.diag.span import Span


def place(error: TilekitError, script: str, frame: FrameType) -> TilekitError:
    """The error, if it is about the arguments, the launch or the pipeline, placed at the call in `frame`."""
    is_ours = str(frame.f_globals.get("__name__", "")).startswith("tilekit.")
    if error.diagnostic.at is not None or is_ours or not isinstance(error, (ArgumentError, LaunchError, PassError)):
        return error
    location = sources.running(frame.f_code, frame.f_lasti)
    if location is None:
        return error  # typed where no source is kept: there is nothing to point at
    span = Span(f"a call of {script}", 0, location.col, 0, location.end_col)
    return error.located(span).with_sources(Located({span: location}))
