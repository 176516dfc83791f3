# SPDX-License-Identifier: Apache-2.0
"""Tables for pandas, which tilekit itself does not need."""

from __future__ import annotations

import importlib
from types import ModuleType

from tilekit.diag.errors import ArgumentError


def load_pandas() -> ModuleType:
    """The module; an ArgumentError TK638 where it is not installed."""
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise ArgumentError(
            "TK638", "pandas is not installed, and to_pandas makes a data frame of it", help="pip install pandas"
        ) from None
