# SPDX-License-Identifier: Apache-2.0
"""What the text of a function says before any of it runs: which names its statements bind, read and leave behind."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Scope: TypeAlias = "ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp"


@dataclass(frozen=True)
class Bound:
    """The names that statements bind at any depth: to a new value, and by augmented assignment."""

    rebound: set[str] = field(default_factory=set[str])
    updated: set[str] = field(default_factory=set[str])

    @property
    def names(self) -> set[str]:
        return self.rebound | self.updated


def bound(nodes: Iterable[ast.AST]) -> Bound:
    """The names that `nodes` bind in the scope that they stand in."""
    finder = _BoundNames(Bound())
    for node in nodes:
        finder.visit(node)
    return finder.found


class _BoundNames(ast.NodeVisitor):
    def __init__(self, found: Bound) -> None:
        self.found = found

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.found.rebound.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.found.updated.add(node.target.id)
        else:
            self.visit(node.target)
        self.visit(node.value)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A lambda binds in a scope of its own."""

    def _scope(self, node: Scope) -> None:
        """A comprehension keeps its targets to itself, but `:=` in it binds outside."""
        self.found.rebound.update(part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr))

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _scope


def walruses(node: ast.stmt) -> set[str]:
    """The names that `:=` binds in a statement, without the statements inside of it."""
    found: set[str] = set()
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.NamedExpr):
            found.add(part.target.id)
        waiting.extend(child for child in ast.iter_child_nodes(part) if not isinstance(child, ast.stmt))
    return found


# --------------------------------------------------------------------------------------------------------------- reads


def reads(node: ast.AST, name: str) -> bool:
    """Whether the value of `name` may be asked for in `node`."""
    return any(True for _ in _uses(node, name))


def _uses(node: ast.AST, name: str) -> Iterable[ast.Name]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
            yield part
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name) and part.target.id == name:
            yield part.target


def binds_first(nodes: Sequence[ast.stmt], name: str) -> bool:
    """Whether `nodes`, executed in order, bind `name` on every path before they may read it."""
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value) if not reads(value, name):
                if any(name in bound([target]).rebound for target in targets):
                    return True
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                return not reads(value, name)
            case ast.For(target=target, iter=items) if name in bound([target]).rebound:
                return not reads(items, name)
            case ast.If(test=test, body=body, orelse=orelse) if not reads(test, name):
                if binds_first(body, name) and binds_first(orelse, name):
                    return True
            case _:
                pass
        if reads(node, name) or name in bound([node]).names:
            return False
    return False


def binds_always(nodes: Sequence[ast.stmt], name: str) -> bool:
    """Whether `nodes`, executed to their end, have bound `name` on every path."""
    for node in nodes:
        match node:
            case ast.Assign(targets=targets) if any(name in bound([target]).rebound for target in targets):
                return True
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr()) if target == name:
                return True
            case ast.If(body=body, orelse=orelse) if binds_always(body, name) and binds_always(orelse, name):
                return True
            case _:
                pass
    return False


def mentions(nodes: Iterable[ast.AST], name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for node in nodes for part in ast.walk(node))


def is_read_later(function: ast.FunctionDef, region: ast.AST, loop: ast.stmt | None, name: str) -> bool:
    """Whether `name` may be read after `region` has ended: below it, or in the next turn of the `loop` around it."""
    for use in _uses(function, name):
        if _inside(use, region):
            continue
        if _start(use) >= _end(region) or (loop is not None and _inside(use, loop)):
            return True
    return False


def _inside(node: ast.AST, region: ast.AST) -> bool:
    return _start(region) <= _start(node) < _end(region)


def _start(node: ast.AST) -> tuple[int, int]:
    assert isinstance(node, (ast.expr, ast.stmt))
    return node.lineno, node.col_offset


def _end(node: ast.AST) -> tuple[int, int]:
    assert isinstance(node, (ast.expr, ast.stmt))
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


# --------------------------------------------------------------------------------------------------------------- loops


def jumps(nodes: Iterable[ast.stmt], kind: type[ast.Break] | type[ast.Continue]) -> bool:
    """Whether a `break` or `continue` of the loop whose body this is stands in `nodes`."""
    for node in nodes:
        if isinstance(node, kind):
            return True
        if isinstance(node, ast.If) and (jumps(node.body, kind) or jumps(node.orelse, kind)):
            return True
        if isinstance(node, (ast.For, ast.While)) and jumps(node.orelse, kind):
            return True
    return False


def without_continue(nodes: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop with `continue` expressed by `if`: what follows it moves into the branches that go on."""
    body: list[ast.stmt] = []
    for position, node in enumerate(nodes):
        if isinstance(node, ast.Continue):
            return body
        if isinstance(node, ast.If) and jumps([node], ast.Continue):
            rest = nodes[position + 1 :]
            moved = ast.If(node.test, without_continue([*node.body, *rest]), without_continue([*node.orelse, *rest]))
            return [*body, ast.copy_location(moved, node)]
        body.append(node)
    return body
