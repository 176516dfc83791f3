# SPDX-License-Identifier: Apache-2.0
"""Tile IR read back from its text: `ast` parses, the constructors of the nodes build, nothing is evaluated.

Every node gets the span of its own line in the text, counted from the function's `def`, unless spans are given.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from tilekit import dtypes
from tilekit.diag import suggest
from tilekit.diag.span import Span
from tilekit.dtypes import DataType, PointerType
from tilekit.ir import instructions
from tilekit.ir import stmt as stmts
from tilekit.ir.func import Analysis, Function, Metadata
from tilekit.ir.inst import REGISTRY, Instruction, Role
from tilekit.ir.layout import parser as layout_parser
from tilekit.ir.prog import Program
from tilekit.ir.stmt import Stmt
from tilekit.ir.tensor import GlobalLayout, GlobalTensor, RegisterTensor, SharedTensor, Tensor
from tilekit.ir.text import names, syntax
from tilekit.lowir import scalar, scalar_text
from tilekit.lowir.scalar import Expr, Var

_ = instructions  # importing them fills REGISTRY

T = TypeVar("T")


def parse_program(text: str, spans: Sequence[Span | None] | None = None) -> Program:
    """The program that prints as `text`; with `spans`, one for each line, its nodes get these."""
    functions: dict[str, Function] = {}
    for node in _parsed(text):
        if node.name in functions:
            syntax.fail(node, f"there is already a function {node.name}")
        functions[node.name] = _FunctionReader(node, spans).function()
    return Program.create(functions)


def parse_function(text: str) -> Function:
    """The one function that prints as `text`."""
    return parse_program(text).function


def _parsed(text: str) -> Iterator[ast.FunctionDef]:
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise syntax.complaint(error.lineno or 1, (error.offset or 1) - 1, error.msg) from None
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef):
            syntax.fail(node, "expected a function: @kernel(…) and def name(…):")
        yield node


class _FunctionReader:
    """Reads one function; a name means the same tensor or variable from its first line to its last."""

    def __init__(self, node: ast.FunctionDef, spans: Sequence[Span | None] | None = None) -> None:
        self.node = node
        self.spans = spans
        self.named: dict[str, Tensor | Var] = {}

    # ------------------------------------------------------------------------------------------------- functions

    def function(self) -> Function:
        node = self.node
        header = self._header()
        params = [self._declare(arg, self._scalar_type(syntax.annotation(arg))) for arg in node.args.args]
        indices = self._block_indices(header)
        body = self.block(node.body)
        # facts may speak of variables of the body
        metadata = Metadata.create(
            grid_blocks=self._three(header["grid"], self.expr),
            cluster_blocks=self._three(header["cluster"], syntax.integer) if "cluster" in header else (1, 1, 1),
            block_indices=indices,
            num_warps=syntax.integer(header["warps"]),
            param2divisibility=self._divisors(header["divisibility"]) if "divisibility" in header else None,
            analysis=self._analysis(header["analysis"]) if "analysis" in header else None,
        )
        return Function(node.name, tuple(params), body, metadata, span=self.span(node))

    def _header(self) -> dict[str, ast.expr]:
        match self.node.decorator_list:
            case [ast.Call(func=ast.Name(id="kernel"), args=[]) as call]:
                pass
            case _:
                syntax.fail(self.node, "expected @kernel(grid=…, warps=…) before the function")
        allowed = ("grid", "cluster", "block_indices", "warps", "divisibility", "analysis")
        header = syntax.keywords(call, "@kernel", allowed)
        for name in ("grid", "warps"):
            if name not in header:
                syntax.fail(call, f"@kernel needs {name}=")
        return header

    def _block_indices(self, header: Mapping[str, ast.expr]) -> list[Var]:
        if "block_indices" not in header:
            return [scalar.block_idx(axis) for axis in range(3)]
        return self._three(header["block_indices"], self._block_index)

    def _block_index(self, node: ast.expr) -> Var:
        name = syntax.identifier(node)
        return names.SPECIAL[name] if name in names.SPECIAL else self._declare(node, dtypes.int32, name)

    def _three(self, node: ast.expr, read: Callable[[ast.expr], T]) -> list[T]:
        values = [read(element) for element in syntax.elements(node)]
        if len(values) != 3:
            syntax.fail(node, f"expected a list of 3, one for each axis, got {len(values)}")
        return values

    def _analysis(self, node: ast.expr) -> Analysis:
        divisibility, lower, upper = dict[Var, int](), dict[Var, int](), dict[Var, int]()
        for fact in syntax.elements(node):
            match fact:
                case ast.Compare(ast.BinOp(var, ast.Mod(), divisor), [ast.Eq()], [ast.Constant(0)]):
                    divisibility[self._var(var)] = syntax.integer(divisor)
                case ast.Compare(low, [ast.LtE(), ast.LtE()], [var, high]):
                    lower[self._var(var)], upper[self._var(var)] = syntax.integer(low), syntax.integer(high)
                case ast.Compare(ast.Name() as var, [ast.LtE()], [high]):
                    upper[self._var(var)] = syntax.integer(high)
                case ast.Compare(low, [ast.LtE()], [var]):
                    lower[self._var(var)] = syntax.integer(low)
                case _:
                    syntax.fail(fact, "expected a fact: i % 4 == 0, 0 <= i, or 0 <= i <= 12")
        return Analysis(divisibility, lower, upper)

    def _divisors(self, node: ast.expr) -> dict[Var, int]:
        if not isinstance(node, ast.Dict):
            syntax.fail(node, "expected {parameter: divisor, …}")
        divisors: dict[Var, int] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                syntax.fail(node, "expected {parameter: divisor, …}")
            divisors[self._var(key)] = syntax.integer(value)
        return divisors

    # ------------------------------------------------------------------------------------------------ statements

    def block(self, nodes: Sequence[ast.stmt]) -> Stmt:
        lines: list[Stmt] = []
        for number, node in enumerate(nodes):
            let = self._let(node)
            if let is not None:
                lines.append(stmts.LetStmt(*let, self.block(nodes[number + 1 :]), span=self.span(node)))
                break
            if not isinstance(node, ast.Pass):
                lines.append(self.line(node))
        return lines[0] if len(lines) == 1 else stmts.SeqStmt(tuple(lines))

    def _let(self, node: ast.stmt) -> tuple[tuple[Var], tuple[Expr]] | None:
        match node:
            case ast.AnnAssign(annotation=ast.Subscript(value=ast.Name(id="Let"), slice=type_)):
                if node.value is None:
                    syntax.fail(node, "expected a value: name: Let[type] = value")
                value = self.expr(node.value)
                return (self._declare(node.target, self._scalar_type(type_)),), (value,)
            case _:
                return None

    def line(self, node: ast.stmt) -> Stmt:
        span = self.span(node)
        match node:
            case ast.For(target=target, iter=ast.Call(func=ast.Name(id="range")) as range_, orelse=[]):
                return self._for(target, range_, node.body, span)
            case ast.While(test=test, orelse=[]):
                return stmts.WhileStmt(self.expr(test), self.block(node.body), span=span)
            case ast.If(test=test):
                otherwise = self.block(node.orelse) if node.orelse else None
                return stmts.IfStmt(self.expr(test), self.block(node.body), otherwise, span=span)
            case ast.With(items=[ast.withitem(context_expr=ast.Name(id="scope"), optional_vars=None)]):
                return self.block(node.body)
            case ast.Break():
                return stmts.BreakStmt(span=span)
            case ast.Return(value=None):
                return stmts.ReturnStmt(span=span)
            case ast.AnnAssign(annotation=ast.Name() | ast.UnaryOp(operand=ast.Name() | ast.UnaryOp())):
                init = None if node.value is None else self.expr(node.value)
                var = self._declare(node.target, self._scalar_type(node.annotation))
                return stmts.DeclareStmt(var, init, span=span)
            case ast.AnnAssign(annotation=ast.Subscript(value=ast.Name(id="Item"), slice=type_)):
                return self._item(node.target, self._scalar_type(type_), node.value, span)
            case ast.AnnAssign(value=ast.Call() as call):
                output = self._new_tensor(node.target, node.annotation)
                return stmts.InstStmt(self.instruction(call, output), span=span)
            case ast.Assign(targets=[target], value=value):
                return self._assign(target, value, span)
            case ast.Expr(value=ast.Call() as call):
                return stmts.InstStmt(self.instruction(call, None), span=span)
            case _:
                syntax.fail(node, "expected an instruction or a statement of the tile IR")

    def _item(self, target: ast.expr, type_: DataType | PointerType, value: ast.expr | None, span: Span | None) -> Stmt:
        match value:
            case ast.Subscript(value=named, slice=index):
                tensor, offsets = self._tensor(named), tuple(map(self.expr, syntax.elements(index)))
                return stmts.TensorItemValueStmt(self._declare(target, type_), tensor, offsets, span=span)
            case ast.UnaryOp(op=ast.Invert(), operand=ast.Subscript(value=named, slice=index)):
                tensor, offsets = self._tensor(named), tuple(map(self.expr, syntax.elements(index)))
                if isinstance(tensor, RegisterTensor):
                    syntax.fail(named, f"{ast.unparse(named)} lies in registers, which have no address")
                return stmts.TensorItemPtrStmt(self._declare(target, type_), tensor, offsets, span=span)
            case _:
                syntax.fail(value or target, "expected an element of a tensor, g[i, j], or its address, ~g[i, j]")

    def _tensor(self, node: ast.expr) -> RegisterTensor | SharedTensor | GlobalTensor:
        named = self._named(node)
        if not isinstance(named, (RegisterTensor, SharedTensor, GlobalTensor)):
            syntax.fail(node, f"expected a tensor, but {ast.unparse(node)} is a scalar")
        return named

    def _for(self, target: ast.expr, range_: ast.Call, body: list[ast.stmt], span: Span | None) -> Stmt:
        if len(range_.args) != 1:
            syntax.fail(range_, "expected range(extent)")
        options = syntax.keywords(range_, "range", ("unroll",))
        extent = self.expr(range_.args[0])
        unroll: int | None = None
        if "unroll" in options:
            match options["unroll"]:
                case ast.Constant(value="all"):
                    unroll = -1
                case factor:
                    unroll = syntax.integer(factor)
        return stmts.ForStmt(
            self._declare(target, scalar.dtype_of(extent)), extent, self.block(body), unroll, span=span
        )

    def _assign(self, target: ast.expr, value: ast.expr, span: Span | None) -> Stmt:
        named = self._named(target)
        if isinstance(named, Var):
            return stmts.AssignStmt(named, self.expr(value), span=span)
        if not isinstance(value, ast.Call):
            syntax.fail(value, "expected an instruction: a tensor gets a value from nothing else")
        return stmts.InstStmt(self.instruction(value, named), span=span)

    # ---------------------------------------------------------------------------------------------- instructions

    def instruction(self, call: ast.Call, output: Tensor | None) -> Instruction:
        opcode = syntax.identifier(call.func)
        cls = REGISTRY.get(opcode)
        if cls is None:
            near = suggest(opcode, REGISTRY)
            syntax.fail(call, f"there is no instruction {opcode!r}", f"did you mean {near}?" if near else None)
        roles = cls.roles()
        tensors = [name for name, role in roles.items() if role in (Role.OPERAND, Role.INOUT)]
        if len(call.args) != len(tensors):
            syntax.fail(call, f"{opcode} takes {len(tensors)} tensors, got {len(call.args)}")
        given = syntax.keywords(call, opcode, [name for name in roles if name not in tensors])
        fields: dict[str, Any] = {name: self._operand(arg) for name, arg in zip(tensors, call.args, strict=True)}
        bound: dict[str, Var] = {}
        for name, value in given.items():
            if roles[name] is Role.BINDER:
                fields[name] = tuple(self._bind(element, bound) for element in syntax.elements(value))
        for name, value in given.items():
            match roles[name]:
                case Role.SCALAR:
                    fields[name] = self._scalars(value, bound)
                case Role.STATIC:
                    fields[name] = _Static(cls, name).read(value)
                case _:
                    pass
        for field in dataclasses.fields(cls):
            if field.name in roles and field.name not in fields and field.default is dataclasses.MISSING:
                syntax.fail(call, f"{opcode} needs {field.name}=")
        return cls(output, **fields, span=self.span(call))

    def _operand(self, node: ast.expr) -> Any:
        match node:
            case ast.List():
                return tuple(map(self._operand, node.elts))
            case ast.Constant(value=None):
                return None
            case _:
                named = self._named(node)
                if isinstance(named, Var):
                    syntax.fail(node, f"expected a tensor, but {ast.unparse(node)} is a scalar")
                return named

    def _bind(self, node: ast.expr, bound: dict[str, Var]) -> Var:
        name = syntax.identifier(node)
        return bound.setdefault(name, scalar.var(name, dtypes.int32))

    def _scalars(self, node: ast.expr, bound: Mapping[str, Var]) -> Any:
        match node:
            case ast.List():
                return tuple(self.expr(element, bound) for element in node.elts)
            case ast.Constant(value=None):
                return None
            case _:
                return self.expr(node, bound)

    # -------------------------------------------------------------------------------------------- names and types

    def expr(self, node: ast.expr, bound: Mapping[str, Var] | None = None) -> Expr:
        def lookup(name: str) -> Var:
            if bound is not None and name in bound:
                return bound[name]
            return self._var(next(n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name))

        with syntax.placed(node):
            return scalar_text.from_text(node, lookup)

    def _var(self, node: ast.expr) -> Var:
        if isinstance(node, ast.Name) and node.id in names.SPECIAL:
            return names.SPECIAL[node.id]
        named = self._named(node)
        if not isinstance(named, Var):
            syntax.fail(node, f"expected a scalar, but {ast.unparse(node)} is a tensor")
        return named

    def _named(self, node: ast.expr) -> Tensor | Var:
        name = syntax.identifier(node)
        if name not in self.named:
            near = suggest(name, self.named)
            syntax.fail(node, f"{name} is not defined before this line", f"did you mean {near}?" if near else None)
        return self.named[name]

    def _declare(self, node: ast.expr | ast.arg, type_: DataType | PointerType, name: str | None = None) -> Var:
        """The variable of that name; a name that is declared once more, say by a second loop, is the same variable."""
        name = name or (node.arg if isinstance(node, ast.arg) else syntax.identifier(node))
        if name in names.SPECIAL:
            syntax.fail(node, f"{name} cannot be declared: it is a coordinate that every kernel has")
        old = self.named.get(name)
        if old is None:
            var = self.named[name] = scalar.var(name, type_)
            return var
        if not isinstance(old, Var) or scalar.dtype_of(old) != type_:
            syntax.fail(node, f"{name} already has another type")
        return old

    def _scalar_type(self, node: ast.expr) -> DataType | PointerType:
        with syntax.placed(node):
            return dtypes.parse_type(ast.unparse(node))

    def _new_tensor(self, target: ast.expr, annotation: ast.expr) -> Tensor:
        name = syntax.identifier(target)
        if name in self.named:
            syntax.fail(target, f"{name} already has a type")
        tensor = self.named[name] = self._tensor_type(annotation).replace(name=name)
        return tensor

    def _tensor_type(self, node: ast.expr) -> Tensor:
        """A tensor of the type that an annotation says, without a name."""
        place: ast.expr | None = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            node, place = node.left, node.right
        with syntax.placed(node):
            match node:
                case ast.Subscript(value=ast.Name(id="Global"), slice=ast.Subscript(value=dtype, slice=extents)):
                    shape = tuple(map(self.expr, syntax.elements(extents)))
                    strides = None if place is None else self._strides(place)
                    plain = GlobalLayout.row_major(shape)
                    return GlobalTensor.create(self._dtype(dtype), GlobalLayout(shape, strides) if strides else plain)
                case ast.Subscript(value=ast.Name(id="Shared"), slice=ast.Subscript(value=dtype, slice=extents)):
                    shared_layout = None if place is None else layout_parser.shared_layout_from_ast(place)
                    shape = list(map(syntax.integer, syntax.elements(extents)))
                    return SharedTensor.create(self._dtype(dtype), shape, shared_layout)
                case ast.Subscript(value=dtype, slice=extents):
                    register_layout = None if place is None else layout_parser.register_layout_from_ast(place)
                    shape = list(map(syntax.integer, syntax.elements(extents)))
                    return RegisterTensor.create(self._dtype(dtype), shape, register_layout)
                case _:
                    syntax.fail(
                        node, "expected the type of a tensor: f32[8, 16] or Shared[f32[8]] or Global[f32[m, n]]"
                    )

    def _strides(self, node: ast.expr) -> tuple[Expr, ...]:
        match node:
            case ast.Call(func=ast.Name(id="strides"), args=args, keywords=[]):
                return tuple(map(self.expr, args))
            case _:
                syntax.fail(node, "expected strides(…)")

    def _dtype(self, node: ast.expr) -> DataType:
        dtype = self._scalar_type(node)
        if not isinstance(dtype, DataType):
            syntax.fail(node, f"a tensor of {dtype} does not exist")
        return dtype

    def span(self, node: ast.stmt | ast.expr) -> Span | None:
        if self.spans is not None:
            return self.spans[node.lineno - 1]
        return Span.of(node, self.node.name, self.node.lineno)


class _Static:
    """Reads the plain data of one field."""

    def __init__(self, cls: type[Instruction], field: str) -> None:
        self.cls = cls
        self.field = field

    def read(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as value)]):
                return float(value)
            case ast.List():
                return tuple(map(self.read, node.elts))
            case ast.Attribute(value=ast.Name(id=enum_name), attr=member):
                return self._member(node, enum_name, member)
            case ast.Name() | ast.UnaryOp(op=ast.Invert()):
                with syntax.placed(node):
                    return dtypes.parse_type(ast.unparse(node))
            case ast.Call():
                with syntax.placed(node):
                    return layout_parser.from_ast(node)
            case _:
                syntax.fail(node, f"expected plain data for {self.field}=")

    def _member(self, node: ast.expr, enum_name: str, member: str) -> enum.Enum:
        for type_ in _parts(typing.get_type_hints(self.cls)[self.field]):
            if isinstance(type_, enum.EnumMeta) and type_.__name__ == enum_name:
                found = cast("dict[str, enum.Enum]", dict(type_.__members__)).get(member)
                if found is not None:
                    return found
        syntax.fail(node, f"{self.field}= takes no {enum_name}.{member}")


def _parts(type_: Any) -> Iterator[Any]:
    yield type_
    for argument in typing.get_args(type_):
        yield from _parts(argument)
