# SPDX-License-Identifier: Apache-2.0
"""A launch's arguments as bytes, one slot for each parameter: what `cuLaunchKernel` reads."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from tilekit import dtypes
from tilekit.diag import ArgumentError
from tilekit.dtypes import DataType, PointerType
from tilekit.runtime.manifest import Param

SLOT = 16  # bytes: the widest parameter, and what its type may ask to be aligned to

_CODES: dict[str, str] = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}


class Packer:
    """Writes the arguments of one kernel, pointers as addresses, into a buffer of `size` bytes.

    After those of a call come the addresses of `lent`, which the launch adds.
    """

    def __init__(self, kernel: str, params: Sequence[Param], lent: Sequence[Param] = ()) -> None:
        self.kernel = kernel
        self.params = (*params, *lent)
        self._given = len(params)
        self.size = SLOT * len(self.params)
        self.offsets = tuple(range(0, self.size, SLOT))
        codes = [_code(param) for param in self.params]
        self._struct = struct.Struct("<" + "".join(f"{code}{SLOT - struct.calcsize(code)}x" for code in codes))
        # small floats have no code of their own: they go in as bytes
        self._small = tuple(i for i, code in enumerate(codes) if code.endswith("s"))

    def check_count(self, arguments: Sequence[Any]) -> None:
        wanted, given = self._given, len(arguments)
        if wanted != given:
            raise ArgumentError("TK626", f"{self.kernel} takes {wanted} arguments, and {given} were given")

    def pack_into(self, buffer: Any, arguments: Sequence[Any]) -> None:
        """Write one value for each parameter and each address lent; a number that does not fit is an error."""
        values = arguments
        if self._small:
            values = list(arguments)
            for i in self._small:
                values[i] = scalar_bytes(self.kernel, self.params[i], arguments[i])
        try:
            self._struct.pack_into(buffer, 0, *values)
        except (struct.error, OverflowError, TypeError):
            raise self._wrong(arguments) from None

    def _wrong(self, arguments: Sequence[Any]) -> ArgumentError:
        """Say which argument could not be packed."""
        self.check_count(arguments[: self._given])
        for param, argument in zip(self.params, arguments, strict=True):
            try:
                scalar_bytes(self.kernel, param, argument)
            except ArgumentError as error:
                return error
        return ArgumentError("TK625", f"{self.kernel}: the arguments {arguments!r} cannot be passed")


def scalar_bytes(kernel: str, param: Param, argument: Any) -> bytes:
    """The bytes of one argument, as many as its type has; of a pointer, of its address."""
    try:
        code = _code(param)
        return _small_float(argument, param.dtype) if code.endswith("s") else struct.pack(f"<{code}", argument)
    except (struct.error, OverflowError, TypeError, ValueError):
        raise _misfit(kernel, param, argument) from None


def _code(param: Param) -> str:
    return "Q" if param.is_pointer else _CODES.get(param.dtype.name) or f"{param.dtype.nbytes}s"


def _small_float(value: Any, dtype: DataType | PointerType) -> bytes:
    import numpy as np

    assert isinstance(dtype, DataType)
    number = float(value)
    rounded = dtypes.convert(number, dtype)
    if math.isfinite(number) and not math.isfinite(rounded):
        raise OverflowError
    return np.array(rounded, dtypes.numpy_dtype(dtype)).tobytes()


def _misfit(kernel: str, param: Param, argument: Any) -> ArgumentError:
    dtype = param.dtype
    if isinstance(dtype, DataType) and isinstance(argument, (int, float)):
        why = f"does not fit {dtype.name}, which holds {dtype.min_value} to {dtype.max_value}"
        if dtype.is_integer() and not isinstance(argument, int):
            why = f"is no whole number, and {param.name} is of type {dtype.name}"
    else:
        why = f"is of type {type(argument).__name__}, and {param.name} is of type {param.type}"
    return ArgumentError("TK625", f"{kernel}: {param.name} = {argument!r} {why}")
