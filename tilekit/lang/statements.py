# SPDX-License-Identifier: Apache-2.0
"""Executing the statements of a kernel, one after the other."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

from tilekit.diag import errors
from tilekit.ir.prog import Binding
from tilekit.ir.tensor import Tensor
from tilekit.lang import syntax
from tilekit.lang.calls import Returned
from tilekit.lang.control import ControlFlow
from tilekit.lang.expressions import unsupported
from tilekit.lang.frame import Frame
from tilekit.lowir.scalar import Var


class Statements(ControlFlow):
    """Executes statement nodes."""

    def run(self, function: FunctionType, args: dict[str, Any]) -> None:
        """Execute the kernel's `__call__`."""
        read = self.open(function)
        frame = Frame(read, function, None)
        frame.names.update(args)
        with self.scope(frame), contextlib.suppress(Returned):
            self.body(read.node.body)

    def body(self, nodes: Sequence[ast.stmt]) -> None:
        header = self.builder.span
        self._note_names(0 if header is None or header.function != self.frame.source.name else header.line)
        for node in nodes:
            if self.builder.has_ended:
                return
            self.execute(node)

    def execute(self, node: ast.stmt) -> None:
        method: Callable[[Any], None] | None = getattr(self, f"exec_{type(node).__name__}", None)
        walruses, self.walruses = self.walruses, syntax.walruses(node)
        mentioned, self.mentioned = self.mentioned, syntax.mentioned(node)
        try:
            with self.at(node), self.consuming(False):
                if method is None:
                    raise unsupported(node)
                method(node)
                self.regions.check()
                self._note_names(span.end_line if (span := self.builder.span) is not None else 0)
        finally:
            self.walruses, self.mentioned = walruses, mentioned

    def _note_names(self, line: int) -> None:
        """Note which names mean another tensor or variable than before, from the end of this line on."""
        frame = self.frame
        for name, value in frame.names.items():
            if isinstance(value, (Tensor, Var)) and frame.noted.get(name) is not value:
                frame.noted[name] = value
                self.builder.bindings.append(Binding(frame.source.name, name, line, value))

    def exec_Expr(self, node: ast.Expr) -> None:
        self.require_call(self.evaluate(node.value))

    def exec_Pass(self, node: ast.Pass) -> None:
        """Nothing to do."""

    def exec_Assert(self, node: ast.Assert) -> None:
        condition = self.condition(node.test)
        if not isinstance(condition, bool):
            raise errors.LanguageError("TK106", "assert needs a condition that is known at compile time")
        if not condition:
            message = "" if node.msg is None else f": {self.evaluate(node.msg)}"
            raise errors.LanguageError("TK110", f"assertion failed{message}")
