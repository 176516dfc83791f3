# SPDX-License-Identifier: Apache-2.0
"""The files of traced runs: a folder for each run of a script, with its journal, its page and what each pass was given.

    <folder>/<script>/report.html                   leads to the page of the newest run
    <folder>/<script>/index.html                    lists the runs
    <folder>/<script>/.run_records/run_<when>_<pid>/journal.jsonl, report.html, <phase>/<NN>_<pass>_{before,after}.tir

A text lies on the disk once for all runs of a script: the `.tir` files that have it are names of one read-only file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

from tilekit.config import TraceMode
from tilekit.tools.lower_trace import failures, journal, naming, shelf
from tilekit.tools.lower_trace.journal import Head, Step, Text
from tilekit.tools.lower_trace.page import GrowingPage
from tilekit.tools.lower_trace.recording import Event, Listener, Recording
from tilekit.tools.lower_trace.settings import Settings
from tilekit.tools.lower_trace.shelf import Shelf

_ENDINGS = {"tile": ".tir", "hidet": ".tir", "cuda": ".cpp", "ptx": ".ptx", "sass": ".sass"}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.#-]{0,99}")
_ATTEMPTS = 3
# a file system that has no hard links, or no more of them for this file
_NO_LINK = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run that goes on; `path` is where its files are, or None if they cannot be written."""

    recording: Recording
    script_folder: Path
    path: Path | None

    @property
    def page(self) -> Path | None:
        """The page, if there is one."""
        return self._file(shelf.PAGE)

    @property
    def journal(self) -> Path | None:
        """The journal, if there is one."""
        return self._file(journal.FILE)

    def _file(self, name: str) -> Path | None:
        return None if self.path is None or not (self.path / name).exists() else self.path / name


def open_run(settings: Settings, listeners: Sequence[Listener], warn: Callable[[str], None]) -> RunFolder:
    """Begin a run of this process; it ends when its recording is closed.

    Parameters
    ----------
    settings
        Where its folder is made, and whether it has a page.
    listeners
        Who hears of it besides its files, and goes on where those cannot be written.
    warn
        Told once what went wrong.
    """
    now = datetime.now(UTC)
    head, home = new_head(settings.mode, now), home_of(naming.script_name(), settings.folder)
    path, files = None, list[Listener]()

    def written_to(path: Path) -> list[Listener]:
        written: list[Listener] = [JournalFile(path / journal.FILE), Dumps(path, home / shelf.RECORDS / shelf.TEXTS)]
        if settings.mode.makes_page:
            written += _pages(path, head.script, warn)
        return [*written, Shelf(home, path, warn)]

    def anew() -> list[Listener] | None:
        if path is None or (path / journal.FILE).exists():
            return None
        path.mkdir(parents=True, exist_ok=True)
        return written_to(path)

    try:
        path = _new_folder(home / shelf.RECORDS, now)
        files = written_to(path)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        with contextlib.suppress(Exception):
            warn(f"the trace is not written: {failures.why_not(error) if isinstance(error, OSError) else error}")
    path = path if files else None
    head = replace(head, folder=None if path is None else str(path))
    return RunFolder(Recording(head, [*files, *listeners], warn, anew), home, path)


def _pages(path: Path, title: str, warn: Callable[[str], None]) -> list[Page]:
    try:
        return [Page(path / shelf.PAGE, path / journal.FILE, title)]
    except ImportError as error:  # a clone in which the viewer was never built
        warn(f"the trace has no page: {error}")
        return []


def new_head(mode: TraceMode, now: datetime) -> Head:
    """What this process says of itself."""
    return Head(
        version=sys.modules["tilekit"].__version__,
        script=naming.script_name(),
        argv=tuple(sys.argv),
        cwd=_working_directory(),
        pid=os.getpid(),
        rank=_rank(os.environ),
        started=now.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        mode=mode.value,
    )


def home_of(script: str, folder: Path) -> Path:
    """Where the traces of a script are, among those of all scripts.

    TileLang keeps its own by the same names: in a process that has both, and beside a folder that is TileLang's, ours
    has a name of its own.
    """
    plain = folder / script
    is_others = "tilelang" in sys.modules or _is_others(plain)
    return plain.with_name(f"{plain.name}.tilekit") if is_others else plain


