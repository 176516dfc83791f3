# SPDX-License-Identifier: Apache-2.0
"""Expressions that bind names in a scope of their own: lambdas and comprehensions."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

from tilekit.diag import errors
from tilekit.lang import handover
from tilekit.lang.access import Access
from tilekit.lang.expressions import Expressions
from tilekit.lang.frame import Frame


class Scopes(Access):
    """Evaluates lambdas and comprehensions."""

    def unpack(self, target: ast.expr, value: Any, *, since: int | None = None) -> None:
        """Assign to a target of any form."""
        raise NotImplementedError

    def eval_Lambda(self, node: ast.Lambda) -> Any:
        if node.args.vararg or node.args.kwarg or node.args.kwonlyargs or node.args.defaults:
            raise errors.LanguageError("TK103", "a lambda in a kernel takes plain positional arguments only")
        return Lambda(self, self.frame, node)

    def eval_ListComp(self, node: ast.ListComp) -> Any:
        return self._comprehension(node.generators, lambda: self.element(node.elt))

    def eval_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        return self._comprehension(node.generators, lambda: self.element(node.elt))

    def eval_SetComp(self, node: ast.SetComp) -> Any:
        return set(self._comprehension(node.generators, lambda: self.element(node.elt)))

    def eval_DictComp(self, node: ast.DictComp) -> Any:
        return dict(self._comprehension(node.generators, lambda: (self.evaluate(node.key), self.element(node.value))))

    def _comprehension(self, generators: list[ast.comprehension], element: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        first = self.host_items(self.evaluate(generators[0].iter))
        with self.scope(self.frame.scope({})):
            self._generate(first, generators, lambda: found.append(element()))
        return found

    def _generate(self, items: list[Any], generators: list[ast.comprehension], deliver: Callable[[], None]) -> None:
        first, *rest = generators
        for item in items:
            self.unpack(first.target, item)
            if not all(map(self._host_condition, first.ifs)):
                continue
            if rest:
                self._generate(self.host_items(self.evaluate(rest[0].iter)), rest, deliver)
            else:
                deliver()

    def _host_condition(self, node: ast.expr) -> bool:
        found = self.condition(node)
        if not isinstance(found, bool):
            with self.at(node):
                raise errors.LanguageError("TK106", "a condition in a comprehension must be known at compile time")
        return found


class Lambda:
    """A lambda of a kernel: evaluated where it is called, with the names that are there then, as in Python."""

    def __init__(self, expressions: Expressions, frame: Frame, node: ast.Lambda) -> None:
        self._expressions = expressions
        self._frame = frame
        self._node = node
        self.names = [argument.arg for argument in node.args.args]
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in self.names]
        self.__signature__ = inspect.Signature(parameters)

    def __call__(self, *args: Any) -> Any:
        if len(args) != len(self.names):
            raise errors.LanguageError("TK104", f"a lambda of {len(self.names)} arguments is called with {len(args)}")
        arguments = dict(zip(self.names, map(handover.take, args), strict=True))
        with self._expressions.scope(self._frame.scope(arguments)):
            return self._expressions.evaluate(self._node.body)
