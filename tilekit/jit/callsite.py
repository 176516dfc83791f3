# SPDX-License-Identifier: Apache-2.0
"""The line of the user's call, for errors that are about the call and not about a line of the kernel."""

from __future__ import annotations

import itertools
import linecache
from types import FrameType

from tilekit.diag.errors import ArgumentError, LaunchError, TilekitError
from tilekit.diag.sources import Located, Location, display_name
from tilekit.diag.span import Span


def place(error: TilekitError, script: str, frame: FrameType) -> TilekitError:
    """The error, if it is about the arguments or the launch, placed at the call in `frame`."""
    is_ours = str(frame.f_globals.get("__name__", "")).startswith("tilekit.")
    if error.diagnostic.at is not None or is_ours or not isinstance(error, (ArgumentError, LaunchError)):
        return error
    filename, place = frame.f_code.co_filename, f"a call of {script}"
    position = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    line, end_line, col, end_col = position
    text = "" if line is None else linecache.getline(filename, line).rstrip("\r\n")
    if line is None or not text:
        return error  # typed where no source is kept: there is nothing to point at
    span = Span(place, 0, col or 0, 0, end_col or 0)
    name = display_name(filename)
    location = Location(filename, name, line, col or 0, end_line or line, end_col or len(text.encode()), text)
    return error.located(span).with_sources(Located({span: location}))