def _is_others(home: Path) -> bool:
    runs = (home / shelf.RECORDS).glob("run_*")
    try:
        return any((run / shelf.PAGE).exists() and not (run / journal.FILE).exists() for run in runs)
    except OSError:  # it cannot be read; whoever writes there says so
        return False


def _new_folder(records: Path, now: datetime) -> Path:
    records.mkdir(parents=True, exist_ok=True)
    while True:
        path = records / f"run_{now.astimezone():%Y%m%d_%H%M%S_%f}_{os.getpid()}"
        try:
            path.mkdir()
        except FileExistsError:  # begun in the same microsecond
            now = datetime.now(UTC)
        else:
            return path


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""


def _rank(environment: Mapping[str, str]) -> int | None:
    rank = environment.get("RANK", "")
    return int(rank) if rank.isdecimal() else None


# -------------------------------------------------------------------------------------------------- what is written


class JournalFile(Listener):
    """The journal on the disk: each event is appended at once, so what a process leaves that dies is whole."""

    on_disk = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o666
        )

    def hear(self, event: Event) -> None:
        content = "".join(f"{line}\n" for line in event.lines).encode()
        with shelf.named(self._path):
            assert self._descriptor is not None, "nobody tells a listener that is closed"
            # what is written into a deleted file is gone with it; some file systems count no names
            if not os.fstat(self._descriptor).st_nlink and not self._path.exists():
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            while content:
                content = content[os.write(self._descriptor, content) :]

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:  # the number may be another file's by now
            os.close(descriptor)

    let_go = close


class Dumps(Listener):
    """The text before and after each step, in a folder for each phase, numbered through the run."""

    on_disk = True

    def __init__(self, folder: Path, texts: Path) -> None:
        self._folder = folder
        self._texts = texts

    def hear(self, event: Event) -> None:
        match event:
            case Event(kind="pass_begin", step=Step() as step, text=Text() as text):
                self._write(step, text, "before", step.languages[0])
            case Event(kind="pass_end", step=Step() as step, text=Text() as text):
                self._write(step, text, "after", step.languages[1])
            case _:
                pass

    def _write(self, step: Step, text: Text, side: str, language: str) -> None:
        name = "codegen" if step.base_phase == "codegen" else file_name(step.name)
        place = self._folder / file_name(step.phase) / f"{step.index:02d}_{name}_{side}{_ENDINGS[language]}"
        stored = self._texts / text.id
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileNotFoundError):
                return _link(stored, place, text)
            # the first of its phase, or a text that nobody has had yet or that was cleared away just now
            place.parent.mkdir(exist_ok=True)
            self._texts.mkdir(exist_ok=True)
            if not stored.exists():
                shelf.replace(stored, text.raw, mode=0o444)
        _link(stored, place, text)


def _link(stored: Path, place: Path, text: Text) -> None:
    try:
        os.link(stored, place)
    except FileExistsError:  # of a step that is told again, since the journal alone was deleted
        return
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        place.write_bytes(text.raw)


class Page(Listener):
    """The page of the run: it grows with each event, and is made compact at the end."""

    on_disk = True

    def __init__(self, file: Path, journal_file: Path, title: str) -> None:
        self._file = file
        self._journal = journal_file
        self._title = title
        self._page: GrowingPage | None = None
        self._lines: list[str] = []

    def hear(self, event: Event) -> None:
        if self._page is None:
            self._page = GrowingPage(self._file, self._title)
        self._lines += event.lines
        # a pass that has begun is written, too: it may be the one that ends the process
        if event.kind not in ("compile", "note"):
            with shelf.named(self._file):
                self._page.add(self._lines)
            self._lines = []

    def close(self) -> None:
        if self._page is not None:
            self._page.compact(self._journal.read_text())

    def let_go(self) -> None:
        if self._page is not None:
            self._page.close()


def file_name(name: str) -> str:
    """The name as one part of a path: itself if that is harmless, else with its digest, so that no two are one."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{re.sub(r'[^A-Za-z0-9_]+', '_', name)[:60] or 'unnamed'}-{digest}"
