# SPDX-License-Identifier: Apache-2.0
"""Everything that the program of a script depends on, as text that two processes can compare.

From the script's class the walk follows what its functions name: globals, closure values, helpers in other modules,
inherited methods, and so on. What a function or a class says enters without the places it is written at, so lines,
comments and moving it change nothing. What is ours enters by name, for the compiler's own fingerprint covers it; so
does what Python, its mathematical modules and NumPy define, by their versions. Whatever cannot be compared raises
`Untracked`: a script that depends on it is transpiled again in every process.
"""

from __future__ import annotations

import ast
import builtins
import dis
import enum
import functools
import hashlib
import itertools
import os
import struct
import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast
from weakref import WeakKeyDictionary

from tilekit import dtypes
from tilekit.diag.errors import TilekitError
from tilekit.dtypes import DataType, PointerType
from tilekit.lang import source

# modules whose functions give the same answer to the same question
_PURE = ("cmath", "collections", "dataclasses", "enum", "functools", "itertools", "math", "operator", "typing")
_OUR_PURE = ("tilekit.dtypes", "tilekit.target", "tilekit.lang", "tilekit.ir", "tilekit.lowir")
# and what a pass may call beside them
_COMPILER = ("tilekit.transforms", "tilekit.backends")
_OUR_IMPURE = ("parallel_imap", "parallel_map", "serial_imap", "benchmark_func", "unique_file_name")


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_BUILTINS = _words(
    "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter float",
    "format frozenset hex int isinstance issubclass iter len list map max min next object oct ord pow property range",
    "repr reversed round set slice sorted staticmethod str sum super tuple type zip Ellipsis NotImplemented",
    "ArithmeticError AssertionError AttributeError Exception IndexError KeyError LookupError NameError OverflowError",
    "NotImplementedError RuntimeError StopIteration TypeError ValueError ZeroDivisionError __debug__ __name__",
)
# what a class has without its author
_IMPLIED = _words(
    "__module__ __dict__ __weakref__ __doc__ __annotations__ __firstlineno__ __static_attributes__ __orig_bases__",
    "__parameters__ __abstractmethods__ _abc_impl __annotate__ __annotate_func__ __annotations_cache__ __classdict__",
    "__dataclass_fields__ __dataclass_params__ __match_args__ _handles _autotune_space",
)
# what `dataclass` and `namedtuple` write
_MADE = _words(
    "__init__ __repr__ __eq__ __hash__ __lt__ __le__ __gt__ __ge__ __setattr__ __delattr__ __getstate__ __setstate__",
    "__replace__ __new__ __getnewargs__ _make _replace _asdict <lambda> wrapper",
)
_METACLASSES = frozenset({"type", "ABCMeta", "EnumType", "EnumMeta", "LanguageType"})
_STANDARD = os.path.dirname(os.__file__) + os.sep
_SPECIAL_ATTRIBUTES = frozenset({"__init__", "__name__", "__call__"})
_NAME_LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"})
_ATTRIBUTE_LOADS = frozenset({"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"})
# what `functools.cache` and `functools.lru_cache` make of a function
_CACHED: type = type(functools.cache(len))
# for each of those, what its function led to when it remembered nothing
_named_while_empty: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
# how the parts begin that a function has from the one that it was written in
ENCLOSED = "closure value"
_ASKS_FOR_GPU = "get_device_properties"
_LARGEST_ARRAY = 1 << 20


class _Plain:
    """An object of this size has its attributes in a dictionary, and nothing else."""


def _slots_size(count: int) -> int:
    """The size of an object with this many slots, and nothing else."""
    return object.__basicsize__ + count * struct.calcsize("P")


class Untracked(Exception):
    """Something that cannot be compared with what it was in another process; the text says what, and where."""


@dataclass
class Dependencies:
    """What a script depends on: a text for each part, by a name that a person understands.

    `functions` are those whose source matters, by the name that spans give them; `asks_for_gpu` says that one of them
    asks about the GPUs of this machine.
    """

    parts: dict[str, str] = field(default_factory=dict[str, str])
    functions: dict[str, FunctionType] = field(default_factory=dict[str, FunctionType])
    asks_for_gpu: bool = False


