# SPDX-License-Identifier: Apache-2.0
"""Every test has a cache folder of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.caches import in_force


@pytest.fixture(autouse=True)
def cache(tmp_path: Path) -> Iterator[Path]:
    """An empty cache folder, in force for the test."""
    with in_force(tmp_path / "cache") as folder:
        yield folder
