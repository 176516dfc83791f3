# SPDX-License-Identifier: Apache-2.0
"""Random layouts, small enough to look at every element of."""

import itertools
import math

import numpy as np
from hypothesis import strategies as st

from tilekit.ir.layout.register_layout import RegisterLayout
from tilekit.ir.layout.shared_layout import SharedLayout, Swizzle

EXTENTS = (1, 2, 3, 4, 6, 8)
BINARY_EXTENTS = (1, 2, 4, 8)


def extents(max_rank=3, max_size=64, of=EXTENTS):
    """Shapes with at most `max_size` elements."""
    return (
        st.lists(st.sampled_from(of), max_size=max_rank).map(tuple).filter(lambda shape: math.prod(shape) <= max_size)
    )


@st.composite
def layouts(draw, shape=None, max_replicas=6):
    """Any layout of `shape`, not in canonical form."""
    shape = draw(extents()) if shape is None else shape
    mode_shape = list(itertools.chain.from_iterable(draw(factorizations(extent)) for extent in shape))
    modes = draw(st.permutations(range(len(mode_shape))))
    cut = draw(st.integers(0, len(modes)))
    spatial = list(modes[:cut])
    for replicas in draw(st.lists(st.sampled_from([1, 2, 3]), max_size=2)):
        if math.prod(-m for m in spatial if m < 0) * replicas <= max_replicas:
            spatial.insert(draw(st.integers(0, len(spatial))), -replicas)
    return RegisterLayout(tuple(shape), tuple(mode_shape), tuple(spatial), tuple(modes[cut:]))


@st.composite
def factorizations(draw, extent):
    """A list of factors, 1 among them at times, of `extent`."""
    factors = [1] if draw(st.integers(0, 9)) == 0 else []
    while extent > 1:
        factor = draw(st.sampled_from([f for f in range(2, extent + 1) if extent % f == 0]))
        factors.append(factor)
        extent //= factor
    return factors


@st.composite
def broadcasts(draw, shape):
    """A shape that broadcasts to `shape`."""
    kept = [draw(st.sampled_from([1, extent])) for extent in shape]
    leading = draw(st.integers(0, len(shape))) if draw(st.booleans()) else 0
    return tuple(kept[leading:])


def places(layout):
    """Every (thread, register) with the index of its element."""
    return {
        (thread, register): layout.get_global(local_index=register, spatial_index=thread)
        for thread in range(layout.spatial_size)
        for register in range(layout.local_size)
    }


def indices(shape):
    return itertools.product(*map(range, shape))


SWIZZLES = st.builds(
    lambda base, bits, more: Swizzle(base, bits, bits + more), st.integers(0, 2), st.integers(1, 2), st.integers(0, 1)
)
SWIZZLE_OR_NONE = st.none() | SWIZZLES


@st.composite
def shared_layouts(draw, shape=None, swizzles=SWIZZLE_OR_NONE):
    """Any layout of `shape` in shared memory, its modes in any order and with gaps, not in canonical form."""
    shape = draw(extents()) if shape is None else shape
    mode_shape = list(itertools.chain.from_iterable(draw(factorizations(extent)) for extent in shape))
    strides = [0] * len(mode_shape)
    span = 1
    for mode in draw(st.permutations(range(len(mode_shape)))):
        strides[mode] = span
        span = span * mode_shape[mode] + (draw(st.integers(0, 3)) if draw(st.integers(0, 4)) == 0 else 0)
    return SharedLayout(tuple(shape), tuple(mode_shape), tuple(strides), draw(swizzles))


def grids(layout):
    """Where the elements lie, for many places where the tile may start: all that a layout says."""
    index = np.indices(layout.shape)
    return [np.zeros(layout.shape, dtype=int) + layout(*index, start=start) for start in range(130)]
