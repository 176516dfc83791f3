# SPDX-License-Identifier: Apache-2.0
"""Caches and options for tests that want their own."""

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
    with options_kept():
        option.cache_dir(folder)
        yield folder


@contextmanager
def options_kept() -> Iterator[None]:
    """Within the block, options may be set; then they are as they were."""
    before = dict(config.session_defaults())
    try:
        yield
    finally:
        config.clear_session_defaults()
        for name, value in before.items():
            config.set_session_default(name, value)
