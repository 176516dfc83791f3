# SPDX-License-Identifier: Apache-2.0
"""Caches for tests that want one of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tilekit import config, option


def new_cache(folder: Path) -> Path:
    """A cache that knows no kernel; the simulator's runtime, which takes seconds to build, is that of all tests."""
    runtime = config.resolve().cache_dir / "cpusim"
    runtime.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpusim").symlink_to(runtime)
    return folder


@contextmanager
def in_force(folder: Path) -> Iterator[Path]:
    """Use this cache folder for a while."""
    before = dict(config._session)
    option.cache_dir(folder)
    try:
        yield folder
    finally:
        config.clear_session_defaults()
        for name, value in before.items():
            config.set_session_default(name, value)
