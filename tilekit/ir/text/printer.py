# SPDX-License-Identifier: Apache-2.0
"""Tile IR printed as Python syntax: one line a statement, nothing in it that is not part of the program.

    @kernel(
        grid=[(n + i32(255)) // i32(256), i32(1), i32(1)],
        warps=4,
    )
    def double(n: i32, x: ~f32):
        g: Global[f32[n]] = global_view(ptr=x)
        a: f32[256] @ local(2).spatial(128) = load_global(g, offsets=[block_idx_x * i32(256)], dims=[0])
        a = add(a, a)
        store_global(g, a, offsets=[block_idx_x * i32(256)], dims=[0])

A tensor's type stands where it first gets a value, its layout behind `@`. The arguments of an instruction are its
tensors in order and its other fields by name; all of that comes from the roles of its fields. An element of a tensor
becomes a scalar by `v: Item[f32] = g[i, j]`, its address a pointer by `p: Item[~f32] = ~g[i, j]`.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast

from tilekit.diag.span import Span
from tilekit.dtypes import DataType, PointerType
from tilekit.ir import stmt as stmts
from tilekit.ir.func import Analysis, Function
from tilekit.ir.inst import Instruction, Role
from tilekit.ir.layout import RegisterLayout, SharedLayout
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.ir.text import blocks, names
from tilekit.ir.text.blocks import Block, Let, Line, Scope
from tilekit.ir.text.names import Names
from tilekit.lowir import scalar, scalar_text
from tilekit.lowir.scalar import Expr, Var

_INDENT = "    "

# a line, and what it prints: a statement, the function in its `def` line, or nothing
Printed: TypeAlias = "tuple[str, Line | Function | None]"


def print_function(func: Function) -> str:
    """The function as text."""
    return "\n".join(text for text, _ in print_lines(func))


def print_lines(func: Function) -> list[Printed]:
    """The lines of the function, each with what it prints."""
    return list(_Printer(Names.of_function(func)).function(func))


def span_of(printed: Line | Function | None) -> Span | None:
    """The place in the user's source that a line comes from."""
    if isinstance(printed, stmts.InstStmt) and printed.span is None:
        return printed.inst.span
    return None if printed is None else printed.span


def print_instruction(inst: Instruction, names: Names, *, layouts: bool = False) -> str:
    """The instruction in one line, with the names of its function: `Names.of_function(func)`."""
    return _Printer(names, layouts=layouts).instruction(inst)


def print_type(type_: DataType | PointerType) -> str:
    return type_.short_name


def print_data(value: Any) -> str:
    """Plain data of an instruction: what a static field holds."""
    match value:
        case tuple():
            return f"[{', '.join(map(print_data, cast('tuple[Any, ...]', value)))}]"
        case DataType() | PointerType():
            return print_type(value)
        case enum.Enum():
            return f"{type(value).__name__}.{value.name}"
        case float() if not math.isfinite(value):
            return f"float('{value}')"
        case RegisterLayout() | SharedLayout() | bool() | int() | float() | str() | None:
            return repr(value)
        case _:
            raise TypeError(f"a field that holds a {type(value).__name__} has no printed form")


