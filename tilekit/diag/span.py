# SPDX-License-Identifier: Apache-2.0
"""A span says where something was written, in words that survive a blank line above the kernel."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source inside one function.

    `function` is the qualified name. Lines count from the `def` line, which is 0; columns are those of `ast`: byte
    offsets into the UTF-8 text of the line. `caller` is the call that a helper method was inlined from.
    """

    function: str
    line: int
    col: int
    end_line: int
    end_col: int
    caller: Span | None = None

    @staticmethod
    def of(node: ast.expr | ast.stmt | ast.arg, function: str, def_line: int, caller: Span | None = None) -> Span:
        """The span of a parsed node, where `def_line` is the line of the function's `def` in the same numbering."""
        end_line = node.lineno if node.end_lineno is None else node.end_lineno
        end_col = node.col_offset if node.end_col_offset is None else node.end_col_offset
        return Span(function, node.lineno - def_line, node.col_offset, end_line - def_line, end_col, caller)

    def through(self, other: Span) -> Span:
        """The smallest span that covers both, which must lie in one function."""
        if self.function != other.function:
            raise ValueError(f"no span covers both {self.function} and {other.function}")
        first = min((self.line, self.col), (other.line, other.col))
        last = max((self.end_line, self.end_col), (other.end_line, other.end_col))
        return Span(self.function, *first, *last, self.caller)

    def callers(self) -> tuple[Span, ...]:
        """The chain of calls that led here, nearest first."""
        chain: list[Span] = []
        site = self.caller
        while site is not None:
            chain.append(site)
            site = site.caller
        return tuple(chain)
