# SPDX-License-Identifier: Apache-2.0
"""The runs of a script, beside each other: the list of them, the page of the newest, and how many are kept."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any

from tilekit.tools.lower_trace import files, journal
from tilekit.tools.lower_trace.journal import Compile, Head, Source, Status, Step
from tilekit.tools.lower_trace.recording import Event, Listener

RECORDS = ".run_records"
# each text of the raw dumps, by its id
TEXTS = ".texts"
PAGE = "report.html"
INDEX = "index.html"
KEEP_RUNS = 50
KEEP_BYTES = 500_000_000

_SUMMARY = "summary.json"


class Shelf(Listener):
    """Puts a run beside the others of its script, and at its end clears away the oldest."""

    on_disk = True

    def __init__(self, home: Path, path: Path, warn: Callable[[str], None]) -> None:
        self._home = home
        self._path = path
        self._warn = warn
        self._kernels: set[str] = set()
        self._has_index = True
        self._counts = Counter(compiles=0, failed=0, edited=0)

    def hear(self, event: Event) -> None:
        match event:
            case Event(kind="run"):
                self._lead_to_page()
                self._write_index()
            case Event(kind="codegen", step=Step(source=Source() as source)):
                self._counts["edited"] += source.is_edited
            case Event(kind="compile_end", compile=Compile() as compile) if compile.run:
                self._kernels.add(compile.kernel)
                self._counts["compiles"] += 1
                self._counts["failed"] += compile.status is Status.FAILED
                self._write_summary(ended=False)
            case _:
                pass

    def close(self) -> None:
        self._write_summary(ended=True)
        remove(expired(self._home))
        self._write_index()

    def _write_summary(self, *, ended: bool) -> None:
        size = _nbytes(self._path) if ended else None
        summary = {"kernels": sorted(self._kernels), **self._counts, "ended": ended, "size": size}
        replace(self._path / _SUMMARY, json.dumps(summary).encode())

    def _write_index(self) -> None:
        try:
            write_index(self._home)
        except IsADirectoryError:
            if self._has_index:
                self._has_index = False
                self._warn(f"{self._home / INDEX} is a folder, so there is no list of the runs")

    def _lead_to_page(self) -> None:
        if not (self._path / PAGE).exists():
            return
        link, target = self._home / PAGE, f"{RECORDS}/{self._path.name}/{PAGE}"
        draft = files.draft_of(link)
        try:
            try:
                os.symlink(target, draft)
            except (OSError, NotImplementedError):
                draft.write_text(_LEADS_ON.format(escape(target)))
            os.replace(draft, link)
        except OSError as error:
            if error.errno not in (errno.EISDIR, errno.ENOTEMPTY):
                raise
            self._warn(f"{link} is a folder, so the newest page is found as {self._path / PAGE} only")
        finally:
            draft.unlink(missing_ok=True)


_LEADS_ON = '<!doctype html>\n<meta http-equiv="refresh" content="0; url={0}">\n<a href="{0}">the newest run</a>\n'


def replace(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Make this the content of a file, in one step; what a power cut would do to it does not matter."""
    draft = files.draft_of(path)
    try:
        with named(path), open(draft, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            file.write(content)
        try:
            os.replace(draft, path)
        except OSError as error:
            error.filename = str(path)
            raise
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Within the block, an error of the system that names no file names this one."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


# ---------------------------------------------------------------------------------------------- the runs of a script


@dataclass(frozen=True)
class RunInfo:
    """What is known of a run without reading it all."""

    path: Path
    head: Head
    kernels: tuple[str, ...] = ()
    compiles: int = 0
    failed: int = 0
    edited: int = 0
    ended: bool = False
    size: int | None = None

    @property
    def page(self) -> Path | None:
        """Its page, if it has one."""
        return self.path / PAGE if (self.path / PAGE).exists() else None

    @property
    def is_running(self) -> bool:
        """Whether its process may still write to it."""
        if self.ended:
            return False
        try:
            os.kill(self.head.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass
        return True

    @property
    def is_recent(self) -> bool:
        """Whether it was begun today; where many machines share a disk, this one does not see all processes."""
        return datetime.now(UTC) - datetime.fromisoformat(self.head.started) < timedelta(days=1)

    def nbytes(self) -> int:
        """What removing it sets free, as it was when the run ended."""
        return _nbytes(self.path) if self.size is None else self.size


def _nbytes(path: Path) -> int:
    """The bytes of a run: of a text that many files name, each name counts a part."""
    total = 0.0
    # another process may be removing it
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                status = os.lstat(os.path.join(folder, name))
                # one of the names of a text is the store's
                total += status.st_size / max(status.st_nlink - 1, 1)
    return round(total)


def runs(home: Path) -> list[RunInfo]:
    """The runs of a script, the newest first; `home` is its folder."""
    found = [info for path in (home / RECORDS).glob("run_*") if (info := _info(path)) is not None]
    return sorted(found, key=lambda info: (info.head.started, info.path.name), reverse=True)


def _info(path: Path) -> RunInfo | None:
    try:
        with open(path / journal.FILE, "rb") as file:
            entry = json.loads(file.readline())
        head = Head(**{**{key: entry[key] for key in entry if key != "k"}, "argv": tuple(entry["argv"])})
        summary: dict[str, Any] = json.loads((path / _SUMMARY).read_text()) if (path / _SUMMARY).exists() else {}
        return RunInfo(path, head, **{**summary, "kernels": tuple(summary.get("kernels", ()))})
    except (OSError, ValueError, KeyError, TypeError):  # it begins just now, is being removed, or is none of ours
        return None


def expired(home: Path, keep_runs: int = KEEP_RUNS, keep_bytes: int = KEEP_BYTES) -> list[RunInfo]:
    """The oldest runs beyond so many runs of each rank, and beyond so many bytes; never one that may go on."""
    kept: Counter[int | None] = Counter()
    total = 0
    found: list[RunInfo] = []
    for info in runs(home):
        goes_on = not info.ended and (info.is_running or info.is_recent)
        size = info.nbytes()
        if goes_on or (kept[info.head.rank] < keep_runs and total + size <= keep_bytes):
            kept[info.head.rank] += 1
            total += size
        else:
            found.append(info)
    return found


def remove(infos: Sequence[RunInfo]) -> None:
    """Remove these runs, and the texts that no other run names; edited sources lie elsewhere and stay."""
    for info in infos:
        shutil.rmtree(info.path, ignore_errors=True)
    for texts in {info.path.parent / TEXTS for info in infos}:
        for text in texts.glob("[!.]*"):  # a draft is somebody's who writes it just now
            with contextlib.suppress(OSError):
                if text.stat().st_nlink == 1:
                    text.unlink()


# ------------------------------------------------------------------------------------------------------- the index

_INDEX = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; font: 14px/1.5 system-ui, sans-serif }}
body {{ margin: 2rem auto; max-width: 70rem; padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: .3rem .8rem .3rem 0;
  text-align: left; vertical-align: top }}
