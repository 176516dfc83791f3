# SPDX-License-Identifier: Apache-2.0
"""Promises that are not kept yet: each says which step of the plan keeps it, and then its test must pass."""

from types import ModuleType
from typing import Any

import pytest

from tilekit.diag import TilekitError


def due(step: int, reason: str) -> pytest.MarkDecorator:
    """Mark a test as failing until `step` is done; it fails as soon as it passes while it carries the mark."""
    # a test that dies of anything else is a broken test, not an open promise
    fails_with = (AssertionError, TilekitError)
    return pytest.mark.xfail(strict=True, reason=f"step {step}: {reason}", raises=fails_with)


def promised(home: ModuleType | type | object, name: str) -> Any:
    """What `home` calls `name`, once it does."""
    assert hasattr(home, name), f"there is no {name} yet"
    return getattr(home, name)