def of_script(script: type, inputs: Mapping[str, Any]) -> Dependencies:
    """Follow everything that a script and what it is specialized for lead to.

    Raises
    ------
    Untracked
        Something among it cannot be compared.
    """
    walk = _Walk()
    for name, value in inputs.items():
        walk.found.parts[name] = walk.value(value, name)
    walk.of_class(script)
    return walk.found


def of_passes(changes: Sequence[Any]) -> Dependencies:
    """Follow everything that changes to the pipeline lead to: the classes of a person's passes, and their fields.

    Raises
    ------
    Untracked
        Something among it cannot be compared.
    """
    walk = _Walk(pure=(*_OUR_PURE, *_COMPILER))
    for number, change in enumerate(changes, start=1):
        walk.found.parts[f"change {number}"] = walk.value(change, str(change))
    return walk.found


class _Walk:
    """Writes values as text; functions and classes become parts of their own, once each.

    `pure` are the rooms of ours whose functions give the same answer to the same question.
    """

    def __init__(self, *, pure: Sequence[str] = _OUR_PURE, asks_who_remembers: bool = True) -> None:
        self.found = Dependencies()
        self._pure = pure
        self._asks_who_remembers = asks_who_remembers
        self._names: dict[int, str] = {}
        # of plain data: by the names that are looked up, and in what
        self._labels: dict[tuple[int, str], str] = {}
        # what has an entry in one of them stays alive, so that nothing else gets its id
        self._held: list[Any] = []
        self._open: set[int] = set()

    # ------------------------------------------------------------------------------------------------------- values

    def value(self, value: Any, where: str) -> str:
        """A value as text; equal texts mean values that a kernel cannot tell apart."""
        match value:
            case None | bool() | int() | str() | bytes() | complex() | range() if type(value).__module__ == "builtins":
                return f"{type(value).__name__} {value!r}"
            case float() if type(value) is float:
                return f"float {value!r}" if value == value else "float nan"
            case DataType() | PointerType():
                return f"type {value!r}"
            case enum.Enum():
                # a flag of no name is its number
                return f"{self.of_class(type(value))}.{value.name or self.value(value.value, where)}"
            case FunctionType():
                return self.of_function(value, where)
            case _ if type(value) is _CACHED:
                return self._cached(value, where)
            case types.MethodType():
                return f"method {self.value(value.__func__, where)} of {self.value(value.__self__, where)}"
            case types.BuiltinFunctionType() | types.WrapperDescriptorType() | types.MethodDescriptorType():
                return self._builtin(value, where)
            case types.MemberDescriptorType():
                return f"slot {value.__name__}"
            case type():
                return self.of_class(value)
            case ModuleType():
                raise Untracked(f"{where} is the module {value.__name__} itself")
            case _:
                return self._composite(value, where)

    def _composite(self, value: Any, where: str) -> str:
        if id(value) in self._open:
            raise Untracked(f"{where} holds itself")
        self._open.add(id(value))
        try:
            return self._parts_of(value, where)
        finally:
            self._open.discard(id(value))

    def _parts_of(self, value: Any, where: str) -> str:
        kind = _kind(value)
        match value:
            case tuple() | list() if kind in (tuple, list):
                return f"{kind.__name__} [{', '.join(self._all(cast('list[Any]', value), where))}]"
            case set() | frozenset() if kind in (set, frozenset):
                return f"{kind.__name__} [{', '.join(sorted(self._all(cast('set[Any]', value), where)))}]"
            case dict() | types.MappingProxyType() if kind in (dict, types.MappingProxyType):
                items = cast("dict[Any, Any]", value).items()
                return f"dict [{', '.join(f'{self.value(k, where)}: {self.value(v, where)}' for k, v in items)}]"
            case slice():
                cut = cast("Any", value)
                return f"slice {self._all((cut.start, cut.stop, cut.step), where)}"
            case staticmethod() | classmethod():
                return f"{kind.__name__} {self.value(cast('Any', value).__func__, where)}"
            case property():
                return f"property {self._all((value.fget, value.fset, value.fdel), where)}"
            case functools.cached_property():
                return f"cached_property {self.value(cast('Any', value).func, where)}"
            case functools.partial():
                made = cast("functools.partial[Any]", value)
                return f"partial {self._all((made.func, made.args, made.keywords), where)}"
            case types.GenericAlias() | types.UnionType():
                return f"alias {value!r}"
            case tuple():
                attributes = self.value(getattr(cast("Any", value), "__dict__", {}), where)
                return f"{self.of_class(kind)} {self._all(cast('tuple[Any, ...]', value), where)} {attributes}"
            case _:
                return _of_library(value) or self._instance(value, where)

    def _all(self, values: Iterable[Any], where: str) -> list[str]:
        return [self.value(value, where) for value in values]

    def _cached(self, value: Any, where: str) -> str:
        """A function that remembers its answers: they stay when what it names changes."""
        wrapped = value.__wrapped__
        said = f"cached {value.cache_parameters()}"
        if (known := self._known(wrapped)) is not None:
            return f"{said} {known}"
        if self._asks_who_remembers:
            alone = _Walk(pure=self._pure, asks_who_remembers=False)
            alone.value(wrapped, where)
            parts = alone.found.parts
            if not value.cache_info().currsize:
                _named_while_empty[value] = parts
            elif len(parts) > 1 and _named_while_empty.get(value) != parts:
                _named_while_empty.pop(value, None)
                raise Untracked(f"{where} remembers answers, which may be older than what its function names")
        return f"{said} {self.value(wrapped, where)}"

    def _instance(self, value: Any, where: str) -> str:
        """An object of a class written in Python that is nothing but its attributes."""
        kind = _kind(value)
        names: tuple[str, ...] = tuple(getattr(kind, "__dataclass_fields__", ()))
        has_slots = not hasattr(value, "__dict__") and kind.__basicsize__ == _slots_size(len(names))
        if names and (_is_ours(kind.__module__) or has_slots):
            state: dict[str, Any] = {name: getattr(value, name) for name in names}
        elif kind.__basicsize__ == _Plain.__basicsize__ and not kind.__itemsize__ and hasattr(value, "__dict__"):
            state = cast("dict[str, Any]", vars(value))
        else:
            raise Untracked(f"{where} is an object of type {kind.__qualname__}, which cannot be compared")
        inside = ", ".join(f"{name}={self.value(part, f'{where}.{name}')}" for name, part in state.items())
        return f"{self.of_class(kind)}({inside})"

    def _builtin(self, value: Any, where: str) -> str:
        module: str | None = getattr(value, "__module__", None)
        owner: Any = getattr(value, "__self__", None)
        if module in _PURE or (module == "builtins" and value.__name__ in _BUILTINS):
            return f"{module}.{value.__qualname__}"
        if module is None and isinstance(owner, type) and owner.__module__ == "builtins":
            return f"builtins.{value.__qualname__}"
        if isinstance(value, (types.WrapperDescriptorType, types.MethodDescriptorType)):
            return f"{value.__objclass__.__module__}.{value.__qualname__}"
        raise Untracked(f"{where} is {value.__name__}, whose answer may change")

    # ---------------------------------------------------------------------------------------------------- functions

    def of_function(self, function: FunctionType, where: str) -> str:
        """The name of the part that a function is."""
        module = function.__module__ or ""
        if (known := self._known(function)) is not None:
            return known
        is_home = _is_home(function, module)
        if is_home and _is_ours(module):
            return self._ours(function, module)
        if is_home and (_is_numpy(module) or (_is_standard(module) and module.partition(".")[0] in _PURE)):
            return _versioned(f"{module}.{function.__qualname__}", module)
        if is_home and _is_standard(module):
            raise Untracked(f"{where} is {module}.{function.__qualname__}, whose answer may change")
        name = self._name(function, f"function {source.qualified_name(function.__code__)}")
        if function.__code__.co_name == "<lambda>":
            said = _Said()
            said.take_code(function.__code__)
        else:
            try:
                read = source.read_code(function.__code__)
            except TilekitError as error:
                raise Untracked(f"the source of {name} is not available") from error
            self.found.functions[read.name] = function
            said = _said(read.node)
        if said.reason is not None:
            raise Untracked(f"{name} {said.reason}")
        self.found.asks_for_gpu |= _ASKS_FOR_GPU in said.attributes
        named = [self._named(function, reference, said, name) for reference in _names(function.__code__, said)]
        extras = (function.__defaults__, function.__kwdefaults__, function.__annotations__, vars(function))
        told = [*said.text, _code(function.__code__), *self._all(extras, name), *named]
        self.found.parts[name] = _digest(" ".join(told))
        return name

    def _named(self, function: FunctionType, name: str, said: _Said, place: str) -> str:
        """What a name in a function means now: as a part of its own where that is plain data."""
        kind, value = _lookup(function, name)
        if kind == "builtin" and name not in _BUILTINS:
            raise Untracked(f"{place} calls {name}")
        if kind == "unbound" or kind == "builtin":
            return f"{name} {kind}"
        if isinstance(value, ModuleType):
            return " ".join(self._of_module(value, way, place) for way in said.ways.get(name, [()]))
        text = self.value(value, f"{name} in {place}")
        has_own_part = isinstance(value, (FunctionType, type))
        if kind == ENCLOSED or not has_own_part:
            home = function.__globals__ if kind == "global" else function.__closure__
            label = self._labels.setdefault((id(home), name), self._free(f"{kind} {name}"))
            self._held.append(home)
            self.found.parts[label] = text
            text = text if has_own_part else label
        return f"{name} {text}"

    def _of_module(self, module: ModuleType, way: tuple[str, ...], place: str) -> str:
        """What stands behind `module.a.b`."""
        path, found = module.__name__, cast("Any", module)
        for number, attribute in enumerate(way):
            if not isinstance(found, ModuleType):
                break
            path = f"{path}.{attribute}"
            if not hasattr(found, attribute):
                return f"{'.'.join(way[: number + 1])} missing"
            found = getattr(found, attribute)
        text = self.value(found, f"{path} in {place}")
        if not isinstance(found, (FunctionType, type)) and not _is_ours(path):
            self.found.parts[f"global {path}"] = text
        return f"{'.'.join(way)} {text}"

    def _ours(self, function: FunctionType, module: str) -> str:
        """What is ours is what the compiler's fingerprint says, unless its answer depends on the session."""
        name = f"{module}.{function.__qualname__}"
        is_pure = any(_is_part_of(module, room) for room in self._pure)
        is_pure |= module == "tilekit.utils" and function.__name__ not in _OUR_IMPURE
        if name == "tilekit.jit.session.current_target":
            return f"{name} = {function()}"
        if not is_pure:
            raise Untracked(f"it calls {name}, whose answer may change")
        return name

    # ------------------------------------------------------------------------------------------------------ classes

    def of_class(self, cls: type) -> str:
        """The name of the part that a class is."""
        module = cls.__module__
        if (known := self._known(cls)) is not None:
            return known
        is_known = _is_ours(module) or _is_standard(module) or _is_numpy(module)
        if not _is_python(cls) or (is_known and _is_home(cls, module)):
            return _versioned(f"class {module}.{cls.__qualname__}", module)
        name = self._name(cls, f"class {cls.__qualname__.rpartition('<locals>.')[2]}")
        if type(cls).__name__ not in _METACLASSES:
            raise Untracked(f"{name} is made by the metaclass {type(cls).__qualname__}")
        told = [cls.__name__, *(self.of_class(base) for base in cls.__bases__)]
        if (fields := getattr(cls, "__dataclass_fields__", None)) is not None:
            for item in fields.values():
                said = (item.init, item.repr, item.hash, item.compare, item.kw_only)
                made = self._all((item.default, item.default_factory, item.metadata), f"{name}.{item.name}")
                told.append(f"{item.name} {item.type!r} {said} {made}")
            told.append(repr(vars(cls).get("__dataclass_params__")))
        members: Mapping[str, Any] = getattr(cls, "__members__", {}) if _is_enum(cls) else {}
        for key, member in members.items():
            attributes = cast("dict[str, Any]", vars(member))
            given = {own: value for own, value in attributes.items() if not _is_reserved(own)}
            told.append(f"{key} = {self.value(member.value, name)} {self.value(given, f'{name}.{key}')}")
        for key, member in vars(cls).items():
            if key not in _IMPLIED and not _is_implied(cls, key, member):
                told.append(f"{key} = {self.value(member, f'{name}.{key}')}")
        self.found.parts[name] = _digest(" ".join(told))
        return name

    # -------------------------------------------------------------------------------------------------------- names

    def _known(self, value: Any) -> str | None:
        return self._names.get(id(value))

    def _name(self, value: Any, wanted: str) -> str:
        name = self._names[id(value)] = self._free(wanted)
        self._held.append(value)
        return name

    def _free(self, wanted: str) -> str:
        """A name that no other part has."""
        taken = {*self._names.values(), *self._labels.values()}
        numbered = (f"{wanted} ({number})" for number in itertools.count(2))
        return wanted if wanted not in taken else next(name for name in numbered if name not in taken)


