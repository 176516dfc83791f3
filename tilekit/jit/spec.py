# SPDX-License-Identifier: Apache-2.0
"""A tensor's description, for compiling a kernel without data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilekit.dtypes import DataType


@dataclass(frozen=True)
class TensorSpec:
    """The dtype and shape of an argument that is not there; it counts as 16-byte aligned and row-major."""

    dtype: DataType
    shape: tuple[int, ...]


def spec(dtype: DataType, shape: Sequence[int]) -> TensorSpec:
    """Describe a tensor argument, to compile with no data: `handle.compile(8, spec(float16, (8, 128)))`.

    Examples
    --------
    >>> from tilekit.dtypes import float16
    >>> spec(float16, (8, 128)).shape
    (8, 128)
    """
    return TensorSpec(dtype, tuple(shape))
