# SPDX-License-Identifier: Apache-2.0
"""What kind of argument each parameter of an instruction takes, read from the annotations of its method.

Asked before the method runs, so that a wrong argument is named as such wherever the method would have stumbled on it
or, worse, would not. Numbers, and the tensors that an instruction is about, are left to the method: it knows what to
do instead.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.dtypes import DataType
from tilekit.ir.layout import RegisterLayout
from tilekit.ir.surface import describe
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.lowir.scalar import Expr

# in words, and what to write
_WORDS: Mapping[Any, str] = {
    bool: "True or False",
    int: "an integer known at compile time",
    str: "a string known at compile time",
    DataType: "a type such as float32",
    Sequence: "a list",
    RegisterTensor: "a tile",
    SharedTensor: "a shared tensor",
    GlobalTensor: "a global tensor",
    RegisterLayout: "a register layout",
    GlobalLayout: "a global layout",
    types.NoneType: "None",
}


def check(name: str, method: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Raise a `LanguageError` for the first argument that is not of the kind that its parameter takes."""
    kinds = _kinds(method)
    for parameter, value in arguments.items():
        wanted = kinds.get(parameter)
        if wanted is None or any(_is_one(value, kind) for kind in wanted):
            continue
        code = "TK106" if isinstance(value, Expr) and not set(wanted).isdisjoint((bool, int, str)) else "TK215"
        words = " or ".join(_WORDS[kind] for kind in wanted if kind is not types.NoneType)
        raise errors.LanguageError(
            code, f"{name}: {parameter} needs {words}, got {describe(value)}", help=_instead(value, wanted)
        )


def _instead(value: Any, wanted: Sequence[Any]) -> str | None:
    """What to write, where that can be guessed."""
    if Sequence in wanted and isinstance(value, int):
        return f"write [{value!r}]"
    if DataType in wanted and isinstance(value, str) and isinstance(getattr(dtypes, value, None), DataType):
        return f"write {value}, without quotes"
    return None


def _is_one(value: Any, kind: Any) -> bool:
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if kind is Sequence:
        return hasattr(value, "__iter__") and not isinstance(value, (str, Expr, Tensor))
    return isinstance(value, kind)


@functools.cache
def _kinds(method: Callable[..., Any]) -> Mapping[str, tuple[Any, ...]]:
    """The kinds of each parameter that can be told apart here."""
    hints = typing.get_type_hints(method)
    found: dict[str, tuple[Any, ...]] = {}
    for name, parameter in inspect.signature(method).parameters.items():
        if name not in hints or parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            continue
        kinds = tuple(_origin(part) for part in _union(hints[name]))
        is_tensor = any(kind in kinds for kind in (RegisterTensor, SharedTensor, GlobalTensor))
        is_subject = is_tensor and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        if not is_subject and all(kind in _WORDS for kind in kinds):
            found[name] = kinds
    return found


def _union(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _origin(hint: Any) -> Any:
    return Sequence if typing.get_origin(hint) is Sequence else hint
