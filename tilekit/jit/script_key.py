# SPDX-License-Identifier: Apache-2.0
"""Arguments of a script as a dictionary key that tells 1, 1.0 and True apart, and 0.0 from -0.0, at any depth."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Hashable, Mapping, MutableMapping, MutableSet
from collections.abc import Set as AbstractSet
from types import ModuleType
from typing import Any, cast

from tilekit.diag import errors
from tilekit.dtypes import DataType


def normalize(value: Any) -> Hashable:
    """`value` with its types, sequences as tuples, and mappings and sets without an order."""
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return ("mapping", frozenset((normalize(key), normalize(item)) for key, item in items))
    if isinstance(value, (list, tuple)):
        return (type(value), tuple(normalize(item) for item in cast("list[Any]", value)))
    if isinstance(value, AbstractSet):
        return (type(value), frozenset(map(normalize, cast("AbstractSet[Any]", value))))
    if not isinstance(value, Hashable):
        raise errors.ArgumentError(
            "TK632",
            f"a script cannot take {value!r}: an argument must be hashable, so that the kernel can be found again",
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and type(value).__eq__ is not object.__eq__:
        # two objects may be equal whose fields are 1 and True
        return (value, tuple(normalize(getattr(value, field.name)) for field in dataclasses.fields(value)))
    if isinstance(value, (float, complex)) or _is_numpy_number(value):
        # as numbers -0.0 is 0.0, and a nan not even itself
        return (type(value), repr(value))
    if type(value).__hash__ is object.__hash__ and not isinstance(value, (type, ModuleType)):
        # the same object may say something else by now
        said: dict[str, Any] = getattr(value, "__dict__", {})
        return (value, frozenset((name, normalize(plain)) for name, plain in said.items() if _is_plain(plain)))
    return (type(value), value)


def snapshot(value: Any) -> Any:
    """`value` as it is now: with lists, sets and dictionaries of its own, at any depth."""
    kind: type = type(value)
    if kind in (list, tuple):
        return kind(map(snapshot, value))
    if kind is dict:
        return {key: snapshot(item) for key, item in value.items()}
    return copy.copy(value) if isinstance(value, (list, MutableMapping, MutableSet)) else value


def _is_plain(value: Any) -> bool:
    """Whether it is a value that holds nothing else."""
    return value is None or isinstance(value, (int, float, complex, str, bytes, DataType)) or _is_numpy_number(value)


def _is_numpy_number(value: Any) -> bool:
    kind: type = type(value)
    return any(base.__module__ == "numpy" and base.__name__ == "generic" for base in kind.__mro__)
