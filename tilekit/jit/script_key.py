# SPDX-License-Identifier: Apache-2.0
"""Arguments of a script as a dictionary key that tells 1, 1.0 and True apart, and 0.0 from -0.0."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, cast

from tilekit.diag import errors


def normalize(value: Any) -> Hashable:
    """`value` with its types, sequences as tuples and mappings sorted by key."""
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return ("mapping", tuple(sorted((str(key), normalize(item)) for key, item in items)))
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(normalize(item) for item in cast("list[Any]", value)))
    if not isinstance(value, Hashable):
        raise errors.ArgumentError(
            "TK632",
            f"a script cannot take {value!r}: an argument must be hashable, so that the kernel can be found again",
        )
    # as numbers -0.0 is 0.0, and a nan not even itself
    return (type(value), value.hex() if isinstance(value, float) else value)