class _Printer:
    def __init__(self, names: Names, *, layouts: bool = True) -> None:
        self.names = names
        self.layouts = layouts

    # ------------------------------------------------------------------------------------------------- functions

    def function(self, func: Function) -> Iterator[Printed]:
        yield "@kernel(", None
        for line in self._header(func):
            yield _INDENT + line, None
        yield ")", None
        params = ", ".join(f"{self.names.name(p)}: {print_type(scalar.dtype_of(p))}" for p in func.params)
        yield f"def {func.name}({params}):", func
        yield from self.block(blocks.block_of(func.body), 1)

    def _header(self, func: Function) -> Iterator[str]:
        metadata = func.metadata
        yield f"grid={self._list(metadata.grid_blocks)},"
        if metadata.cluster_blocks != (1, 1, 1):
            yield f"cluster={list(metadata.cluster_blocks)},"
        if not all(names.is_special(var) for var in metadata.block_indices):
            yield f"block_indices={self._list(metadata.block_indices)},"
        yield f"warps={metadata.num_warps},"
        if metadata.param2divisibility:
            yield f"divisibility={{{self._divisors(metadata.param2divisibility)}}},"
        if metadata.analysis is not None:
            yield from self._analysis(metadata.analysis)

    def _analysis(self, analysis: Analysis) -> Iterator[str]:
        """`row % 4 == 0, 0 <= row <= 1020,`: a line for each variable."""
        yield "analysis=["
        for var in self._known(dict.fromkeys([*analysis.divisibility, *analysis.lower_bound, *analysis.upper_bound])):
            name, facts = self.names.name(var), list[str]()
            if var in analysis.divisibility:
                facts.append(f"{name} % {analysis.divisibility[var]} == 0")
            low = f"{analysis.lower_bound[var]} <= " if var in analysis.lower_bound else ""
            high = f" <= {analysis.upper_bound[var]}" if var in analysis.upper_bound else ""
            if low or high:
                facts.append(f"{low}{name}{high}")
            yield f"{_INDENT}{', '.join(facts)},"
        yield "],"

    def _divisors(self, divisibility: Mapping[Var, int]) -> str:
        return ", ".join(f"{self.names.name(var)}: {divisibility[var]}" for var in self._known(divisibility))

    def _known(self, facts: Iterable[Var]) -> list[Var]:
        """The variables in the order of the text; those that the function lost are left out."""
        shown = (var for var in facts if var in self.names or names.is_special(var))
        return sorted(shown, key=self.names.order)

    # ------------------------------------------------------------------------------------------------ statements

    def block(self, block: Block, depth: int) -> Iterator[Printed]:
        if not block:
            yield _INDENT * depth + "pass", None
        for line in block:
            yield from self.line(line, depth)

    def line(self, line: Line, depth: int) -> Iterator[Printed]:
        head = self._head(line)
        yield _INDENT * depth + head, line
        match line:
            case Scope(body=body):
                yield from self.block(body, depth + 1)
            case stmts.ForStmt() | stmts.WhileStmt():
                yield from self.block(blocks.block_of(line.body), depth + 1)
            case stmts.IfStmt():
                yield from self.block(blocks.block_of(line.then_body), depth + 1)
                yield from self._otherwise(blocks.block_of(line.else_body), depth)
            case _:
                return

    def _otherwise(self, block: Block, depth: int) -> Iterator[Printed]:
        if not block:
            return
        if len(block) == 1 and isinstance(block[0], stmts.IfStmt):
            (_, line), *rest = self.line(block[0], depth)
            yield f"{_INDENT * depth}elif {self.expr(block[0].cond)}:", line
            yield from rest
        else:
            yield _INDENT * depth + "else:", None
            yield from self.block(block, depth + 1)

    def _head(self, line: Line) -> str:
        match line:
            case Let(var=var, value=value):
                return f"{self.names.name(var)}: Let[{print_type(scalar.dtype_of(var))}] = {self.expr(value)}"
            case Scope():
                return "with scope:"
            case stmts.ForStmt():
                return f"for {self.names.name(line.iter_var)} in {self._range(line)}:"
            case stmts.WhileStmt(cond=cond):
                return f"while {self.expr(cond)}:"
            case stmts.IfStmt(cond=cond):
                return f"if {self.expr(cond)}:"
            case stmts.BreakStmt():
                return "break"
            case stmts.ReturnStmt():
                return "return"
            case stmts.DeclareStmt(var=var, init=init):
                declared = f"{self.names.name(var)}: {print_type(scalar.dtype_of(var))}"
                return declared if init is None else f"{declared} = {self.expr(init)}"
            case stmts.AssignStmt(var=var, value=value):
                return f"{self.names.name(var)} = {self.expr(value)}"
            case stmts.TensorItemValueStmt(var=var, tensor=tensor, offsets=offsets):
                return f"{self._item(var)} = {self._element(tensor, offsets)}"
            case stmts.TensorItemPtrStmt(ptr_var=var, tensor=tensor, offsets=offsets):
                return f"{self._item(var)} = ~{self._element(tensor, offsets)}"
            case stmts.InstStmt(inst=inst):
                return self.instruction(inst)
            case _:
                raise TypeError(f"{type(line).__name__} has no printed form")

    def _item(self, var: Var) -> str:
        return f"{self.names.name(var)}: Item[{print_type(scalar.dtype_of(var))}]"

    def _element(self, tensor: Tensor, offsets: tuple[Expr, ...]) -> str:
        return f"{self.names.name(tensor)}[{', '.join(map(self.expr, offsets)) or '()'}]"

    def _range(self, loop: stmts.ForStmt) -> str:
        extent = self.expr(loop.extent)
        if loop.unroll_factor is None:
            return f"range({extent})"
        return f"range({extent}, unroll={'all' if loop.unroll_factor == -1 else loop.unroll_factor!r})"

    # ---------------------------------------------------------------------------------------------- instructions

    def instruction(self, inst: Instruction) -> str:
        called = self._call(inst)
        if inst.output is None:
            return called
        target = self.names.name(inst.output)
        if self.names.defines(inst):
            target += f": {self.tensor_type(inst.output)}"
        return f"{target} = {called}"

    def _call(self, inst: Instruction) -> str:
        inner = _Printer(self.names.with_bound(inst.bound_vars))
        arguments = [inner.operand(value) for value in inst.fields_of(Role.OPERAND, Role.INOUT).values()]
        defaults = {field.name: field.default for field in dataclasses.fields(inst)}
        for name, value in inst.attributes.items():
            text = inner.attribute(value)
            if not _is_default(text, defaults[name]):
                arguments.append(f"{name}={text}")
        return f"{inst.opcode}({', '.join(arguments)})"

    def operand(self, value: Any) -> str:
        if isinstance(value, tuple):
            return f"[{', '.join(map(self.operand, cast('tuple[Any, ...]', value)))}]"
        return "None" if value is None else self.names.name(value)

    def attribute(self, value: Any) -> str:
        """An expression, a variable, plain data, or a list of them."""
        if isinstance(value, tuple):
            return self._list(cast("tuple[Any, ...]", value))
        return self.expr(value) if isinstance(value, Expr) else print_data(value)

    def tensor_type(self, tensor: Tensor) -> str:
        dtype = print_type(tensor.dtype)
        match tensor:
            case RegisterTensor(shape=shape, optional_layout=layout):
                text = f"{dtype}[{', '.join(map(str, shape)) or '()'}]"
                return text if layout is None or not self.layouts else f"{text} @ {layout!r}"
            case SharedTensor(shape=shape, optional_layout=layout):
                text = f"Shared[{dtype}[{', '.join(map(str, shape)) or '()'}]]"
                return text if layout is None or not self.layouts else f"{text} @ {layout!r}"
            case GlobalTensor(layout=layout):
                text = f"Global[{dtype}[{', '.join(map(self.expr, layout.shape)) or '()'}]]"
                strides = ", ".join(map(self.expr, layout.strides))
                return text if is_row_major(layout) else f"{text} @ strides({strides})"
            case _:
                raise TypeError(f"{type(tensor).__name__} has no printed form")

    # ----------------------------------------------------------------------------------------------- expressions

    def expr(self, expr: Expr) -> str:
        return scalar_text.to_text(expr, self.names.name)

    def _list(self, values: tuple[Any, ...]) -> str:
        return f"[{', '.join(map(self.attribute, values))}]"


def is_row_major(layout: GlobalLayout) -> bool:
    """Whether the strides are those that follow from the shape, said in the same expressions."""
    plain = GlobalLayout.row_major(layout.shape).strides
    return all(scalar.structurally_equal(ours, other) for ours, other in zip(layout.strides, plain, strict=True))


def _is_default(text: str, default: Any) -> bool:
    return default is not dataclasses.MISSING and text == print_data(default)
