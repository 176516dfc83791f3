# SPDX-License-Identifier: Apache-2.0
"""Evaluating expressions of a kernel: on host values as Python does, on run-time values by building IR."""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any, cast

from tilekit import dtypes
from tilekit.diag import errors, suggest
from tilekit.diag.errors import TilekitError
from tilekit.diag.sources import Sources
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.instructions.register import AssignInst
from tilekit.ir.surface import describe
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, Tensor
from tilekit.lang import methods, operators
from tilekit.lang.builder import Builder
from tilekit.lang.frame import Frame
from tilekit.lang.methods import KernelMethods
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr

# host functions that have a meaning on scalar expressions
_MATH: Mapping[Any, str] = {
    getattr(math, name): name
    for name in (
        "exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
        "asinh", "acosh", "atanh", "ceil", "floor", "trunc", "isnan", "isinf",
    )
    if hasattr(math, name)
}  # fmt: skip

_TENSOR_ATTRIBUTES = {RegisterTensor: ("dtype", "shape", "size", "to"), GlobalTensor: ("dtype", "shape")}


class Expressions:
    """Evaluates expression nodes; statements build on it."""

    def __init__(self, kernel: KernelMethods, builder: Builder, sources: Sources) -> None:
        self.kernel = kernel
        self.builder = builder
        self.sources = sources
        self.frames: list[Frame] = []

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    @contextmanager
    def at(self, node: ast.expr | ast.stmt) -> Iterator[None]:
        """Instructions emitted and errors raised inside belong to this node."""
        outer = self.builder.span
        span = self.frame.source.span(node, self.frame.caller)
        self.builder.span = span
        try:
            yield
        except TilekitError as error:
            raise error.located(span) from error.__cause__
        finally:
            self.builder.span = outer

    def evaluate(self, node: ast.expr) -> Any:
        method: Callable[[Any], Any] | None = getattr(self, f"eval_{type(node).__name__}", None)
        with self.at(node):
            if method is None:
                raise unsupported(node)
            return method(node)

    # ------------------------------------------------------------------------------------------ names and literals

    def eval_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def eval_Name(self, node: ast.Name) -> Any:
        return self.frame.lookup(node.id)

    def eval_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = self.evaluate(node.value)
        self.bind(node.target.id, value)
        return self.frame.names[node.target.id]

    def eval_Tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._elements(node.elts))

    def eval_List(self, node: ast.List) -> Any:
        return self._elements(node.elts)

    def eval_Set(self, node: ast.Set) -> Any:
        return set(self._elements(node.elts))

    def eval_Dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(self.evaluate(value))
            else:
                found[self.evaluate(key)] = self.snapshot(self.evaluate(value))
        return found

    def _elements(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found.extend(self.evaluate(node.value))
            else:
                found.append(self.snapshot(self.evaluate(node)))
        return found

    def snapshot(self, value: Any) -> Any:
        """The value as it is now: a variable that may be assigned later is copied."""
        if isinstance(value, Expr) and any(self._is_assigned_in_place(v) for v in scalar.free_vars(value)):
            return self.builder.declare("t", value)
        return value

    def _is_assigned_in_place(self, variable: Expr) -> bool:
        return any(frame.names.get(name) is variable for frame in self.frames for name in frame.owned)

    def eval_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return "".join(str(self.evaluate(part)) for part in node.values)

    def eval_FormattedValue(self, node: ast.FormattedValue) -> Any:
        value = self.evaluate(node.value)
        if operators.is_runtime(value):
            raise errors.LanguageError("TK106", f"{describe(value)} has no text at compile time")
        convert = {-1: lambda v: v, 115: str, 114: repr, 97: ascii}[node.conversion]
        return format(convert(value), self.evaluate(node.format_spec) if node.format_spec else "")

    # ------------------------------------------------------------------------------------------------- operators

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        return self._host(operators.binary, node.op, self.evaluate(node.left), self.evaluate(node.right), self.kernel)

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return self._host(operators.unary, node.op, self.evaluate(node.operand), self.kernel)

    def eval_Compare(self, node: ast.Compare) -> Any:
        left = self.evaluate(node.left)
        result: Any = None
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(comparator)
            part = self._host(operators.binary, op, left, right, self.kernel)
            if isinstance(part, RegisterTensor):
                if len(node.ops) > 1:
                    raise errors.LanguageError(
                        "TK103",
                        "a chained comparison of tiles is not available",
                        help="compare twice and combine with self.where",
                    )
                return part
            result = part if result is None else self._and(result, part)
            if not operators.is_runtime(result) and not result:
                return result
            left = right
        return result

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        conjunction = isinstance(node.op, ast.And)
        result: Any = self.evaluate(node.values[0])
        for part in node.values[1:]:
            condition = operators.truth(result)
            if isinstance(condition, bool):
                # Python's own rule: the value that decides, or the last one
                if condition is not conjunction:
                    return result
                result = self.evaluate(part)
            else:
                combine = self._and if conjunction else self._or
                result = combine(condition, operators.truth(self.evaluate(part)))
        return result

    def _and(self, a: Any, b: Any) -> Any:
        if isinstance(a, bool):
            return b if a else False
        if isinstance(b, bool):
            return a if b else False
        return scalar.logical_and(operators.truth(a), operators.truth(b))

    def _or(self, a: Any, b: Any) -> Any:
        if isinstance(a, bool):
            return True if a else b
        if isinstance(b, bool):
            return True if b else a
        return scalar.logical_or(operators.truth(a), operators.truth(b))

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        condition = operators.truth(self.evaluate(node.test))
        if isinstance(condition, bool):
            return self.evaluate(node.body if condition else node.orelse)
        yes, no = self.evaluate(node.body), self.evaluate(node.orelse)
        if isinstance(yes, Tensor) or isinstance(no, Tensor):
            raise errors.LanguageError(
                "TK103", "a run-time choice between tiles is not available", help="use an if statement, or self.where"
            )
        if not (operators.is_number(yes) and operators.is_number(no)):
            raise errors.LanguageError("TK106", f"a run-time choice between {describe(yes)} and {describe(no)}")
        return scalar.where(condition, *operators.paired(yes, no))

    # -------------------------------------------------------------------------------------- attributes, subscripts

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        owner = self.evaluate(node.value)
        if isinstance(owner, Tensor):
            return self._tensor_attribute(owner, node.attr)
        if isinstance(owner, Expr):
            raise errors.LanguageError("TK102", f"a scalar expression has no attribute {node.attr}")
        try:
            return getattr(owner, node.attr)
        except AttributeError:
            raise self._no_attribute(owner, node.attr) from None

    def _tensor_attribute(self, tensor: Tensor, name: str) -> Any:
        known = next(names for cls, names in _TENSOR_ATTRIBUTES.items() if isinstance(tensor, cls))
        if name not in known:
            near = suggest(name, known)
            raise errors.LanguageError(
                "TK102", f"{_kind(tensor)} has no attribute {name}", help=f"did you mean {near}?" if near else None
            )
        if name == "to":
            return lambda dtype: self.kernel.cast(tensor, dtype)  # type: ignore[arg-type]
        return getattr(tensor, name)

    def _no_attribute(self, owner: object, name: str) -> TilekitError:
        if owner is self.kernel:
            near = suggest(name, [*methods.names(), *vars(owner)])
            return errors.LanguageError(
                "TK102", f"self has no {name}", help=f"did you mean self.{near}?" if near else "set it in __init__"
            )
        near = suggest(name, [n for n in dir(owner) if not n.startswith("_")])
        what = getattr(owner, "__name__", type(owner).__name__)
        return errors.LanguageError("TK102", f"{what} has no {name}", help=f"did you mean {near}?" if near else None)

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        owner = self.evaluate(node.value)
        if isinstance(owner, Tensor):
            raise errors.LanguageError(
                "TK103", f"{_kind(owner)} cannot be indexed", help="load the box that you need with self.load_global"
            )
        index = self.evaluate(node.slice)
        if isinstance(index, Expr) and not isinstance(owner, (DataType, PointerType)):
            constant = scalar.constant_value(index)
            if constant is None:
                raise errors.LanguageError("TK106", "an index into a Python object must be known at compile time")
            index = constant
        return self._host(lambda: owner[index])

    def eval_Slice(self, node: ast.Slice) -> Any:
        return slice(*(None if part is None else self.evaluate(part) for part in (node.lower, node.upper, node.step)))

    # ------------------------------------------------------------------------------------------ functions and calls

    def eval_Lambda(self, node: ast.Lambda) -> Any:
        if node.args.vararg or node.args.kwarg or node.args.kwonlyargs or node.args.defaults:
            raise errors.LanguageError("TK103", "a lambda in a kernel takes plain positional arguments only")
        names = [argument.arg for argument in node.args.args]
        frame = self.frame

        def function(*args: Any) -> Any:
            inner = Frame(
                frame.source, frame.function, frame.caller, {**frame.names, **dict(zip(names, args, strict=True))}
            )
            self.frames.append(inner)
            try:
                return self.evaluate(node.body)
            finally:
                self.frames.pop()

        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
        function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return function

    def eval_ListComp(self, node: ast.ListComp) -> Any:
        return [self.evaluate(node.elt) for _ in self._comprehension(node.generators)]

    def eval_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return [self.evaluate(node.elt) for _ in self._comprehension(node.generators)]

    def eval_SetComp(self, node: ast.SetComp) -> Any:
        return {self.evaluate(node.elt) for _ in self._comprehension(node.generators)}

    def eval_DictComp(self, node: ast.DictComp) -> Any:
        return {self.evaluate(node.key): self.evaluate(node.value) for _ in self._comprehension(node.generators)}

    def _comprehension(self, generators: list[ast.comprehension]) -> Iterator[None]:
        outer = dict(self.frame.names)
        try:
            yield from self._generate(generators)
        finally:
            for name in set(self.frame.names) - set(outer):
                del self.frame.names[name]
            self.frame.names.update(outer)

    def _generate(self, generators: list[ast.comprehension]) -> Iterator[None]:
        if not generators:
            yield
            return
        first, *rest = generators
        for item in self.host_items(self.evaluate(first.iter)):
            self.unpack(first.target, item)
            tests = [operators.truth(self.evaluate(test)) for test in first.ifs]
            if not all(isinstance(test, bool) for test in tests):
                raise errors.LanguageError("TK106", "a condition in a comprehension must be known at compile time")
            if all(tests):
                yield from self._generate(rest)

    def host_items(self, items: Any) -> list[Any]:
        """The items of something that Python can iterate over now."""
        if operators.is_runtime(items):
            raise errors.LanguageError("TK106", f"cannot iterate over {describe(items)} at compile time")
        if isinstance(items, methods.LoopRange):
            bounds = [b if isinstance(b, int) else scalar.constant_value(b) if isinstance(b, Expr) else None
                      for b in (items.start, items.stop, items.step)]  # fmt: skip
            if None in bounds:
                raise errors.LanguageError("TK106", "a range in a comprehension must be known at compile time")
            return list(range(*cast("list[int]", bounds)))
        try:
            return list(items)
        except TypeError:
            raise errors.LanguageError("TK103", f"cannot iterate over {describe(items)}") from None

    def eval_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords:
            return self._super()
        function = self.evaluate(node.func)
        args = self._elements_of_call(node.args)
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            kwargs.update(value if keyword.arg is None else {keyword.arg: value})
        return self.call(function, args, kwargs)

    def _elements_of_call(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            found.extend(self.evaluate(node.value) if isinstance(node, ast.Starred) else [self.evaluate(node)])
        return found

    def _super(self) -> Any:
        function = self.frame.function
        if "__class__" not in function.__code__.co_freevars or function.__closure__ is None:
            raise errors.LanguageError("TK103", "super() works only in a method of a class")
        cell = function.__closure__[function.__code__.co_freevars.index("__class__")]
        return super(cell.cell_contents, self.kernel)

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        runtime = any(map(operators.is_runtime, [*args, *kwargs.values()]))
        if isinstance(function, DataType):
            return self._convert(function, args, kwargs)
        if isinstance(function, (MethodType, FunctionType)) and self._belongs_to_kernel(function):
            plain = cast("FunctionType", getattr(function, "__func__", function))
            if methods.is_language(plain):
                return self._call_language(function, args, kwargs)
            return self.inline(plain, [self.kernel, *args], kwargs)
        if function is builtins.range and runtime:
            return methods.LoopRange(*_range_arguments(args))
        if runtime:
            found = self._call_on_expressions(function, args, kwargs)
            if found is not None:
                return found
        result = self._host(function, *args, **kwargs)
        return scalar.normalize(result) if isinstance(result, Expr) else result

    def _belongs_to_kernel(self, function: FunctionType | MethodType) -> bool:
        return isinstance(function, MethodType) and function.__self__ is self.kernel

    def _call_language(self, method: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        signature = inspect.signature(method)
        try:
            signature.bind(*args, **kwargs)
        except TypeError as problem:
            raise errors.LanguageError(
                "TK104",
                f"self.{method.__name__}: {problem}",
                help=f"its form is self.{method.__name__}{_form(signature)}",
            ) from None
        return self._host(method, *args, **kwargs)

    def _convert(self, dtype: DataType, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if len(args) != 1 or kwargs:
            raise errors.LanguageError("TK104", f"{dtype}(…) takes one value")
        (value,) = args
        if isinstance(value, RegisterTensor):
            return self.kernel.cast(value, dtype)
        if isinstance(value, Expr):
            return scalar.cast(value, dtype)
        if isinstance(value, (bool, int, float, dtypes.Literal)):
            return scalar.as_expr(dtype(value))
        raise errors.LanguageError("TK215", f"cannot make {describe(value)} a {dtype}")

    def _call_on_expressions(self, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The meaning of some host functions on run-time scalars; None for any other function."""
        if kwargs or any(isinstance(arg, Tensor) for arg in args) or not all(map(operators.is_number, args)):
            return None
        if function in (builtins.max, builtins.min) and len(args) >= 2:
            combine = scalar.maximum if function is builtins.max else scalar.minimum
            result = args[0]
            for arg in args[1:]:
                result = combine(*operators.paired(result, arg))
            return result
        if function is builtins.abs:
            return scalar.call("abs", [scalar.as_expr(args[0])])
        if function in (builtins.int, builtins.float, builtins.bool):
            dtype = {builtins.int: dtypes.int32, builtins.float: dtypes.float32, builtins.bool: dtypes.boolean}[
                function
            ]
            return scalar.cast(scalar.as_expr(args[0]), dtype)
        if inspect.isbuiltin(function) and function in _MATH:
            (value,) = args
            value = scalar.as_expr(value)
            dtype = scalar.dtype_of(value)
            if isinstance(dtype, DataType) and not dtype.is_float():
                value = scalar.cast(value, dtypes.float32)
            return scalar.call(_MATH[function], [value])
        return None

    def _host(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call something that is not ours; what it raises becomes an error at the line that called it."""
        try:
            return function(*args, **kwargs)
        except TilekitError:
            raise
        except Exception as problem:
            name = getattr(function, "__qualname__", repr(function))
            inner = "" if name.startswith(("binary", "unary", "Expressions.")) else f"{name}: "
            raise errors.LanguageError("TK109", f"{inner}{type(problem).__name__}: {problem}") from problem

    # ------------------------------------------------------------------------------------- what statements provide

    def bind(self, name: str, value: Any) -> None:
        raise NotImplementedError

    def unpack(self, target: ast.expr, value: Any) -> None:
        raise NotImplementedError

    def inline(self, function: FunctionType, args: list[Any], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def copy_of(self, tensor: RegisterTensor) -> RegisterTensor:
        """A new tile with the present contents of `tensor`."""
        return self.builder.emit(AssignInst.create(RegisterTensor.create(tensor.dtype, tensor.shape), tensor))


def unsupported(node: ast.AST) -> TilekitError:
    """The error for Python that kernels do not have."""
    name, advice = _UNSUPPORTED.get(type(node), (type(node).__name__, None))
    return errors.LanguageError("TK103", f"{name} is not available in a kernel", help=advice)


_UNSUPPORTED: Mapping[type[ast.AST], tuple[str, str | None]] = {
    ast.Try: ("try", "a kernel raises nothing at run time"),
    ast.Raise: ("raise", "use self.static_assert for what is known at compile time"),
    ast.With: ("this with statement", None),
    ast.FunctionDef: ("a nested function", "make it a method of the class"),
    ast.ClassDef: ("a nested class", "define it outside the kernel"),
    ast.Import: ("import", "import at the top of the cell or file"),
    ast.ImportFrom: ("import", "import at the top of the cell or file"),
    ast.Global: ("global", "pass the value to __init__ and keep it on self"),
    ast.Nonlocal: ("nonlocal", "pass the value to __init__ and keep it on self"),
    ast.Delete: ("del", None),
    ast.Continue: ("continue", "put the rest of the loop body under an if"),
    ast.Match: ("match", "use if and elif"),
    ast.Await: ("await", None),
    ast.Yield: ("yield", None),
    ast.YieldFrom: ("yield", None),
    ast.AsyncFor: ("async", None),
    ast.AsyncWith: ("async", None),
    ast.AsyncFunctionDef: ("async", None),
}


def _range_arguments(args: list[Any]) -> tuple[Any, Any, Any]:
    for arg in args:
        ok = isinstance(arg, (int, dtypes.Literal)) or (
            isinstance(arg, Expr) and isinstance(kind := scalar.dtype_of(arg), DataType) and kind.is_integer()
        )
        if not ok or isinstance(arg, bool):
            raise errors.LanguageError("TK215", f"range needs integers, got {describe(arg)}")
    if not 1 <= len(args) <= 3:
        raise errors.LanguageError("TK104", f"range takes one to three arguments, got {len(args)}")
    start, stop = (0, args[0]) if len(args) == 1 else args[:2]
    return start, stop, args[2] if len(args) == 3 else 1


def _form(signature: inspect.Signature) -> str:
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(inspect.Signature(bare))


def _kind(tensor: Tensor) -> str:
    return "a register tile" if isinstance(tensor, RegisterTensor) else "a global tensor"