class _Said:
    """What a function says, without its places; and which ways it goes from names through attributes."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.ways: dict[str, list[tuple[str, ...]]] = {}
        self.attributes: set[str] = set()
        # names in annotations of local names, which no code object has
        self.annotations: set[str] = set()
        self.reason: str | None = None

    def take(self, node: ast.AST) -> None:
        kind = type(node)
        self.text.append(kind.__name__)
        match node:
            case ast.Attribute() if self._is_way(node):
                return
            case ast.Name():
                self.ways.setdefault(node.id, []).append(())
            case ast.Import() | ast.ImportFrom():
                self.reason = "imports while it runs"
            case ast.Global() | ast.Nonlocal():
                self.reason = f"rebinds {', '.join(node.names)} outside of itself"
            case ast.AnnAssign():
                self.annotations |= {part.id for part in ast.walk(node.annotation) if isinstance(part, ast.Name)}
            case _:
                pass
        for name in kind._fields:
            if name not in ("ctx", "type_comment", "kind"):
                self._field(getattr(node, name, None))

    def _field(self, value: Any) -> None:
        if isinstance(value, ast.AST):
            self.take(value)
        elif isinstance(value, list):
            self.text.append("[")
            for item in cast("list[Any]", value):
                self._field(item)
            self.text.append("]")
        else:
            self.text.append(repr(value))

    def take_code(self, code: CodeType) -> None:
        """What a lambda says: it is part of a line, so its code is asked in place of a tree of its own."""
        steps = [(i.opname, str(i.argval)) for i in dis.get_instructions(code) if i.opname != "EXTENDED_ARG"]
        for number, (operation, name) in enumerate(steps):
            if operation in _ATTRIBUTE_LOADS:
                self._look_at(name)
            elif operation in _NAME_LOADS:
                way = itertools.takewhile(lambda step: step[0] in _ATTRIBUTE_LOADS, steps[number + 1 :])
                self.ways.setdefault(name, []).append(tuple(attribute for _, attribute in way))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.take_code(constant)

    def _look_at(self, name: str) -> None:
        self.attributes.add(name)
        if name.startswith("__") and name.endswith("__") and name not in _SPECIAL_ATTRIBUTES:
            self.reason = f"looks at {name}"

    def _is_way(self, node: ast.Attribute) -> bool:
        """Whether it is `name.a.b`; then all of it is taken in."""
        way: list[str] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            way.insert(0, base.attr)
            base = base.value
        for name in way:
            self._look_at(name)
        if isinstance(base, ast.Name):
            self.ways.setdefault(base.id, []).append(tuple(way))
            self.text.append(".".join((base.id, *way)))
        return isinstance(base, ast.Name)


@functools.lru_cache(256)
def _said(function: ast.FunctionDef) -> _Said:
    said = _Said()
    said.take(function)
    return said


def _names(code: CodeType, said: _Said) -> list[str]:
    """The names that a function takes from its surroundings."""
    return sorted(_loads(code) | (said.annotations - set(code.co_varnames)))


@functools.lru_cache(256)
def _loads(code: CodeType) -> frozenset[str]:
    """The names that a code object, or one inside of it, takes from its surroundings."""
    found = set(code.co_freevars) - {"__class__"}
    waiting = [code]
    while waiting:
        part = waiting.pop()
        loads = (i for i in dis.get_instructions(part) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
        found |= {str(instruction.argval) for instruction in loads}
        waiting += [constant for constant in part.co_consts if isinstance(constant, CodeType)]
    return frozenset(found)


def _lookup(function: FunctionType, name: str) -> tuple[str, Any]:
    """Where a function finds a name, and what stands there."""
    if name in function.__code__.co_freevars:
        cell = (function.__closure__ or ())[function.__code__.co_freevars.index(name)]
        try:
            return ENCLOSED, cell.cell_contents
        except ValueError:
            return "unbound", None
    if name in function.__globals__:
        return "global", function.__globals__[name]
    return ("builtin", getattr(builtins, name)) if hasattr(builtins, name) else ("unbound", None)


def _code(code: CodeType) -> str:
    """What a code object does, without its lines."""
    constants = [_code(c) if isinstance(c, CodeType) else _constant(c) for c in code.co_consts]
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return f"{code.co_code.hex()} {names} {counts} {constants}"


def _constant(value: Any) -> str:
    if isinstance(value, frozenset):
        return f"frozenset {sorted(map(_constant, cast('frozenset[Any]', value)))}"
    return f"{type(value).__name__} {value!r}"


def _of_library(value: Any) -> str | None:
    """A value of NumPy or torch, or a number of ours, as text."""
    kind = _kind(value)
    if isinstance(value, dtypes.Literal):
        return f"literal {value!r}"
    if kind.__module__ == "typing":
        return f"annotation {value!r}"
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        is_plain = kind is numpy.ndarray and not value.dtype.hasobject and value.dtype.names is None
        if is_plain and value.nbytes <= _LARGEST_ARRAY:
            facts = f"{value.dtype!r} {value.shape} {value.strides} {value.flags.writeable}"
            return f"array {facts} {hashlib.sha256(value.tobytes()).hexdigest()}"
        if isinstance(value, numpy.generic):
            return f"number {kind.__name__} {value.tobytes().hex()}"
        if isinstance(value, numpy.dtype) or (kind is numpy.ufunc and getattr(numpy, value.__name__, None) is value):
            return _versioned(f"numpy {value!r}", "numpy")
    return f"torch {value!r}" if (kind.__module__, kind.__name__) == ("torch", "dtype") else None


def _is_python(cls: type) -> bool:
    """Whether a class may be written in Python: those that are not are no types on the heap."""
    return bool(cls.__flags__ & 1 << 9)


def _is_implied(cls: type, key: str, member: Any) -> bool:
    """Whether a member follows from the rest of its class: what `dataclass`, `namedtuple` and `Enum` make."""
    function: Any = getattr(member, "__func__", member)
    if isinstance(function, FunctionType):
        is_made = function.__code__.co_filename.startswith(("<string>", _STANDARD)) and function.__name__ in _MADE
        return is_made and (hasattr(cls, "__dataclass_fields__") or hasattr(cls, "_fields"))
    if hasattr(cls, "_fields") and issubclass(cls, tuple):
        return type(member).__name__ == "_tuplegetter" or getattr(member, "__name__", "") in _MADE
    is_made = _is_enum(cls) and (_is_reserved(key) or key in getattr(cls, "__members__", {}))
    return is_made and not isinstance(member, (property, staticmethod, classmethod))


def _is_reserved(name: str) -> bool:
    """Whether a name is Python's or `enum`'s to give: `__x__`, `_x_`."""
    return name.startswith("_") and name.endswith("_")


def _kind(value: object) -> Any:
    return type(value)


def _is_enum(cls: type) -> bool:
    return issubclass(cls, enum.Enum)


def _is_home(value: Any, module: str) -> bool:
    """Whether a module has it under its name: what is made or wrapped elsewhere may only say that it is from there."""
    found: Any = sys.modules.get(module)
    for name in value.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is value


def _is_part_of(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _is_ours(module: str) -> bool:
    """Whether it is the compiler's; kernels that come with it are like anybody's."""
    return _is_part_of(module, "tilekit") and not _is_part_of(module, "tilekit.kernels")


def _is_standard(module: str) -> bool:
    """Whether a module is Python's own, and no other of the same name."""
    if module.partition(".")[0] not in sys.stdlib_module_names or module in ("", "__main__", "builtins"):
        return False
    file: str | None = getattr(sys.modules.get(module), "__file__", None)
    return module in sys.modules and (file is None or file.startswith(_STANDARD))


def _is_numpy(module: str) -> bool:
    return _is_part_of(module, "numpy") and not _is_part_of(module, "numpy.random")


def _versioned(name: str, module: str) -> str:
    """With the version of the package that the module belongs to, where it has one."""
    package = sys.modules.get(module.partition(".")[0])
    version: Any = None if package is None or package.__name__ == "tilekit" else getattr(package, "__version__", None)
    return name if version is None else f"{name} {version}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
