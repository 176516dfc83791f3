# SPDX-License-Identifier: Apache-2.0
"""The manifest beside a `source.cu`: all that a launch needs to know and that device code does not say.

It is JSON that a person can read. The parameters stand in the order of the kernel's; the grid is integer Python over
the integer ones.
"""

from __future__ import annotations

import functools
import json
import keyword
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from operator import index
from typing import Any

from tilekit import dtypes
from tilekit.diag import ArgumentError, CacheError, LanguageError, LaunchError
from tilekit.dtypes import DataType, PointerType
from tilekit.runtime import grid

# the boundary in bytes that a workspace begins at
WORKSPACE_ALIGNMENT = 128


@dataclass(frozen=True)
class Param:
    """A parameter: its type as text (`int32`, `~float16`, `void_p`), and what the kernel does behind a pointer."""

    name: str
    type: str
    written: bool = False
    read: bool = True

    @functools.cached_property
    def dtype(self) -> DataType | PointerType:
        return dtypes.parse_type(self.type)

    @property
    def is_pointer(self) -> bool:
        return isinstance(self.dtype, PointerType)

    @property
    def is_integer(self) -> bool:
        return isinstance(self.dtype, DataType) and (self.dtype.is_integer() or self.dtype.is_boolean())


@dataclass(frozen=True)
class Workspace:
    """Global memory that a launch lends to the kernel, at the end of its parameters.

    `nbytes` is integer Python over the integer parameters. One that is `clean` is zero at the first launch, and every
    launch leaves it so.
    """

    name: str
    nbytes: str
    clean: bool


@dataclass(frozen=True)
class SharedPlace:
    """Where a tensor lies in shared memory, in bytes; `dtype` and `layout` as text."""

    name: str
    offset: int
    nbytes: int
    dtype: str
    layout: str


@dataclass(frozen=True)
class Manifest:
    """How to launch one kernel; `shared_bytes` is dynamic shared memory, `block` the number of threads."""

    kernel: str
    params: tuple[Param, ...]
    grid: tuple[str, str, str]
    block: int
    shared_bytes: int
    target: str
    workspaces: tuple[Workspace, ...] = ()
    shared: tuple[SharedPlace, ...] = ()

    @functools.cached_property
    def integers(self) -> tuple[int, ...]:
        """Positions of the integer parameters: what the grid is a function of."""
        return tuple(i for i, param in enumerate(self.params) if param.is_integer)

    @functools.cached_property
    def grid_function(self) -> grid.GridFunction:
        return grid.compile_grid(self.grid, [self.params[i].name for i in self.integers])

    @functools.cached_property
    def lent(self) -> tuple[Param, ...]:
        """The parameters that a launch adds to those of the call: a pointer to each workspace."""
        return tuple(Param(workspace.name, "void_p", written=True) for workspace in self.workspaces)

    @functools.cached_property
    def workspace_function(self) -> Callable[..., tuple[int, ...]]:
        names = [self.params[i].name for i in self.integers]
        return grid.compile_counts([workspace.nbytes for workspace in self.workspaces], names)

    def workspace_bytes(self, arguments: Sequence[Any]) -> tuple[int, ...]:
        """How large each workspace is in a launch with these arguments, in whole units of its alignment."""
        if not self.workspaces:
            return ()
        wanted = self.workspace_function(*[index(arguments[i]) for i in self.integers])
        return tuple(max(-(-nbytes // WORKSPACE_ALIGNMENT), 1) * WORKSPACE_ALIGNMENT for nbytes in wanted)

    def extents(self, arguments: Sequence[Any]) -> grid.Grid:
        """The checked grid of a launch with these arguments, one for each parameter; a zero means no launch at all."""
        try:
            extents = self.grid_function(*[index(arguments[i]) for i in self.integers])
        except TypeError:
            i = next(i for i in self.integers if not hasattr(arguments[i], "__index__"))
            wrong = f"{self.params[i].name} = {arguments[i]!r} is no whole number"
            raise ArgumentError("TK625", f"{self.kernel}: {wrong}, and it is of type {self.params[i].type}") from None
        except ZeroDivisionError:
            values = ", ".join(f"{self.params[i].name} = {arguments[i]}" for i in self.integers)
            raise LaunchError("TK621", f"{self.kernel}: the grid divides by zero for {values}") from None
        grid.check_grid(extents, self.kernel)
        return extents

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Read and check a manifest; the grid is compiled here, once."""
        try:
            return _read(json.loads(text))
        except (ValueError, LookupError, TypeError, RecursionError, LanguageError, LaunchError) as error:
            raise CacheError("TK912", f"the manifest cannot be used: {error}") from error


def _read(data: dict[str, Any]) -> Manifest:
    params = tuple(
        Param(_name(row["name"]), _text(row["type"]), _flag(row["written"]), _flag(row["read"]))
        for row in data["params"]
    )
    if len({param.name for param in params}) != len(params):
        raise ValueError("two parameters have the same name")
    manifest = Manifest(
        kernel=_name(data["kernel"]),
        params=params,
        grid=_three(_text(extent) for extent in data["grid"]),
        block=_count(data["block"], 1),
        shared_bytes=_count(data["shared_bytes"], 0),
        target=_text(data["target"]),
        workspaces=tuple(
            Workspace(_name(row["name"]), _text(row["nbytes"]), _flag(row["clean"])) for row in data["workspaces"]
        ),
        shared=tuple(
            SharedPlace(
                _text(row["name"]),
                _count(row["offset"], 0),
                _count(row["nbytes"], 0),
                _text(row["dtype"]),
                _text(row["layout"]),
            )
            for row in data["shared"]
        ),
    )
    _ = manifest.grid_function, manifest.workspace_function
    return manifest


def _three(items: Any) -> tuple[Any, Any, Any]:
    x, y, z = items
    return x, y, z


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} should be text")
    return value


def _name(value: Any) -> str:
    if not _text(value).isidentifier() or keyword.iskeyword(value):
        raise ValueError(f"{value!r} is not a name")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} should be true or false")
    return value


def _count(value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{value!r} should be a whole number, at least {least}")
    return value
