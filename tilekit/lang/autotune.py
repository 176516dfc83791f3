# SPDX-License-Identifier: Apache-2.0
"""`@tilus.autotune`: the space of schedules that a kernel can be built with."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from tilekit.diag import errors

T = TypeVar("T", bound=type)


def autotune(names: str, values: Sequence[Any]) -> Callable[[T], T]:
    """Class decorator: give arguments of the script's `__init__` several values to choose from.

    Parameters
    ----------
    names
        One name, or several separated by commas.
    values
        The choices; with several names each choice is a tuple of as many values.

    Notes
    -----
    Decorators stack: the space is the product of them all.

    Examples
    --------
    >>> @autotune("block_m, block_n", [(64, 64), (128, 64)])
    ... @autotune("warps", [4, 8])
    ... class Kernel: ...
    >>> len(list(points(Kernel._autotune_space)))
    4
    """
    keys = tuple(name.strip() for name in names.split(","))
    if not all(key.isidentifier() for key in keys):
        raise errors.LanguageError("TK113", f"autotune needs argument names separated by commas, got {names!r}")
    if twice := next((key for i, key in enumerate(keys) if key in keys[:i]), None):
        raise errors.LanguageError("TK113", f"autotune({names!r}) names {twice!r} twice")
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise errors.LanguageError("TK113", f"autotune({names!r}) needs a list of choices, got {values!r}")
    if not values:
        raise errors.LanguageError("TK113", f"autotune({names!r}) has no choices")
    if len(keys) > 1:
        for choice in values:
            if not isinstance(choice, (tuple, list)) or len(cast("Sequence[Any]", choice)) != len(keys):
                raise errors.LanguageError(
                    "TK113", f"autotune({names!r}): each choice needs {len(keys)} values, got {choice!r}"
                )

    def decorate(cls: T) -> T:
        inherited: dict[tuple[str, ...], tuple[Any, ...]] = dict(getattr(cls, "_autotune_space", {}))
        taken = {name for group in inherited for name in group}
        for key in keys:
            if key in taken:
                raise errors.LanguageError("TK113", f"{cls.__name__}: autotune names {key!r} twice")
        # a new dict, so that a subclass does not change the space of its parent
        cls._autotune_space = {keys: tuple(values), **inherited}
        return cls

    return decorate


def points(space: Mapping[tuple[str, ...], tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Every combination of choices, the last decorator varying fastest."""
    groups = list(space)
    found: list[dict[str, Any]] = []
    for picked in itertools.product(*space.values()):
        point: dict[str, Any] = {}
        for names, choice in zip(groups, picked, strict=True):
            point.update(zip(names, choice if len(names) > 1 else (choice,), strict=True))
        found.append(point)
    return found


def schedules(cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The arguments of `__init__` for every point of the space: the user's, the point's, the defaults.

    A class attribute `debug_schedule` replaces the space by one point.
    """
    pinned: Mapping[str, Any] | None = getattr(cls, "debug_schedule", None)
    space = points(getattr(cls, "_autotune_space", {})) if pinned is None else [dict(pinned)]
    signature = inspect.signature(cls.__init__)
    found: list[dict[str, Any]] = []
    for point in space:
        clash = sorted(set(point) & set(kwargs))
        if clash:
            raise errors.LanguageError(
                "TK113",
                f"{cls.__name__}: {clash[0]} is given in the call and also by autotune",
                help="remove one of them",
            )
        try:
            bound = signature.bind(None, *args, **kwargs, **point)
        except TypeError as problem:
            raise errors.LanguageError(
                "TK104",
                f"{cls.__name__}.__init__{signature} cannot be called with {_call(args, kwargs, point)}: {problem}",
            ) from None
        bound.apply_defaults()
        arguments = dict(bound.arguments)
        del arguments[next(iter(signature.parameters))]
        found.append(arguments)
    return found


def _call(args: Sequence[Any], kwargs: Mapping[str, Any], point: Mapping[str, Any]) -> str:
    named = {**kwargs, **point}
    return "(" + ", ".join([*map(repr, args), *(f"{key}={value!r}" for key, value in named.items())]) + ")"
