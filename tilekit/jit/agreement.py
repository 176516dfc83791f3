# SPDX-License-Identifier: Apache-2.0
"""Whether two tensors agree as far as rounding allows, where they first do not, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilekit.runtime import tensors
from tilekit.runtime.tensors import Library

# elements that are looked at together
_PIECE = 1 << 22
# a single element may differ by so many tolerances of its size or the usual one: what a norm would hide is found
_OUTLIER = 32
_FINEST = 1e-5  # of sums in float32, whose order nobody prescribes
_COARSEST = 2.0**-7  # inputs of less precision than bfloat16 are exact, and results are not as coarse


@dataclass(frozen=True)
class Agreement:
    """The relative error ‖mine - other‖ / ‖other‖; `difference` says where they differ, and is empty if they agree."""

    relative_error: float
    difference: str = ""


def tolerance(written: Sequence[Any], others: Sequence[Any]) -> float:
    """The relative error that rounding explains: twice the precision of the coarsest tensor of floats."""
    precise = [_precision(tensor) for tensor in written]
    precise += [min(_precision(tensor), _COARSEST) for tensor in others]
    coarsest = max(precise, default=0.0)
    return max(2 * coarsest, _FINEST if coarsest > 1e-12 else 1e-12)


def _precision(tensor: Any) -> float:
    dtype = tensors.facts(tensor).dtype
    return dtype.eps if dtype.is_float() else 0.0


def agree(name: str, mine: Any, other: Any, allowed: float) -> Agreement:
    """Compare two tensors of as many elements; whole numbers must be the same, and NaN agrees with NaN."""
    if math.prod(mine.shape) != math.prod(other.shape):
        shapes = f"{name} has the shape {list(mine.shape)}, and the other one {list(other.shape)}"
        return Agreement(math.inf, shapes)
    squares = size = count = 0.0
    for _, a, b in _pieces(mine, other):
        distance, finite = _distance(a, b), np.isfinite(b)
        squares += float((distance**2).sum())
        size += float((b[finite].astype(np.float64) ** 2).sum())
        count += int(finite.sum())
    error = 0.0 if squares == 0 else math.sqrt(squares / size) if size else math.inf
    usual = math.sqrt(size / count) if count else 0.0
    first, differing, shown = None, 0, ""
    for begin, a, b in _pieces(mine, other):
        apart, sizes = _distance(a, b), np.maximum(np.abs(np.where(np.isfinite(b), b, 0).astype(np.float64)), usual)
        off = apart > _OUTLIER * allowed * sizes
        if a.dtype.kind in "biu" and b.dtype.kind in "biu":
            off = a != b
        elif error > allowed:
            off = off | (apart > allowed * sizes)
        differing += int(off.sum())
        if first is None and off.any():
            at = int(np.argmax(off))
            first, shown = begin + at, _shown(a[at], b[at])
    if first is None and not error > allowed:
        return Agreement(error)
    # a great many small differences may be too much together
    place = "" if first is None else f"{name}{_index(first, mine.shape)} is {shown}; "
    total = math.prod(mine.shape)
    return Agreement(error, f"{place}{differing:,} of {total:,} elements differ, relative error {error:.2g}")


def _shown(mine: Any, other: Any) -> str:
    """Both values, in as many digits as tell them apart; whole numbers in all of them."""
    if mine.dtype.kind in "iu" and other.dtype.kind in "iu":
        return f"{mine} in place of {other}"
    texts = ((f"{mine:.{digits}g}", f"{other:.{digits}g}") for digits in (6, 9, 17))
    one, another = next((pair for pair in texts if pair[0] != pair[1]), (str(mine), str(other)))
    return f"{one} in place of {another}"


def _index(flat: int, shape: Sequence[int]) -> str:
    return f"[{', '.join(str(int(i)) for i in np.unravel_index(flat, tuple(shape)))}]" if len(shape) else ""


def _distance(a: Any, b: Any) -> Any:
    """How far apart; 0 for the same values, NaN and infinities too, and infinity where only one of them is finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    same = (a == b) | ((a != a) & (b != b))
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _pieces(mine: Any, other: Any) -> Iterator[tuple[int, Any, Any]]:
    """Pieces of both as NumPy arrays of types that NumPy knows, with the number of their first element."""
    a, b = mine.reshape(-1), other.reshape(-1)
    for begin in range(0, math.prod(mine.shape), _PIECE):
        end = begin + _PIECE
        yield begin, host(a[begin:end]), host(b[begin:end])


def host(tensor: Any) -> Any:
    """The values as a NumPy array of a dtype that NumPy compares: short floats are widened, exactly."""
    if tensors.library_of(tensor) is not Library.TORCH:
        return tensor if tensor.dtype.kind in "biuf" else tensor.astype(np.float32)
    on_cpu = tensor.detach().cpu()
    return (on_cpu.float() if on_cpu.is_floating_point() and on_cpu.element_size() < 4 else on_cpu).numpy()
