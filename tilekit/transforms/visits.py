# SPDX-License-Identifier: Apache-2.0
"""Which method of a person's pass changed which lines of a program: it stands around the visits of their rewriters.

A line belongs to the innermost visit that replaced what it prints; where no visit did, to the method that the pass
itself is.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, TypeAlias

from tilekit import textdiff
from tilekit.diag import sources
from tilekit.ir import stmt as stmts
from tilekit.ir.func import Function
from tilekit.ir.functors import IRFunctor, IRRewriter
from tilekit.ir.inst import Instruction
from tilekit.ir.prog import Program
from tilekit.ir.stmt import Stmt
from tilekit.ir.text import blocks
from tilekit.ir.text.blocks import Let, Line
from tilekit.ir.text.printer import Printed

# by what a line is known while its program lives: the ids of what it prints
Key: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Replacement:
    """A statement, an instruction or a whole function, what a visit made of it, and the methods that did it."""

    node: Any
    result: Any
    methods: tuple[CodeType, ...]


class Visits:
    """Remembers what rewriters replace; `whole` is the method to name where none of theirs did."""

    def __init__(self, whole: CodeType) -> None:
        self.whole = whole
        self.replaced: list[Replacement] = []
        # for each open visit the methods that replaced a part of its node: a tensor, an expression
        self._open: list[list[CodeType]] = []
        # by functor and node, for a node is visited once and met often; both are kept alive beside it
        self._known: dict[tuple[int, int], tuple[object, object, tuple[CodeType, ...]]] = {}

    def visit(self, functor: IRFunctor, node: Any) -> Any:
        parts: list[CodeType] = []
        self._open.append(parts)
        try:
            result = functor.answer(node)
        finally:
            self._open.pop()
        if result is not node and isinstance(functor, IRRewriter):
            self._replace(functor, node, result, parts)
        return result

    def _replace(self, functor: IRRewriter, node: Any, result: Any, parts: list[CodeType]) -> None:
        key = id(functor), id(node)
        own = code_of(functor.method_for(node))
        methods = tuple(dict.fromkeys(parts)) if own is None else (own,)
        if not methods and key in self._known:
            methods = self._known[key][2]
        self._known[key] = functor, node, methods
        if methods and isinstance(node, (Stmt, Instruction, Function, Program)):
            self.replaced.append(Replacement(node, result, methods))
        elif self._open:
            self._open[-1].extend(methods)

    def _methods_of(self, old: Sequence[Key], new: Sequence[Key]) -> tuple[list[_Methods], list[_Methods]]:
        """For each line before and after, the methods that took it away or made it, as far as a visit did."""
        gone, made = dict[Key, _Methods](), dict[Key, _Methods]()
        is_old, is_new = frozenset(old), frozenset(new)
        for each in self.replaced:  # those within others come first
            for key in _keys_within(each.node):
                if key not in is_new:
                    gone.setdefault(key, each.methods)
            for key in _keys_within(each.result):
                if key not in is_old:
                    made.setdefault(key, each.methods)
        return [gone.get(key, ()) for key in old], [made.get(key, ()) for key in new]

    def note(self, before: Program, after: Program) -> dict[str, Any]:
        """Of the lines that differ between the texts, which method changed them: plain data, lines counted from 0.

        `methods` says of each its name, its class and where it stands; `before` and `after` are pairs of a line and the
        number of a method.
        """
        numbers: dict[CodeType, int] = {}

        def number(line: int, methods: _Methods) -> list[tuple[int, int]]:
            return [(line, numbers.setdefault(method, len(numbers))) for method in methods]

        gone, made = self._methods_of(_keys(before.lines()), _keys(after.lines()))
        old: list[tuple[int, int]] = []
        new: list[tuple[int, int]] = []
        for hunk in textdiff.hunks(str(before).split("\n"), str(after).split("\n")):
            if not any(gone[line] for line in hunk.removed) and not any(made[line] for line in hunk.added):
                old += [pair for line in hunk.removed for pair in number(line, (self.whole,))]
                new += [pair for line in hunk.added for pair in number(line, (self.whole,))]
                continue
            old += [pair for line in hunk.removed for pair in number(line, gone[line])]
            new += [pair for line in hunk.added for pair in number(line, made[line])]
        return {"methods": [_told(method) for method in numbers], "before": old, "after": new}

    def behind(self, node: object, before: Program, after: Program) -> _Methods:
        """The methods that made a statement of the program after; where none is known, all that changed the program."""
        old, new = list(_keys_within(before)), list(_keys_within(after))
        gone, made = self._methods_of(old, new)
        wanted = frozenset(_keys_within(node))
        known = [methods for key, methods in zip(new, made, strict=True) if key in wanted and methods]
        found = known[:1] or [*gone, *made]
        return tuple(dict.fromkeys(method for methods in found for method in methods)) or (self.whole,)


_Methods: TypeAlias = tuple[CodeType, ...]


def code_of(method: Any) -> CodeType | None:
    """The code of a method that a person wrote; None for those of the compiler."""
    function = inspect.unwrap(getattr(method, "__func__", method))
    if not isinstance(function, FunctionType) or is_ours(function.__module__):
        return None
    return function.__code__


def is_ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] == "tilekit"


def _told(method: CodeType) -> dict[str, Any]:
    return {
        "name": method.co_name,
        "of": method.co_qualname.rpartition("<locals>.")[2].rpartition(".")[0],
        "file": sources.display_name(method.co_filename),
        "line": sources.def_line(method),
    }


def _keys(lines: Sequence[Printed]) -> list[Key]:
    """The key of each line; the lines above a `def` are their function's, and those that print nothing have ()."""
    found: list[Key] = []
    for number, (_, printed) in enumerate(lines):
        found.append(() if printed is None else _key(printed))
        if isinstance(printed, Function):
            for above in range(number - 1, -1, -1):
                if not lines[above][0] or lines[above][1] is not None:
                    break
                found[above] = found[number]
    return found


def _key(line: Line | Function) -> Key:
    match line:
        case stmts.InstStmt(inst=inst):
            return (id(inst),)
        case Let(var=var, value=value):
            return (id(var), id(value))
        case _:
            return (id(line),)


def _keys_within(node: object) -> Iterator[Key]:
    """The keys of the lines that a node prints, and of those below them."""
    match node:
        case Program():
            for func in node:
                yield from _keys_within(func)
        case Function():
            yield _key(node)
            yield from _keys_within(node.body)
        case Instruction():
            yield (id(node),)
        case Stmt():
            yield from _of_block(blocks.block_of(node))
        case _:
            return


def _of_block(block: Iterable[Line]) -> Iterator[Key]:
    for line in block:
        yield _key(line)
        match line:
            case blocks.Scope(body=body):
                yield from _of_block(body)
            case stmts.ForStmt(body=body) | stmts.WhileStmt(body=body):
                yield from _of_block(blocks.block_of(body))
            case stmts.IfStmt(then_body=first, else_body=second):
                yield from _of_block((*blocks.block_of(first), *blocks.block_of(second)))
            case _:
                pass
