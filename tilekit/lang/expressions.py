# SPDX-License-Identifier: Apache-2.0
"""Evaluating expressions of a kernel: on host values as Python does, on run-time values by building IR."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from tilekit import dtypes
from tilekit.diag import errors
from tilekit.diag.errors import TilekitError
from tilekit.diag.sources import Sources
from tilekit.ir.stmt import Stmt
from tilekit.ir.surface import describe
from tilekit.ir.tensor import RegisterTensor, Tensor
from tilekit.lang import handover, methods, operators, values
from tilekit.lang.bindings import Bindings
from tilekit.lang.builder import Builder
from tilekit.lang.frame import Frame
from tilekit.lang.methods import KernelMethods
from tilekit.lang.regions import Regions
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr

# the statements that make a value, and the value
Side: TypeAlias = "tuple[list[Stmt], Any]"


class Expressions:
    """Evaluates expression nodes; calls, assignments and statements build on it."""

    def __init__(self, kernel: KernelMethods, builder: Builder, sources: Sources) -> None:
        self.kernel = kernel
        self.builder = builder
        self.sources = sources
        self.bindings = Bindings(kernel, builder)
        self.regions = Regions(self.bindings)
        # names that `:=` rebinds somewhere in the present statement: whoever reads them may be overtaken
        self.walruses: frozenset[str] = frozenset()
        # names called in the present statement, and attributes in it: one of them may be a method that sets attributes
        self.mentioned: frozenset[str] = frozenset()
        # whether an instruction takes what is evaluated now, before any name in it can change
        self.is_consumed = False

    @property
    def frames(self) -> list[Frame]:
        return self.bindings.frames

    @property
    def frame(self) -> Frame:
        return self.bindings.frame

    @contextmanager
    def at(self, node: ast.expr | ast.stmt) -> Generator[None]:
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

    @contextmanager
    def consuming(self, is_consumed: bool) -> Generator[None]:
        """Whether what is evaluated inside goes straight into an instruction."""
        outer, self.is_consumed = self.is_consumed, is_consumed
        try:
            yield
        finally:
            self.is_consumed = outer

    @contextmanager
    def scope(self, frame: Frame) -> Generator[None]:
        """Names are looked up in `frame` inside."""
        self.frames.append(frame)
        try:
            yield
        finally:
            self.frames.pop()

    def evaluate(self, node: ast.expr) -> Any:
        method: Callable[[Any], Any] | None = getattr(self, f"eval_{type(node).__name__}", None)
        with self.at(node):
            if method is None:
                raise unsupported(node)
            return handover.unwrap(method(node))

    def host(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call something that is not ours; what it raises becomes an error at the line that called it."""
        try:
            return function(*args, **kwargs)
        except TilekitError:
            raise
        except RecursionError:
            raise errors.too_deep() from None
        except Exception as problem:
            raise errors.LanguageError("TK109", f"{type(problem).__name__}: {problem}") from problem

    @contextmanager
    def explaining(self, *operands: Any) -> Generator[None]:
        """Where shapes or types do not match, the error also says where the tiles that have names were made."""
        try:
            yield
        except TilekitError as error:
            for tile in dict.fromkeys(value for value in operands if isinstance(value, RegisterTensor)):
                if error.code in ("TK212", "TK213") and tile in self.builder.names:
                    error.noted(f"{self.builder.names[tile]} is {describe(tile)}", self.builder.made_at.get(tile))
            raise

    # ------------------------------------------------------------------------------------------ names and literals

    def eval_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def eval_Name(self, node: ast.Name) -> Any:
        value = self.frame.lookup(node.id)
        return self.bindings.snapshot(value) if node.id in self.walruses else value

    def eval_NamedExpr(self, node: ast.NamedExpr) -> Any:
        name, frame = node.target.id, self.frame.activation
        self.bindings.bind(name, self.evaluate(node.value), frame=frame)
        return self.bindings.snapshot(frame.names[name])

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
                found[self.evaluate(key)] = self.element(value)
        return found

    def _elements(self, nodes: list[ast.expr]) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                found.extend(self.host_items(self.evaluate(node.value)))
            else:
                found.append(self.element(node))
        return found

    def element(self, node: ast.expr) -> Any:
        """A value that a container is going to hold: as it is now, whatever happens to its name."""
        return self.bindings.snapshot(self.evaluate(node))

    def eval_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return "".join(str(self.evaluate(part)) for part in node.values)

    def eval_FormattedValue(self, node: ast.FormattedValue) -> Any:
        value = values.known(self.evaluate(node.value))
        if values.is_runtime(value):
            raise errors.LanguageError("TK106", f"{describe(value)} has no text at compile time")
        shown = {115: str, 114: repr, 97: ascii}.get(node.conversion, _as_it_is)(value)
        return self.host(format, shown, self.evaluate(node.format_spec) if node.format_spec else "")

    # ------------------------------------------------------------------------------------------------- operators

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        with self.explaining(left, right):
            return self.host(operators.binary, node.op, left, right, self.builder)

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return self.host(operators.unary, node.op, self.evaluate(node.operand), self.builder)

    def eval_Compare(self, node: ast.Compare) -> Any:
        return self._comparison(self.evaluate(node.left), node.ops, node.comparators)

    def _comparison(self, left: Any, ops: Sequence[ast.cmpop], comparators: Sequence[ast.expr]) -> Any:
        right = self.evaluate(comparators[0])
        with self.explaining(left, right):
            first = self.host(operators.binary, ops[0], left, right, self.builder)
        if len(ops) == 1:
            return first
        if isinstance(first, RegisterTensor):
            raise errors.LanguageError(
                "TK103",
                "a chained comparison of tiles is not available",
                help="compare twice and combine the two with &",
            )
        return self._logical(True, [lambda: first, lambda: self._comparison(right, ops[1:], comparators[1:])])

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        return self._logical(isinstance(node.op, ast.And), [self._evaluation(part) for part in node.values])

    def _evaluation(self, node: ast.expr) -> Callable[[], Any]:
        return lambda: self.evaluate(node)

    def condition(self, node: ast.expr) -> bool | Expr:
        """Whether the expression holds: a bool where that is known now, else a boolean expression."""
        with self.at(node):
            match node:
                case ast.BoolOp(op=op, values=parts):
                    truths = [lambda part=part: self.condition(part) for part in parts]
                    return values.truth(self._logical(isinstance(op, ast.And), truths))
                case ast.UnaryOp(op=ast.Not(), operand=operand):
                    found = self.condition(operand)
                    return not found if isinstance(found, bool) else scalar.logical_not(found)
                case _:
                    return values.truth(self.evaluate(node))

    def _logical(self, conjunction: bool, parts: Sequence[Callable[[], Any]]) -> Any:
        """Python's `and`, `or`: the first part that decides, or the last; later parts are computed only if needed."""
        first = parts[0]()
        if len(parts) == 1:
            return first
        truth = values.truth(first)
        if isinstance(truth, bool):
            return first if truth is not conjunction else self._logical(conjunction, parts[1:])
        statements, rest = self.regions.deferred(lambda: self._logical(conjunction, parts[1:]))
        if not statements and all(map(_is_truth, (first, rest))):
            combine = scalar.logical_and if conjunction else scalar.logical_or
            return combine(truth, scalar.as_expr(rest))
        later, earlier = (statements, rest), _value(first)
        return self._choice(truth, later, earlier) if conjunction else self._choice(truth, earlier, later)

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.condition(node.test)
        if isinstance(condition, bool):
            return self.evaluate(node.body if condition else node.orelse)
        sides = [self.regions.deferred(self._evaluation(part)) for part in (node.body, node.orelse)]
        return self._choice(condition, *sides)

    def _choice(self, condition: Expr, yes: Side, no: Side) -> Any:
        """The value of the side that the condition picks when the kernel runs."""
        simple = not yes[0] and not no[0]
        if simple and values.is_number(yes[1]) and values.is_number(no[1]):
            return scalar.where(condition, *operators.paired(yes[1], no[1]))
        if simple and values.same(yes[1], no[1]):
            return yes[1]
        return self.regions.choice(condition, yes, no)

    def host_items(self, items: Any) -> list[Any]:
        """The items of something that Python can iterate over now."""
        if values.is_runtime(items):
            raise errors.LanguageError(
                "TK106",
                f"cannot iterate over {describe(items)} at compile time",
                help="iterate over indices: for i in range(t.shape[0])" if isinstance(items, Tensor) else None,
            )
        if isinstance(items, methods.LoopRange):
            limits = [values.known(limit) for limit in (items.start, items.stop, items.step)]
            if any(map(values.is_runtime, limits)):
                raise errors.LanguageError("TK106", "the limits of a range must be known at compile time here")
            return list(range(*map(int, limits)))
        if not any(hasattr(items, name) for name in ("__iter__", "__getitem__")):
            raise errors.LanguageError("TK103", f"cannot iterate over {describe(items)}")
        return [handover.unwrap(item) for item in self.host(list, items)]


