# SPDX-License-Identifier: Apache-2.0
"""Checks of shapes and dimensions that all layouts share, and the error they raise."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence


class LayoutOperationError(ValueError):
    """A layout, or an operation on layouts, that does not exist."""


def integers(what: str, values: Sequence[int]) -> tuple[int, ...]:
    """`values` as Python integers, or an error that says that they are known at run time only."""
    try:
        return tuple(operator.index(value) for value in values)
    except TypeError:
        raise LayoutOperationError(f"{what} must be compile-time integers, got {list(values)}") from None


def extents(what: str, values: Sequence[int]) -> tuple[int, ...]:
    """`values` as the extents of a shape: integers from 1 on."""
    result = integers(what, values)
    if any(extent < 1 for extent in result):
        raise LayoutOperationError(f"{what} {list(result)} must have positive extents")
    return result


def dimensions(dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """`dims` as distinct dimensions of a shape of `rank`."""
    result = integers("dims", dims)
    if any(not 0 <= dim < rank for dim in result):
        raise LayoutOperationError(f"dims {list(result)} must be at least 0 and below the rank {rank}")
    if len(set(result)) != len(result):
        raise LayoutOperationError(f"dims {list(result)} name a dimension twice")
    return result


def permutation(dims: Sequence[int], rank: int) -> tuple[int, ...]:
    """`dims` as all dimensions of a shape of `rank`, in their order."""
    result = dimensions(dims, rank)
    if len(result) != rank:
        raise LayoutOperationError(f"dims {list(result)} must name each of the {rank} dimensions")
    return result


def reshaped(layout: object, size: int, shape: Sequence[int]) -> tuple[int, ...]:
    """`shape` as another one for the elements of `layout`, which are `size`."""
    result = extents("shape", shape)
    if math.prod(result) != size:
        raise LayoutOperationError(f"cannot reshape {layout}, of {size} elements, to shape {list(result)}")
    return result


def broadcast(shape: Sequence[int], result: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """How many leading dimensions `result` has more than `shape`, and along which further ones `shape` is stretched."""
    leading = len(result) - len(shape)
    if leading < 0 or any(have not in (1, want) for have, want in zip(shape, result[leading:], strict=True)):
        raise LayoutOperationError(f"shape {list(shape)} does not broadcast to {list(result)}")
    return leading, tuple(leading + dim for dim, have in enumerate(shape) if have != result[leading + dim])
