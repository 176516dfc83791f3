# SPDX-License-Identifier: Apache-2.0
"""What the text of a function says before any of it runs: which names its statements bind, read and leave behind."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Scope: TypeAlias = "ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp"

# every schedule of a script asks the same of the same nodes, which nobody changes once their function is read
_remembered = functools.lru_cache(4096)


@dataclass(frozen=True)
class Bound:
    """The names that statements bind at any depth: to a new value, and by augmented assignment.

    What is `written` are names whose items are assigned to, which binds no name.
    """

    rebound: set[str] = field(default_factory=set[str])
    updated: set[str] = field(default_factory=set[str])
    written: set[str] = field(default_factory=set[str])

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

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            self.found.written.add(node.value.id)
        self.generic_visit(node)

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


@_remembered
def walruses(node: ast.stmt) -> frozenset[str]:
    """The names that `:=` binds in a statement, without the statements inside of it."""
    found: set[str] = set()
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.NamedExpr):
            found.add(part.target.id)
        waiting.extend(child for child in ast.iter_child_nodes(part) if not isinstance(child, ast.stmt))
    return frozenset(found)


@_remembered
def mentioned(node: ast.stmt) -> frozenset[str]:
    """The names that are called in a statement and the attributes in it, without the statements inside of it."""
    found: set[str] = set()
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Attribute):
            found.add(part.attr)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
            found.add(part.func.id)
        waiting.extend(child for child in ast.iter_child_nodes(part) if not isinstance(child, ast.stmt))
    return frozenset(found)


# --------------------------------------------------------------------------------------------------------------- reads


def reads(node: ast.AST, name: str) -> bool:
    """Whether the value of `name` may be asked for in `node`."""
    return name in _uses(node)


@_remembered
def _uses(node: ast.AST) -> Mapping[str, Sequence[ast.Name]]:
    """Where the value of each name may be asked for in `node`."""
    found: dict[str, list[ast.Name]] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            found.setdefault(part.id, []).append(part)
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            found.setdefault(part.target.id, []).append(part.target)
    return found


@_remembered
def _lambdas(function: ast.FunctionDef) -> Sequence[ast.Lambda]:
    return [part for part in ast.walk(function) if isinstance(part, ast.Lambda)]


def reads_outside(nodes: Sequence[ast.stmt], name: str) -> bool:
    """Whether `nodes`, executed in order, may read a value that `name` had before them."""
    return _outside(nodes, name)[0]


def _outside(nodes: Sequence[ast.stmt], name: str) -> tuple[bool, bool]:
    """Whether `nodes` may read an earlier value of `name`, and whether they have bound it at their end."""
    may_read = False
    for node in nodes:
        reads_here, is_bound = _outside_of_one(node, name)
        may_read |= reads_here
        if is_bound:
            return may_read, True
    return may_read, False


def _outside_of_one(node: ast.stmt, name: str) -> tuple[bool, bool]:
    match node:
        case ast.Assign(targets=targets):
            return reads(node, name), any(name in bound([target]).rebound for target in targets)
        case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr()):
            return reads(node, name), target == name
        case ast.If(test=test, body=body, orelse=orelse):
            (in_then, then_binds), (in_else, else_binds) = _outside(body, name), _outside(orelse, name)
            return reads(test, name) or in_then or in_else, then_binds and else_binds
        case ast.For(target=target, iter=items) if name in bound([target]).rebound:
            return reads(items, name), True
        case ast.For(iter=ast.expr() as head, body=body, orelse=orelse):
            return reads(head, name) or reads_outside(body, name) or reads_outside(orelse, name), False
        case ast.While(test=head, body=body, orelse=orelse):
            return reads(head, name) or reads_outside(body, name) or reads_outside(orelse, name), False
        case _:
            return reads(node, name), False


def binds_always(nodes: Sequence[ast.stmt], name: str) -> bool:
    """Whether `nodes`, executed to their end, have bound `name` on every path."""
    return _outside(nodes, name)[1]


def is_read_later(function: ast.FunctionDef, region: ast.AST, loop: ast.stmt | None, name: str) -> bool:
    """Whether `name` may be read after `region` has ended: below it, or in the next turn of the `loop` around it.

    A lambda may be called anywhere.
    """
    if any(reads(part, name) for part in _lambdas(function)):
        return True
    if loop is not None and any(reads(head, name) for head in _heads(region)):
        return True
    for use in _uses(function).get(name, ()):
        if _inside(use, region):
            continue
        if _start(use) >= _end(region) or (loop is not None and _inside(use, loop)):
            return True
    return False


def _heads(region: ast.AST) -> list[ast.expr]:
    """What a compound statement computes before its body."""
    match region:
        case ast.If(test=head) | ast.While(test=head) | ast.For(iter=head):
            return [head]
        case _:
            return []


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
