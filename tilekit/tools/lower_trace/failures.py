# SPDX-License-Identifier: Apache-2.0
"""What went wrong in a traced compile or in its trace, in words; the words themselves never fail."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

from tilekit.diag import TilekitError, render, sources
from tilekit.diag.sources import Locator
from tilekit.tools.lower_trace import files

_PACKAGE = str(Path(__file__).parents[2]) + os.sep


def message(error: BaseException, known: Locator | None = None) -> str:
    """What it says; the compile that it leaves has told it its sources only when it has left."""
    try:
        return render.text(error.diagnostic, error.sources or known) if isinstance(error, TilekitError) else str(error)
    except Exception as another:
        return f"its message cannot be printed: {type(another).__name__}"


def headline(error: BaseException) -> str:
    return f"{type(error).__name__}: {message(error)}"


def traceback_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def where(error: BaseException, known: Locator | None) -> str | None:
    """The line of the user that it is about, or else that it came through last."""
    if isinstance(error, TilekitError) and error.diagnostic.at is not None:
        return render.describe(error.diagnostic.at, error.sources or known)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_PACKAGE):
            return f"{sources.display_name(frame.filename)}, line {frame.lineno}: {frame.line}"
    return None


def led_to(first: BaseException, last: BaseException | None) -> bool:
    """Whether one error is the other, or was on the way when the other was raised."""
    seen: set[int] = set()
    while last is not None and id(last) not in seen:
        if last is first:
            return True
        seen.add(id(last))
        last = last.__cause__ or last.__context__
    return False


def why_not(error: OSError) -> str:
    """What could not be written, and why."""
    return f"{error.filename}: {files.reason(error)}" if error.filename else files.reason(error)
