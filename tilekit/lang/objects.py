# SPDX-License-Identifier: Apache-2.0
"""The objects that have the kernel language: the script itself, and those of a `Class` that a kernel makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any, cast

from tilekit.diag import errors
from tilekit.diag.errors import TilekitError
from tilekit.diag.sources import Sources
from tilekit.diag.span import Span
from tilekit.ir.tensor import Tensor
from tilekit.lang import source
from tilekit.lang.attributes import Attributes
from tilekit.lang.builder import Builder
from tilekit.lang.classes import Class
from tilekit.lang.cuda import Cuda
from tilekit.lang.methods import KernelMethods

# special methods of a class of kernels: these two are compiled, those are for people
_SPECIAL = ("__init__", "__call__", "__repr__", "__str__")


def with_language(cls: type, builder: Builder, attrs: Attributes, cuda: Cuda) -> type[KernelMethods]:
    """The user's class with the kernel language, for the objects of one kernel."""
    namespace = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "_builder": builder,
        "_attrs": attrs,
        "_cuda": cuda,
    }
    return type(cls)(cls.__name__, (cls, KernelMethods), namespace)


def new(cls: type[KernelMethods]) -> Any:
    """An object on which `__init__` has not been called."""
    return object.__new__(cls)


def check_script(cls: type, sources: Sources) -> None:
    """Refuse a script whose members hide an instruction."""
    language = {name for base in KernelMethods.__mro__[:-1] for name in vars(base)}
    for base, name, member in _members(cls):
        if name in language and not name.startswith("_"):
            raise errors.LanguageError(
                "TK107",
                f"{base.__name__}.{name} hides the instruction self.{name}",
                at=_header_of(member, sources),
                help="use another name for it",
            )


def check_class(cls: type, sources: Sources) -> None:
    """Refuse a `Class` with methods that Python would run itself."""
    for base, name, member in _members(cls):
        is_special = name.startswith("__") and name.endswith("__") and isinstance(member, FunctionType)
        if is_special and name not in _SPECIAL:
            raise errors.LanguageError(
                "TK103",
                f"{base.__name__}.{name} is a special method, which Python would run instead of compiling it",
                at=_header_of(member, sources),
                help="give it an ordinary name, and call it",
            )


def _members(cls: type) -> Iterator[tuple[type, str, Any]]:
    for base in cls.__mro__[:-1]:
        for name, member in vars(base).items():
            yield base, name, member


def _header_of(member: Any, sources: Sources) -> Span | None:
    function: Any = member.fget if isinstance(member, property) else member
    try:
        read = source.read(function)
    except TilekitError:
        return None
    sources.register(read.name, read.code)
    return read.header


def call_of(owner: KernelMethods) -> Any:
    """The `__call__` of an object that has one."""
    cls: Any = type(owner)
    return MethodType(cls.__call__, owner)


def functions_of(cls: type) -> frozenset[FunctionType]:
    """Every Python function that belongs to a user's class: methods of all kinds, and what properties call."""
    found: set[FunctionType] = set()
    for base in cls.__mro__:
        if base in KernelMethods.__mro__ or base is Class:
            continue
        for member in vars(base).values():
            accessors = (member.fget, member.fset) if isinstance(member, property) else (member,)
            functions = (getattr(accessor, "__func__", accessor) for accessor in accessors)
            found.update(function for function in functions if isinstance(function, FunctionType))
    return frozenset(found)


# --------------------------------------------------------------------------------------------------- what leads where


def reachable(roots: Iterable[object]) -> list[KernelMethods]:
    """Every object with the kernel language that `roots` lead to, through containers and attributes, once each."""
    found: dict[int, KernelMethods] = {}
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        value = waiting.pop()
        if isinstance(value, KernelMethods):
            if id(value) not in found:
                found[id(value)] = value
                waiting.extend(vars(value).values())
        elif isinstance(value, (tuple, list, set, dict)) and id(cast("object", value)) not in seen:
            seen.add(id(cast("object", value)))
            waiting.extend(parts(cast("object", value)))
    return list(found.values())


def parts(container: object) -> Iterator[object]:
    """What a container holds."""
    if isinstance(container, dict):
        items = cast("dict[object, object]", container)
        yield from items.keys()
        yield from items.values()
    else:
        yield from cast("Iterable[object]", container)


def count(value: object, tensor: Tensor) -> int:
    """How often `tensor` occurs in a value, directly or in containers, but not in the attributes of objects."""
    if value is tensor:
        return 1
    if isinstance(value, (tuple, list, set, dict)):
        return sum(count(part, tensor) for part in parts(cast("object", value)))
    return 0
