# SPDX-License-Identifier: Apache-2.0
"""What every node of the tile IR has in common: identity, immutability, and a span that is in no key."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Self

from tilekit.diag.span import Span


@dataclass(frozen=True, eq=False)
class Node:
    """A node is compared by identity; `structurally_equal` compares by content, spans excepted."""

    span: Span | None = field(default=None, kw_only=True, repr=False, compare=False)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with these fields changed, or the node itself where every field already is that object."""
        if all(getattr(self, name) is value for name, value in changes.items()):
            return self
        return dataclasses.replace(self, **changes)
