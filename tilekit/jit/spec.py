# SPDX-License-Identifier: Apache-2.0
"""A tensor's description, for compiling a kernel without data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilekit.diag import errors
from tilekit.dtypes import DataType


@dataclass(frozen=True)
class TensorSpec:
    """The dtype and shape of an argument that is not there; it counts as 16-byte aligned and row-major."""

    dtype: DataType
    shape: tuple[int, ...]


def spec(dtype: DataType, shape: Sequence[int]) -> TensorSpec:
    """Describe a tensor argument, to compile with no data: `handle.compile(8, spec(float16, (8, 128)))`.

    Raises
    ------
    ArgumentError
        TK623 for what is no dtype of tilekit or no shape.

    Examples
    --------
    >>> from tilekit.dtypes import float16
    >>> spec(float16, (8, 128)).shape
    (8, 128)
    """
    sizes = tuple(shape)
    if not isinstance(dtype, DataType):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise errors.ArgumentError("TK623", f"the dtype of a spec is one of tilekit's, such as float16, not {dtype!r}")
    if any(not isinstance(size, int) or size < 0 for size in sizes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise errors.ArgumentError("TK623", f"the shape of a spec is whole numbers from 0 on, not {shape!r}")
    return TensorSpec(dtype, sizes)
