# SPDX-License-Identifier: Apache-2.0
"""Caches for tests that want one of their own."""

from pathlib import Path

from tilekit import config


def new_cache(folder: Path) -> Path:
    """A cache that knows no kernel; the simulator's runtime, which takes seconds to build, is that of all tests."""
    runtime = config.resolve().cache_dir / "cpusim"
    runtime.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpusim").symlink_to(runtime)
    return folder
