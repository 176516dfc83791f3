# SPDX-License-Identifier: Apache-2.0
"""Builds the simulator's runtime, libtkcpu.so, once for each compiler and each version of its sources."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import filelock

from tilekit import config
from tilekit.toolchain.host import HostCompiler

INCLUDE = Path(__file__).parent.parent / "include"
"""The folder that holds `tk/`, the headers of kernels and of the runtime."""

_SOURCES = Path(__file__).parent / "src"
_LIBRARY = "libtkcpu.so"
_DIGEST = "digest.txt"
_DIGITS = 24


@dataclass(frozen=True)
class Runtime:
    """The runtime's library, and the seconds that building it took: 0.0 if it was there."""

    library: Path
    seconds: float


def build_runtime(cache_dir: Path, compiler: HostCompiler) -> Runtime:
    """Return the runtime for this compiler, built now if the cache does not have it; processes may race."""
    folder = cache_dir / "cpusim" / _key(compiler)
    if _is_whole(folder):
        return Runtime(folder / _LIBRARY, 0.0)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder.with_suffix(".lock")):
            if _is_whole(folder):  # another process was faster
                return Runtime(folder / _LIBRARY, 0.0)
            return Runtime(folder / _LIBRARY, _build(folder, compiler))
    except OSError as error:
        raise config.unwritable_cache(cache_dir, error) from error


def _build(folder: Path, compiler: HostCompiler) -> float:
    # it takes seconds, in which somebody may delete the cache
    with tempfile.TemporaryDirectory(prefix="tilekit-cpusim-") as elsewhere:
        made = Path(elsewhere) / _LIBRARY
        built = compiler.build_runtime(sorted(_SOURCES.glob("*.cpp")), made, include=INCLUDE)
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            shutil.copy(made, draft)
            (draft / _DIGEST).write_text(_digest(made))
            draft.chmod(0o755)  # mkdtemp makes it private; a shared cache is read by others
            shutil.rmtree(folder, ignore_errors=True)  # what lies there is damaged
            draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return built.seconds


def _is_whole(folder: Path) -> bool:
    try:
        return (folder / _DIGEST).read_text() == _digest(folder / _LIBRARY)
    except OSError:
        return False


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _key(compiler: HostCompiler) -> str:
    digest = hashlib.sha256(compiler.identity.encode())
    for file in _inputs():
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:_DIGITS]


def _inputs() -> Iterator[Path]:
    yield from sorted(_SOURCES.iterdir())
    yield from sorted((INCLUDE / "tk" / "cpu").iterdir())
