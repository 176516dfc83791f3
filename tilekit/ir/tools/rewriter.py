# SPDX-License-Identifier: Apache-2.0
"""Replacing tensors and scalar variables in IR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from tilekit.ir.functors.functor import Substitution

T = TypeVar("T")


def rewrite(node: T, replacements: Mapping[Any, Any]) -> T:
    """`node` with every key of `replacements` (a tensor, a node or a scalar variable) replaced by its value."""
    return Substitution(replacements).visit(node)