def _as_it_is(value: Any) -> Any:
    return value


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, Expr) and scalar.dtype_of(value) is dtypes.boolean)


def _value(value: Any) -> Side:
    """A side of a choice that is there already."""
    return [], value


def unsupported(node: ast.AST) -> TilekitError:
    """The error for Python that kernels do not have."""
    name, advice = _UNSUPPORTED.get(type(node), (type(node).__name__, None))
    return errors.LanguageError("TK103", f"{name} is not available in a kernel", help=advice)


_UNSUPPORTED = cast(
    "dict[type[ast.AST], tuple[str, str | None]]",
    {
        ast.Try: ("try", "a kernel raises nothing at run time"),
        ast.TryStar: ("try", "a kernel raises nothing at run time"),
        ast.Raise: ("raise", "use self.static_assert for what is known at compile time"),
        ast.With: ("with", None),
        ast.FunctionDef: ("a nested function", "make it a method of the class"),
        ast.ClassDef: ("a nested class", "define it outside of the kernel"),
        ast.Import: ("import", "import at the top of the cell or file"),
        ast.ImportFrom: ("import", "import at the top of the cell or file"),
        ast.Global: ("global", "pass the value to __init__ and keep it on self"),
        ast.Nonlocal: ("nonlocal", "pass the value to __init__ and keep it on self"),
        ast.Delete: ("del", None),
        ast.Continue: ("continue in this place", "put the rest of the loop body under an if"),
        ast.Match: ("match", "use if and elif"),
        ast.Await: ("await", None),
        ast.Yield: ("yield", None),
        ast.YieldFrom: ("yield", None),
        ast.AsyncFor: ("async for", None),
        ast.AsyncWith: ("async with", None),
        ast.AsyncFunctionDef: ("an async function", None),
    },
)
