# SPDX-License-Identifier: Apache-2.0
"""Files that people edit: read as they are, replaced whole or not at all, put away where text was typed."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import filelock

_BOM = b"\xef\xbb\xbf"
_DRAFT = ".tilekit-draft"
_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Readable:
    """A text, without byte order mark and with plain line ends, and the bytes that it was read from."""

    raw: bytes
    text: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something that is there and is no text, and why; a folder has no bytes."""

    why: str
    raw: bytes | None = None


Content: TypeAlias = Readable | Unreadable | None


def read(path: Path) -> Content:
    """What is there; None if nothing is."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            return Unreadable("is a folder" if stat.S_ISDIR(status.st_mode) else "is no ordinary file")
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        # where a name is too long, there is no file
        return None if error.errno == errno.ENAMETOOLONG else Unreadable(f"cannot be read: {error.strerror}")
    # the mode, not os.access: a file marked read-only is respected also by a root that could write it
    return _decoded(raw, read_only=not status.st_mode & 0o222)


def _decoded(raw: bytes, read_only: bool) -> Content:
    body = raw.removeprefix(_BOM)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        offset = error.start + len(raw) - len(body)
        line = raw.count(b"\n", 0, offset) + 1
        return Unreadable(f"is not UTF-8: byte 0x{raw[offset]:02x} at offset {offset}, in line {line}", raw)
    return Readable(raw, text.replace("\r\n", "\n").replace("\r", "\n"), read_only)


def replace(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Make this the content of the file, in one step; if it is to be durable, it is on the disk when this returns."""
    draft = draft_of(path, _DRAFT)
    try:
        with open(draft, "xb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            os.chmod(draft, stat.S_IMODE(os.lstat(path).st_mode))
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    if durable:
        _settle(path.parent)


def draft_of(path: Path, ending: str = "") -> Path:
    """A hidden name beside a file that nobody else has; what is written there then takes the place of the file."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{ending}")


def reason(error: OSError) -> str:
    """Why something cannot be read or written, with the number by its name."""
    number = "" if error.errno is None else f" ({errno.errorcode.get(error.errno, error.errno)})"
    return f"{error.strerror or error}{number}"


def put_away(file: Path, contents: Mapping[str, bytes]) -> dict[str, Path]:
    """Write each content beside `file`, under a suffix, all with the first number whose names are free.

    A name that holds the very same bytes is free, too: then whoever did this was stopped before it was done.
    """
    for number in itertools.count(1):
        places = {suffix: beside(file, suffix, number) for suffix in contents}
        if all(_is_free(place, contents[suffix]) for suffix, place in places.items()):
            for suffix, place in places.items():
                if not place.exists():
                    replace(place, contents[suffix])
            return places
    raise AssertionError("numbers do not end")


def move_away(path: Path, file: Path, suffix: str) -> Path:
    """Rename whatever is at `path`, be it a folder, to the first free name beside `file`."""
    place = next(place for number in itertools.count(1) if not os.path.lexists(place := beside(file, suffix, number)))
    os.rename(path, place)
    _settle(path.parent)
    return place


def beside(file: Path, suffix: str, number: int = 1) -> Path:
    """`codegen.cpp.bak`, then `codegen.cpp.bak.2`, and so on."""
    return file.with_name(file.name + suffix + (f".{number}" if number > 1 else ""))


@contextlib.contextmanager
def locked(folder: Path, patience_s: float) -> Iterator[None]:
    """Keep every other thread and process out of the folder; a holder that dies lets go.

    Raises OSError where the folder cannot be written, TimeoutError where somebody else holds it for too long.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / ".lock", thread_local=False)
    try:
        lock.acquire(timeout=patience_s, poll_interval=_POLL_S)
    except NotImplementedError as error:
        raise OSError(f"no locks in {folder}") from error
    try:
        for draft in folder.glob(f".*{_DRAFT}"):  # of a process that was killed
            draft.unlink(missing_ok=True)
        yield
    finally:
        lock.release()


def _is_free(place: Path, content: bytes) -> bool:
    if not os.path.lexists(place):
        return True
    found = read(place)
    return isinstance(found, Readable) and found.raw == content


def _settle(folder: Path) -> None:
    """Order on the disk what was renamed: the next file must not be newer than this one after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # some file systems have no such thing
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