td.number, th.number {{ text-align: right }}
</style>
<h1>{title}</h1>
{tables}
"""
_TABLE = """\
<table>
<thead><tr><th>run</th><th>process</th><th>mode</th><th>kernels</th><th class="number">compiles</th>\
<th class="number">failed</th><th class="number">edited</th><th>state</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>"""


def write_index(home: Path) -> None:
    """List the runs of a script in `index.html`, those of each rank together."""
    found = runs(home)
    ranks = sorted({info.head.rank for info in found}, key=lambda rank: -1 if rank is None else rank)
    tables: list[str] = []
    for rank in ranks:
        rows = "\n".join(_row(info) for info in found if info.head.rank == rank)
        heading = f"<h2>{'no rank' if rank is None else f'rank {rank}'}</h2>\n" if len(ranks) > 1 else ""
        tables.append(heading + _TABLE.format(rows=rows))
    title = escape(f"Runs of {home.name}")
    replace(home / INDEX, _INDEX.format(title=title, tables="\n".join(tables)).encode("utf-8", "replace"))


def _row(info: RunInfo) -> str:
    when = f"{info.head.started[:19].replace('T', ' ')} UTC"
    shown = (info.page or info.path / journal.FILE).name
    link = f'<a href="{escape(f"{RECORDS}/{info.path.name}/{shown}")}">{escape(when)}</a>'
    state = "ended" if info.ended else "goes on" if info.is_running else "did not end"
    cells = [link, str(info.head.pid), escape(info.head.mode), escape(", ".join(info.kernels))]
    numbers = [info.compiles, info.failed, info.edited]
    return (
        "<tr>"
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "".join(f'<td class="number">{number}</td>' for number in numbers)
        + f"<td>{state}</td></tr>"
    )
