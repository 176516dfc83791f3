# SPDX-License-Identifier: Apache-2.0
"""Attributes and subscripts: of Python objects, of tensors, and of what the kernel language gives a kernel."""

from __future__ import annotations

import ast
import inspect
from typing import Any, cast

from tilekit.diag import errors, suggest
from tilekit.diag.errors import TilekitError
from tilekit.dtypes import DataType, PointerType
from tilekit.ir.surface import describe
from tilekit.ir.tensor import GlobalTensor, SharedTensor, Tensor
from tilekit.lang import methods, operators, subscripts, tensor_methods, values
from tilekit.lang.attributes import Attributes
from tilekit.lang.expressions import Expressions
from tilekit.lang.methods import KernelMethods
from tilekit.lang.subscripts import Part
from tilekit.lang.tensor_methods import Element
from tilekit.lowir.scalar import Expr

# what an element of memory is asked, for which nobody needs a tensor of that one element
_OF_ELEMENTS = ("item", "item_ptr")


class Access(Expressions):
    """Evaluates attributes and subscripts."""

    # ---------------------------------------------------------------------------------------------------- attributes

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        with self.consuming(self.is_consumed or node.attr == "item"):
            owner = self._unread(node.value)
        if isinstance(owner, Part):
            element = self._element(owner) if node.attr in _OF_ELEMENTS else None
            if element is not None:
                return getattr(element, node.attr)
            owner = subscripts.read(self.builder, owner)
        if isinstance(owner, Tensor):
            return self._tensor_attribute(owner, node.attr)
        if isinstance(owner, Expr):
            raise errors.LanguageError("TK102", f"{describe(owner)} has no attribute {node.attr}")
        found = self.attribute(owner, node.attr)
        is_variable = self.bindings.variable(owner, node.attr) is not None
        return self.bindings.snapshot(found) if is_variable and self.may_call_methods() else found

    def may_call_methods(self) -> bool:
        """Whether the present statement may run a method, before or after what is evaluated now."""
        raise NotImplementedError

    def attribute(self, owner: Any, name: str) -> Any:
        """An attribute of a host object."""
        try:
            inspect.getattr_static(owner, name)
        except AttributeError:
            if not hasattr(owner, name):
                raise self._no_attribute(owner, name) from None
        return self.host(getattr, owner, name)

    def _tensor_attribute(self, tensor: Tensor, name: str) -> Any:
        asked = tensor_methods.methods_of(self.kernel, self.builder, tensor)
        found = tensor_methods.names(asked)
        if name not in found:
            near = suggest(name, found)
            raise errors.LanguageError(
                "TK102", f"{describe(tensor)} has no {name}", help=f"did you mean {near}?" if near else None
            )
        return getattr(asked, name)

    def _no_attribute(self, owner: object, name: str) -> TilekitError:
        if isinstance(owner, KernelMethods) and name in methods.MISSING:
            return errors.LanguageError("TK102", f"self.{name} of tilus is not available in this version of tilekit")
        if isinstance(owner, KernelMethods):
            own = [n for n in dir(type(owner)) if not n.startswith("_")]
            near = suggest(name, [*methods.names(), *own, *vars(owner)])
            what = "self" if owner is self.kernel else type(owner).__name__
            return errors.LanguageError(
                "TK102",
                f"{what} has no {name}",
                help=f"did you mean {'self.' if owner is self.kernel else ''}{near}?" if near else "set it in __init__",
            )
        near = suggest(name, [n for n in dir(owner) if not n.startswith("_")])
        what = "self.attrs" if isinstance(owner, Attributes) else getattr(owner, "__name__", type(owner).__name__)
        return errors.LanguageError("TK102", f"{what} has no {name}", help=f"did you mean {near}?" if near else None)

    # ---------------------------------------------------------------------------------------------------- subscripts

    def _unread(self, node: ast.expr) -> Any:
        """The value of an expression; of a subscript of a tensor the part that is meant, nothing emitted yet."""
        if not isinstance(node, ast.Subscript):
            return self.evaluate(node)
        with self.at(node):
            return self.subscripted(self.evaluate(node.value), node.slice)

    def _element(self, part: Part) -> Element[SharedTensor | GlobalTensor] | None:
        """A part that is one element of memory, as what can be asked of it."""
        memory = part.tensor
        if not part.is_element or not isinstance(memory, (SharedTensor, GlobalTensor)):
            return None
        return Element(self.kernel, self.builder, memory, part.offsets)

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """`~g[i, j]` is the address of an element of memory; of anything else, what the operator says."""
        if not isinstance(node.op, ast.Invert):
            return super().eval_UnaryOp(node)
        value = self._unread(node.operand)
        if isinstance(value, Part):
            element = self._element(value)
            if element is not None:
                return element.item_ptr()
            value = subscripts.read(self.builder, value)
        return self.host(operators.unary, node.op, value, self.builder)

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        found = self.subscripted(self.evaluate(node.value), node.slice)
        return subscripts.read(self.builder, found) if isinstance(found, Part) else found

    def subscripted(self, owner: Any, node: ast.expr) -> Any:
        """An item of a Python object; of a tensor the part that is meant, nothing emitted yet."""
        if isinstance(owner, Tensor):
            return self.part(owner, node)
        if isinstance(owner, Expr):
            raise errors.LanguageError("TK103", f"{describe(owner)} cannot be indexed")
        return self.host(lambda: owner[self.index(owner, node)])

    def part(self, tensor: Tensor, node: ast.expr) -> Part:
        """The part of a tensor that a subscript means."""
        given: list[Any] = []
        for part in node.elts if isinstance(node, ast.Tuple) else [node]:
            if isinstance(part, ast.Slice):
                if part.lower is not None or part.upper is not None or part.step is not None:
                    with self.at(part):
                        raise subscripts.limited(tensor)
                given.append(slice(None))
            elif isinstance(part, ast.Starred):
                given.extend(self.host_items(self.evaluate(part.value)))
            else:
                value = self.evaluate(part)
                value = value if self.is_consumed else self.bindings.snapshot(value)
                given.extend(cast("tuple[Any, ...]", value) if isinstance(value, tuple) else [value])
        return subscripts.part_of(tensor, given)

    def index(self, owner: Any, node: ast.expr) -> Any:
        """The index of a host container, which is known at compile time."""
        found = values.known(self.evaluate(node))
        if isinstance(found, Expr) and not isinstance(owner, (DataType, PointerType)):
            raise errors.LanguageError("TK106", "an index into a Python object must be known at compile time")
        return found

    def eval_Slice(self, node: ast.Slice) -> Any:
        parts = (node.lower, node.upper, node.step)
        found = [None if part is None else values.known(self.evaluate(part)) for part in parts]
        if any(map(values.is_runtime, found)):
            raise errors.LanguageError("TK106", "a slice of a Python object must be known at compile time")
        return slice(*found)
