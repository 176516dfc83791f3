# SPDX-License-Identifier: Apache-2.0
"""Calls in a kernel: instructions emit, methods of the class are inlined, other functions run while compiling."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeGuard

from tilekit import dtypes
from tilekit.diag import errors, suggest
from tilekit.diag.errors import TilekitError
from tilekit.diag.sources import Sources
from tilekit.dtypes import DataType
from tilekit.ir.surface import describe
from tilekit.ir.tensor import RegisterTensor, Tensor
from tilekit.lang import handover, kinds, methods, objects, operators, source, tensor_methods, values
from tilekit.lang.builder import Builder
from tilekit.lang.classes import Class
from tilekit.lang.frame import Frame
from tilekit.lang.methods import KernelMethods
from tilekit.lang.params import DECORATED
from tilekit.lang.scopes import Lambda, Scopes
from tilekit.lang.source import FunctionSource
from tilekit.lang.tensor_methods import TensorMethods
from tilekit.lowir import functions, scalar
from tilekit.lowir.scalar import Expr

# functions of the math module that have a meaning on scalar expressions
MATH: Mapping[Any, str] = {getattr(math, name): name for name in functions.MATH}


_EXTREMA = (builtins.max, builtins.min)
_ADVICE = "make it a method of the class: methods are compiled, functions run while compiling"


class Returned(Exception):
    """A method reached its return statement."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Calls(Scopes):
    """Evaluates calls."""

    def __init__(self, kernel: KernelMethods, builder: Builder, sources: Sources) -> None:
        super().__init__(kernel, builder, sources)
        self.methods = set(objects.functions_of(type(kernel)))
        self._classes: dict[type, type[KernelMethods]] = {}
        self._names: dict[str, CodeType] = {}

    def body(self, nodes: Sequence[ast.stmt]) -> None:
        """Execute statements."""
        raise NotImplementedError

    # --------------------------------------------------------------------------------------------------- what is called

    def eval_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords:
            return self._super()
        function = self.evaluate(node.func)
        with self.consuming(self._is_instruction(function)):
            args = self._positional(node)
            kwargs = self._named_arguments(node)
        return self.call(function, args, kwargs)

    def _positional(self, node: ast.Call) -> list[Any]:
        args: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                args.extend(self.host_items(self.evaluate(argument.value)))
            else:
                args.append(self.evaluate(argument))
        return args

    def _named_arguments(self, node: ast.Call) -> dict[str, Any]:
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            given = {keyword.arg: value} if keyword.arg is not None else self.host(dict, value)
            for name in given.keys() & kwargs.keys():
                raise errors.LanguageError("TK104", f"the argument {name} is given twice")
            kwargs.update(given)
        return kwargs

    def attribute(self, owner: Any, name: str) -> Any:
        """An attribute of a host object; a property of a class of the kernel is inlined like a method."""
        if _is_class(owner):
            self._language_of(owner)
        found = self.property_of(owner, name)
        if found is not None and found.fget in self.methods:
            return self.inline(found.fget, [owner], {})
        return super().attribute(owner, name)

    def property_of(self, owner: Any, name: str) -> Any:
        """The property that an attribute of an object of the kernel is, if it is one."""
        found = inspect.getattr_static(type(owner), name, None) if isinstance(owner, KernelMethods) else None
        return found if isinstance(found, property) else None

    def may_call_methods(self) -> bool:
        names = {function.__name__ for function in self.methods}
        return any(name in names or not _is_harmless(self._named(name)) for name in self.mentioned)

    def _named(self, name: str) -> Any:
        """What a name that is called stands for; None for the name of an attribute."""
        try:
            return self.frame.lookup(name)
        except TilekitError:
            return None

    def _super(self) -> Any:
        frame = self.frame.activation
        code, closure = frame.function.__code__, frame.function.__closure__
        if "__class__" not in code.co_freevars or closure is None or not code.co_argcount:
            raise errors.LanguageError("TK103", "super() works only in a method of a class")
        cell = closure[code.co_freevars.index("__class__")]
        bound: Any = super
        return self.host(bound, cell.cell_contents, frame.names[code.co_varnames[0]])

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(function, DataType):
            return self._convert(function, args, kwargs)
        if _is_class(function):
            return self._construct(function, args, kwargs)
        if values.is_runtime(function) or not callable(function):
            raise errors.LanguageError("TK103", f"{describe(function)} cannot be called")
        if isinstance(function, Lambda) and not kwargs:
            return function(*args)
        if isinstance(function, KernelMethods):
            return self.call(objects.call_of(function), args, kwargs)
        if self._is_instruction(function):
            return self._call_instruction(function, args, kwargs)
        method = getattr(function, "__func__", function)
        if isinstance(method, FunctionType) and method in self.methods:
            bound = [function.__self__] if isinstance(function, MethodType) else []
            return self.inline(method, [*bound, *args], kwargs)
        if function is builtins.range and not all(isinstance(arg, int) for arg in args) and not kwargs:
            return methods.loop_range(args)
        if function in _EXTREMA and len(args) == 1 and not kwargs and isinstance(args[0], (list, tuple)):
            items = self.host_items(args[0])
            args = items if any(map(values.is_runtime, items)) else args
        if any(map(values.is_runtime, [*args, *kwargs.values()])):
            if function is builtins.print:
                raise errors.LanguageError(
                    "TK103",
                    "print runs while the kernel is compiled, when this has no value yet",
                    help='write self.print_tensor("…", t) for a tensor, self.printf("%d", i) for a number',
                )
            found = self._call_on_run_time(function, args, kwargs)
            if found is not None:
                return found
        return self._call_host(function, args, kwargs)

    # ----------------------------------------------------------------------------------------------------- instructions

    def _is_instruction(self, function: Any) -> TypeGuard[MethodType]:
        if not isinstance(function, MethodType):
            return False
        owner = function.__self__
        return isinstance(owner, TensorMethods) or (
            isinstance(owner, KernelMethods) and methods.is_language(function.__func__)
        )

    def require_call(self, value: Any) -> None:
        """Refuse an instruction that stands alone and is not called, which would do nothing."""
        if self._is_instruction(value):
            name = self._full_name(value)
            form = f"{name}{_form(inspect.signature(value))}"
            raise errors.LanguageError("TK103", f"{name} is not called, and so does nothing", help=f"write {form}")

    def _full_name(self, method: MethodType) -> str:
        return f"{tensor_methods.name_of(method.__self__, self.builder.names)}.{method.__name__}"

    def _call_instruction(self, method: MethodType, args: list[Any], kwargs: dict[str, Any]) -> Any:
        name = self._full_name(method)
        signature = inspect.signature(method)
        if stranger := next((key for key in kwargs if key not in signature.parameters), None):
            near = suggest(stranger, signature.parameters)
            raise errors.LanguageError(
                "TK104",
                f"{name} has no argument {stranger}",
                help=f"did you mean {near}?" if near else f"its form is {name}{_form(signature)}",
            )
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as problem:
            raise errors.LanguageError(
                "TK104", f"{name}: {problem}", help=f"its form is {name}{_form(signature)}"
            ) from None
        kinds.check(name, method.__func__, bound.arguments)
        given = {key: self._argument(value) for key, value in kwargs.items()}
        with self.explaining(*args, *kwargs.values()):
            return self.host(method, *map(self._argument, args), **given)

    def _argument(self, value: Any) -> Any:
        """An instruction's argument; a function of the position, such as `init`, becomes one that gives expressions."""
        if not isinstance(value, (Lambda, FunctionType, MethodType)):
            return value

        def element(*axes: Any) -> Any:
            statements, found = self.regions.deferred(lambda: self.call(value, list(axes), {}))
            if statements:
                raise errors.LanguageError(
                    "TK103", "a function of the position gives one expression: it cannot contain instructions"
                )
            return found

        element.__signature__ = inspect.signature(value)  # pyright: ignore[reportFunctionMemberAccess]
        return element

    # --------------------------------------------------------------------------------------------- objects and methods

    def _language_of(self, cls: type) -> type[KernelMethods]:
        """A `Class` with the kernel language; from now on its functions are compiled."""
        if cls not in self._classes:
            objects.check_class(cls, self.sources)
            self._classes[cls] = objects.with_language(cls, self.builder, self.kernel.attrs, self.kernel.cuda)
            self.methods |= objects.functions_of(cls)
        return self._classes[cls]

    def _construct(self, cls: type, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A new object of a `Class`, its `__init__` inlined here."""
        made = objects.new(self._language_of(cls))
        self.bindings.made_in(made)
        initialize: Any = cls.__init__
        if initialize in self.methods:
            self.inline(initialize, [made, *args], kwargs)
        elif args or kwargs:
            raise errors.LanguageError("TK104", f"{cls.__name__}() takes no arguments: its class has no __init__")
        return made

    def open(self, function: FunctionType) -> FunctionSource:
        """The source of a function under a name that no other function of this kernel has."""
        read = source.read(function)
        name, number = read.name, 1
        while self._names.setdefault(name, read.code) is not read.code:
            number += 1
            name = f"{read.name} ({number})"
        self.sources.register(name, read.code)
        return read if name == read.name else dataclasses.replace(read, name=name)

    def inline(self, function: FunctionType, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Execute a method in a frame of its own, and give what it returns."""
        read = self.open(function)
        if any(frame.function is function for frame in self.frames):
            raise errors.LanguageError(
                "TK103", f"{read.name} calls itself: kernel methods are inlined and cannot recurse"
            )
        if hasattr(function, "__wrapped__"):
            raise errors.LanguageError("TK103", DECORATED, at=read.header, help="remove the decorator")
        signature = inspect.signature(function)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as problem:
            raise errors.LanguageError("TK104", f"{read.name}: {problem}") from None
        bound.apply_defaults()
        frame = Frame(read, function, self.builder.span, self.builder.depth)
        for name, value in bound.arguments.items():
            frame.names[name] = self.bindings.parameter(name, signature.parameters[name].annotation, value)
        with self.scope(frame):
            try:
                self.body(read.node.body)
            except Returned as returned:
                return self.bindings.settled(returned.value)
        return None

    # ----------------------------------------------------------------------------------- Python functions, conversions

    def _convert(self, dtype: DataType, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if len(args) != 1 or kwargs:
            raise errors.LanguageError("TK104", f"{dtype}(…) takes one value")
        (value,) = args
        if isinstance(value, RegisterTensor):
            return self.kernel.cast(value, dtype)
        if isinstance(value, Expr):
            return scalar.cast(value, dtype)
        if isinstance(value, (bool, int, float, dtypes.Literal)):
            return self.host(lambda: scalar.as_expr(dtype(value)))
        raise errors.LanguageError("TK215", f"cannot convert {describe(value)} to {dtype}")

    def _call_on_run_time(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The meaning of some host functions on run-time scalars; None for any other function."""
        if any(isinstance(arg, Tensor) for arg in args):
            _refuse_tiles(function)
            return None
        if kwargs or not all(map(values.is_number, args)):
            return None
        if function in _EXTREMA and args:
            return _extremum(scalar.maximum if function is builtins.max else scalar.minimum, args)
        if len(args) != 1:
            return None
        value = scalar.as_expr(args[0])
        dtype = scalar.dtype_of(value)
        if not isinstance(dtype, DataType):
            return None
        if function is builtins.abs:
            return scalar.call("abs", [value])
        if function is builtins.int:
            return value if dtype.is_integer() else scalar.cast(value, dtypes.int32)
        if function is builtins.float:
            return value if dtype.is_float() else scalar.cast(value, dtypes.float32)
        if function is builtins.bool:
            return scalar.cast(value, dtypes.boolean)
        if inspect.isbuiltin(function) and function in MATH:
            return scalar.call(MATH[function], [value if dtype.is_float() else scalar.cast(value, dtypes.float32)])
        return None

    def _call_host(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        everything = [*args, *kwargs.values()]
        if any(isinstance(value, methods.LoopRange) for value in everything):
            raise errors.LanguageError("TK103", "a range with run-time limits works only in a for statement")
        loan = handover.Loan()
        # a method of a container keeps what it is given
        keeps = isinstance(getattr(function, "__self__", None), (list, dict, set))
        now = [self.bindings.snapshot(value) for value in args]
        now_named = {name: self.bindings.snapshot(value) for name, value in kwargs.items()}
        given = now if keeps else map(loan.hand, now)
        named = now_named if keeps else {name: loan.hand(value) for name, value in now_named.items()}
        try:
            found = handover.take(function(*given, **named))
            loan.settle()
            return found
        except TilekitError:
            raise
        except handover.Asked:
            raise errors.LanguageError(
                "TK106",
                f"{_name(function)} asks for a value that exists only at run time",
                help=_ADVICE if isinstance(function, FunctionType) else None,
            ) from None
        except Exception as problem:
            has_tile = any(isinstance(value, Tensor) for value in everything)
            raise errors.LanguageError(
                "TK109",
                f"{_name(function)} raised {type(problem).__name__}: {problem}",
                help=_ADVICE if has_tile and isinstance(function, FunctionType) else None,
            ) from problem


def _is_harmless(function: Any) -> bool:
    """Whether calling this cannot run a method of the kernel."""
    return not (isinstance(function, (Lambda, KernelMethods)) or _is_class(function))


def _is_class(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Class)


def _extremum(combine: Callable[[Expr, Expr], Expr], args: list[Any]) -> Any:
    result = args[0]
    for arg in args[1:]:
        result = combine(*operators.paired(result, arg))
    return result


# what to write for functions of Python on tensors
_OF_TILES: Mapping[Any, str] = {
    builtins.len: "write t.shape[0]",
    **dict.fromkeys((builtins.int, builtins.float, builtins.bool), "write t.item() for a tensor of one element"),
}


def _refuse_tiles(function: Any) -> None:
    if not inspect.isbuiltin(function) and function not in _OF_TILES:
        return
    name = {builtins.max: "maximum", builtins.min: "minimum", builtins.abs: "abs", **MATH}.get(function)
    if function in _OF_TILES:
        raise errors.LanguageError("TK214", f"{_name(function)} does not work on tensors", help=_OF_TILES[function])
    if name is not None:
        language = name if name in methods.names() else None
        raise errors.LanguageError(
            "TK214",
            f"{_name(function)} does not work on tiles",
            help=f"use self.{language}" if language else None,
        )


def _name(function: Any) -> str:
    return getattr(function, "__qualname__", repr(function)).rpartition("<locals>.")[2]


def _form(signature: inspect.Signature) -> str:
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))
