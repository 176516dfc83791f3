# SPDX-License-Identifier: Apache-2.0
"""Assignments: to names, tuples of them, attributes and items, plain, annotated and augmented."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from tilekit.diag import errors
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.surface import broadcast_shapes, describe
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.lang import operators, subscripts, values
from tilekit.lang.calls import Calls
from tilekit.lang.expressions import unsupported
from tilekit.lang.frame import Unavailable
from tilekit.lang.methods import KernelMethods
from tilekit.lang.subscripts import Part
from tilekit.lowir import scalar
from tilekit.lowir.scalar import Expr


class Assignment(Calls):
    """Executes assignments."""

    def exec_Assign(self, node: ast.Assign) -> None:
        since = self.builder.length
        value = self.evaluate(node.value)
        alone = len(node.targets) == 1
        for target in node.targets:
            self.unpack(target, value, since=since if alone else None)

    def exec_AnnAssign(self, node: ast.AnnAssign) -> None:
        annotation, since = self.evaluate(node.annotation), self.builder.length
        if node.value is None:
            raise errors.LanguageError(
                "TK103", "an annotation without a value declares nothing", help="give it a first value"
            )
        value = values.annotated(self.evaluate(node.value), annotation, ast.unparse(node.target))
        if isinstance(node.target, ast.Attribute) and isinstance(annotation, (DataType, PointerType)):
            self._declare_attribute(self.evaluate(node.target.value), node.target.attr, value)
            return
        if isinstance(node.target, ast.Name) and (isinstance(annotation, DataType) or annotation in values.HOST_TYPES):
            self.frame.declared[node.target.id] = annotation
        self.unpack(node.target, value, since=since)

    def exec_AugAssign(self, node: ast.AugAssign) -> None:
        match node.target:
            case ast.Name(id=name):
                self._augment_name(name, node)
            case ast.Attribute(value=owner, attr=attr):
                container = self.evaluate(owner)
                old = self.attribute(container, attr)
                if self.bindings.variable(container, attr) is not None and self.may_call_methods():
                    old = self.bindings.snapshot(old)
                is_alone = self._is_alone(old)
                if isinstance(old, RegisterTensor) and not is_alone and not self.bindings.may_set(container):
                    is_alone = self._is_detached(old, attr)
                updated = self._augmented(old, node, in_place=is_alone)
                if updated is not old:
                    self.set_attribute(container, attr, updated)
            case ast.Subscript(value=owner, slice=index):
                container = self._container(owner)
                if isinstance(container, RegisterTensor):
                    part = self._writable(owner, container, index)
                    old = subscripts.read(self.builder, part)
                    subscripts.write(self.builder, part, self._augmented(old, node, in_place=False))
                    return
                key = self.index(container, index)
                old = self.host(lambda: container[key])
                updated = self._augmented(old, node, in_place=self._is_alone(old))
                self.host(operators.set_item, container, key, updated)

    def _is_detached(self, tile: RegisterTensor, name: str) -> bool:
        """Whether an attribute alone holds its tile, once the names that hold it too have copies."""
        if self.bindings.detach(tile):
            return True
        raise errors.LanguageError(
            "TK114",
            f"run-time control flow cannot give the attribute {name} a tile of its own, and others hold this one too",
            help=f"self.assign(self.{name}, …) changes the tile for all who hold it",
        )

    def _augment_name(self, name: str, node: ast.AugAssign) -> None:
        with self.at(node.target):
            old = self.frame.lookup(name)
        updated = self._augmented(old, node, in_place=self._is_alone(old) or self.bindings.belongs_to_caller(old))
        if updated is not old:
            self.bindings.bind(name, updated)

    def _is_alone(self, value: Any) -> bool:
        """Whether nothing else holds a tile, so that writing it changes nobody else's value."""
        return isinstance(value, RegisterTensor) and self.bindings.references(value) <= 1

    def _augmented(self, old: Any, node: ast.AugAssign, *, in_place: bool) -> Any:
        """The new value of a target; a tile that is written in place stays what it is."""
        value = self.evaluate(node.value)
        if isinstance(old, RegisterTensor) and in_place:
            self._check_update(old, value)
            with self.explaining(old, value):
                self.host(operators.binary, node.op, old, value, self.builder, out=old)
            return old
        if values.is_runtime(old) or values.is_runtime(value):
            return self.host(operators.binary, node.op, old, value, self.builder)
        return self.host(operators.IN_PLACE[type(node.op)], old, value)

    def _check_update(self, old: RegisterTensor, value: Any) -> None:
        if isinstance(value, RegisterTensor) and broadcast_shapes("this update", old, value) != old.shape:
            raise errors.LanguageError(
                "TK213",
                f"cannot update {describe(old)} in place with {describe(value)}, for the result has another shape",
                help="bind a name to the result instead: y = x + …",
            )

    # ------------------------------------------------------------------------------------------------------- targets

    def unpack(self, target: ast.expr, value: Any, *, since: int | None = None) -> None:
        match target:
            case ast.Name(id=name):
                self.bindings.bind(name, value, since=since)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self._unpack_sequence(targets, value)
            case ast.Attribute(value=owner, attr=attr):
                self.set_attribute(self.evaluate(owner), attr, value)
            case ast.Subscript(value=owner, slice=index):
                container = self._container(owner)
                if isinstance(container, RegisterTensor):
                    subscripts.write(self.builder, self._writable(owner, container, index), value)
                    return
                key = self.index(container, index)
                self.host(operators.set_item, container, key, self.bindings.snapshot(value))
            case _:
                raise unsupported(target)

    def _unpack_sequence(self, targets: list[ast.expr], value: Any) -> None:
        if values.is_runtime(value):
            raise errors.LanguageError("TK103", f"{describe(value)} cannot be unpacked")
        # every right side is there before any name is bound: `a, b = b, a` swaps, in straight-line code without a copy
        parts = [self.bindings.snapshot(part) for part in _matched(targets, self.host_items(value))]
        for target in targets:
            if isinstance(target, ast.Name) and target.id not in self.frame.owned:
                self.frame.names[target.id] = Unavailable("is being bound")
        for target, part in zip(targets, parts, strict=True):
            self.unpack(target.value if isinstance(target, ast.Starred) else target, part)

    def _container(self, node: ast.expr) -> Any:
        """What an item is assigned to."""
        if isinstance(node, ast.Subscript):
            outer = self.evaluate(node.value)
            if isinstance(outer, RegisterTensor):
                raise errors.LanguageError(
                    "TK103", "a part of a part of a tile cannot be written", help="write x[i, j] = … for x[i][j] = …"
                )
            with self.at(node):
                found = self.subscripted(outer, node.slice)
            container = found.tensor if isinstance(found, Part) else found
        else:
            container = self.evaluate(node)
        if isinstance(container, (SharedTensor, GlobalTensor)):
            where = "shared" if isinstance(container, SharedTensor) else "global"
            raise errors.LanguageError(
                "TK103",
                f"{describe(container)} cannot be written by index",
                help=f"store a tile there: self.store_{where}(t, tile, offsets=[…])",
            )
        if isinstance(container, Expr):
            raise errors.LanguageError("TK103", f"{describe(container)} cannot be written by index")
        if isinstance(container, RegisterTensor) and not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            raise errors.LanguageError(
                "TK103", "a tile without a name cannot be written: nobody could read it", help="give it a name first"
            )
        return container

    def _writable(self, owner: ast.expr, tile: RegisterTensor, index: ast.expr) -> Part:
        """The part of a tile to write; a tile that others hold too becomes one of the owner's own first."""
        with self.consuming(True):
            part = self.part(tile, index)
        is_callers = isinstance(owner, ast.Name) and self.bindings.belongs_to_caller(tile)
        if self._is_alone(tile) or is_callers:
            return part
        own = self.bindings.copy_of(tile)
        self.unpack(owner, own)
        return dataclasses.replace(part, tensor=own)

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        if values.is_runtime(owner):
            raise errors.LanguageError("TK103", f"{describe(owner)} has no attributes to set")
        found = self.property_of(owner, name)
        if found is not None and found.fset in self.methods:
            self.inline(found.fset, [owner, value], {})
            return
        variable = self.bindings.variable(owner, name)
        if variable is not None:
            self.bindings.assign(variable, value, f"the attribute {name}")
            return
        if not self.bindings.may_set(owner):
            raise _exists_only_now(name, value)
        if (
            isinstance(value, RegisterTensor)
            and self.bindings.references(value)
            and getattr(owner, name, None) is not value
        ):
            value = self.bindings.copy_of(value)
        if isinstance(value, Tensor):
            self.builder.names.setdefault(value, name)
        self.host(setattr, owner, name, self.bindings.snapshot(value))

    def _declare_attribute(self, owner: Any, name: str, value: Expr) -> None:
        """`self.x: int32 = value`: from here on the attribute is a variable of the running kernel."""
        if not isinstance(owner, KernelMethods):
            raise errors.LanguageError(
                "TK103",
                f"{describe(owner)} exists only while compiling, so its attributes have no run-time type",
                help="make its class a tilus.Class, or use a local name",
            )
        variable = self.bindings.variable(owner, name)
        if variable is not None and scalar.dtype_of(variable) == scalar.dtype_of(value):
            self.builder.assign(variable, value)
        elif self.bindings.may_set(owner):
            self.bindings.declare(owner, name, value)
        else:
            raise _exists_only_now(name, value)


def _exists_only_now(name: str, value: Any) -> errors.LanguageError:
    if isinstance(value, RegisterTensor):
        advice = f"write the tile in place: self.{name} += …, or self.assign(self.{name}, …)"
    elif values.is_number(value):
        advice = f"make it a variable where it is first set: self.{name}: int32 = …"
    else:
        advice = "use a local name for what changes while the kernel runs"
    return errors.LanguageError(
        "TK114",
        f"run-time control flow cannot set the attribute {name}, which exists only while compiling",
        help=advice,
    )


def _matched(targets: list[ast.expr], parts: list[Any]) -> list[Any]:
    """One value for each target; a starred one takes what the others leave."""
    star = next((i for i, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
    if star is None:
        if len(parts) != len(targets):
            raise errors.LanguageError("TK104", f"{len(parts)} values for {len(targets)} names")
        return parts
    behind = len(targets) - star - 1
    if len(parts) < star + behind:
        raise errors.LanguageError("TK104", f"{len(parts)} values for at least {star + behind} names")
    end = len(parts) - behind
    return [*parts[:star], parts[star:end], *parts[end:]]
