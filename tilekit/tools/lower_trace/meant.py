# SPDX-License-Identifier: Apache-2.0
"""What a person means on the command line: where runs lie, and which compiles and steps of them are asked about."""

from __future__ import annotations

from pathlib import Path

from tilekit.diag import TilekitError
from tilekit.tools.lower_trace import journal, settings, shelf
from tilekit.tools.lower_trace.journal import Step
from tilekit.tools.lower_trace.queries import Place

_HOW_TO_TRACE = "trace a script: TL_LOWER_TRACE=1 python my_script.py"


class TraceError(TilekitError):
    """What a person asked of the command line cannot be told."""


def located(where: str | None) -> tuple[Path, Place]:
    """The journal that a person means, and the compiles of it."""
    text, number = (where or "").partition("#")[0], None
    if text and not Path(text).exists() and (split := text.rpartition(":"))[2].isdecimal():
        text, number = split[0], int(split[2])
    file = _journal_file(Path(text) if text else settings.resolve().folder)
    run = journal.read(file)
    if number is None:
        return file, Place(run, run.compiles)
    if number >= len(run.compiles):
        raise TraceError("TK432", f"{file} has {len(run.compiles)} compiles, so there is no compile {number}")
    return file, Place(run, [run.compiles[number]])


def _journal_file(path: Path) -> Path:
    if path.is_file():
        beside = path.resolve().with_name(journal.FILE)
        return beside if path.suffix == ".html" and beside.exists() else path
    if not path.exists():
        raise TraceError("TK431", f"there is no {path}", help=_HOW_TO_TRACE)
    if (path / journal.FILE).exists():
        return path / journal.FILE
    runs = [info for home in homes(path) for info in shelf.runs(home)]
    if not runs:
        raise TraceError("TK431", f"{path} holds no traced run", help=_HOW_TO_TRACE)
    return max(runs, key=lambda info: info.head.started).path / journal.FILE


def homes(path: Path) -> list[Path]:
    """The folders of scripts at or in a folder."""
    found = [path, *sorted(path.iterdir())] if path.is_dir() else []
    return [each for each in found if (each / shelf.RECORDS).is_dir()]


def of_kernels(pattern: str | None, *places: Place) -> list[Place]:
    """The compiles that are asked for; with a pattern, there has to be one."""
    found = [place.matching(pattern) for place in places]
    if pattern is not None and not any(place.compiles for place in found):
        names = dict.fromkeys(compile.kernel for place in places for compile in place.compiles)
        raise TraceError("TK432", f"no kernel is called {pattern}", help=f"the kernels are {', '.join(names)}")
    return found


def one_step(place: Place, wanted: str) -> Step:
    """The step that a person names; the last one, if several have that name."""
    found = place.steps_named(wanted)
    if not found:
        names = dict.fromkeys(step.title for step in place.steps)
        raise TraceError("TK432", f"no step is called {wanted}", help=f"the steps are {', '.join(names)}")
    return found[-1]


def linked_step(where: str | None, place: Place) -> Step | None:
    """The step that a link to a page names, as `report.html#p=17&l=42`."""
    parts = (where or "").partition("#")[2].split("&")
    return next((step for step in place.steps if f"p={step.index}" in parts), None)
