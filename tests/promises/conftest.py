# SPDX-License-Identifier: Apache-2.0
"""Every test has a cache folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tilekit import config, option


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder, in force for the test."""
    before = dict(config._session)
    folder = tmp_path / "cache"
    option.cache_dir(folder)
    yield folder
    config._session.clear()
    config._session.update(before)
