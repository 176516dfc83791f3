# SPDX-License-Identifier: Apache-2.0
"""Hidet IR as CUDA C that a person likes to read, with the tile instruction of every line.

Parentheses stand only where C's precedence wants them, names are the user's, and a line that comes from a tile
instruction knows its number. `__restrict__` is never said: a kernel may be called in place, and on overlapping tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tilekit.diag.errors import CodegenError
from tilekit.dtypes import DataType, PointerType
from tilekit.lowir import cxx, names, scalar, statements
from tilekit.lowir.build import NUM_THREADS, READ_ONLY, Mark
from tilekit.lowir.nodes import (
    Add,
    Address,
    AssignStmt,
    BinaryExpr,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    BreakStmt,
    BufferStoreStmt,
    Call,
    Cast,
    Constant,
    ContinueStmt,
    DeclareStmt,
    Dereference,
    Div,
    Equal,
    EvaluateStmt,
    Expr,
    ForStmt,
    Function,
    HTensorType,
    IfStmt,
    IfThenElse,
    IRModule,
    LeftShift,
    LessEqual,
    LessThan,
    LetStmt,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    Mod,
    Multiply,
    Neg,
    NotEqual,
    ReturnStmt,
    RightShift,
    SeqStmt,
    Stmt,
    Sub,
    TensorElement,
    UnaryExpr,
    Var,
    WhileStmt,
)
from tilekit.lowir.statements import Printf
from tilekit.lowir.types import Type

HEADER = "tk/tk.h"
INDENT = "  "


@dataclass(frozen=True)
class Source:
    """The text of a `source.cu`; line k prints `statements[k]`, from the tile instruction with number `lines[k]`."""

    text: str
    lines: tuple[int | None, ...]
    statements: tuple[Stmt | None, ...]


def print_module(module: IRModule) -> Source:
    """The source of a module of one or more kernels."""
    printers = [_FunctionPrinter(function) for function in module.functions.values()]
    lines: list[_Line] = [(f"#include <{HEADER}>", None, None)]
    for printer in printers:
        lines.append(("", None, None))
        lines.extend(printer.print())
    texts, origins, statements = zip(*lines, strict=True)
    return Source("".join(f"{text}\n" for text in texts), origins, statements)


# the text of a line, the number of its tile instruction, and its statement
_Line: TypeAlias = tuple[str, int | None, Stmt | None]


# C's precedence, loosest first
_TERNARY, _OR, _AND, _BIT_OR, _BIT_XOR, _BIT_AND = range(6)
_EQUALITY, _ORDER, _SHIFT, _SUM, _PRODUCT, _UNARY, _POSTFIX = range(6, 13)

_OPERATORS: Mapping[type[BinaryExpr], tuple[str, int]] = {
    LogicalOr: ("||", _OR),
    LogicalAnd: ("&&", _AND),
    BitwiseOr: ("|", _BIT_OR),
    BitwiseXor: ("^", _BIT_XOR),
    BitwiseAnd: ("&", _BIT_AND),
    Equal: ("==", _EQUALITY),
    NotEqual: ("!=", _EQUALITY),
    LessThan: ("<", _ORDER),
    LessEqual: ("<=", _ORDER),
    LeftShift: ("<<", _SHIFT),
    RightShift: (">>", _SHIFT),
    Add: ("+", _SUM),
    Sub: ("-", _SUM),
    Multiply: ("*", _PRODUCT),
    Div: ("/", _PRODUCT),
    Mod: ("%", _PRODUCT),
}

# operators whose order among others compilers know and readers do not: how tightly their operands must bind
_CONFUSING = {_OR: _BIT_OR, _BIT_OR: _UNARY, _BIT_XOR: _UNARY, _BIT_AND: _UNARY, _SHIFT: _UNARY}


class _FunctionPrinter:
    """Prints one kernel."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.name_of = names.Namer(taken=[function.name])
        self.const = _const_pointers(function)
        self.lines: list[_Line] = []
        self.depth = 0
        self.origin: int | None = None
        self.stmt: Stmt | None = None

    def print(self) -> list[_Line]:
        function = self.function
        params = ", ".join(self._declaration(param) for param in function.params)
        self._line(f'extern "C" __global__ void __launch_bounds__({function.attrs[NUM_THREADS]})')
        self._line(f"{function.name}({params})")
        self._line("{")
        self._block(function.body)
        self._line("}")
        self._line(f"TK_KERNEL({function.name})")
        return self.lines

    # -------------------------------------------------------------------------------------------------- statements

    def _line(self, text: str) -> None:
        self.lines.append((INDENT * self.depth + text if text else "", self.origin, self.stmt))

    def _block(self, body: Stmt) -> None:
        """The statements of a body, one level deeper; marks inside do not reach out of it."""
        origin, stmt = self.origin, self.stmt
        self.depth += 1
        with self.name_of.scope():
            self._stmt(body)
        self.depth -= 1
        self.origin, self.stmt = origin, stmt

    def _stmt(self, stmt: Stmt) -> None:
        self.stmt = stmt
        match stmt:
            case SeqStmt():
                for part in stmt.seq:
                    self._stmt(part)
            case Mark():
                self.origin = stmt.origin
                for line in stmt.text.splitlines():
                    self._line(f"// {line}".rstrip())
            case LetStmt():
                for v, value in zip(stmt.bind_vars, stmt.bind_values, strict=True):
                    self._declare(v, value)
                self._stmt(stmt.body)
            case Printf():
                args = "".join(f", {self._expr(arg)}" for arg in stmt.args)
                self._line(f"printf({cxx.string(stmt.text)}{args});")
            case DeclareStmt():
                self._declare(stmt.var, stmt.init)
            case AssignStmt():
                self._assign(self._expr(stmt.var), stmt.var, stmt.value)
            case BufferStoreStmt():
                target = TensorElement(stmt.buf, tuple(stmt.indices))
                self._assign(self._expr(target), target, stmt.value)
            case EvaluateStmt():
                self._line(f"{self._expr(stmt.expr)};")
            case ForStmt():
                self._for(stmt)
            case IfStmt():
                self._if(stmt, "")
            case WhileStmt():
                self._line(f"while ({self._expr(stmt.cond)}) {{")
                self._block(stmt.body)
                self._line("}")
            case BreakStmt():
                self._line("break;")
            case ContinueStmt():
                self._line("continue;")
            case ReturnStmt():
                self._line("return;")
            case _:
                raise CodegenError("TK406", f"the printer does not know the statement {type(stmt).__name__}")

    def _declare(self, v: Var, init: Expr | None) -> None:
        if isinstance(v.type, HTensorType):
            dtype = scalar.dtype_of(v)
            assert isinstance(dtype, PointerType)
            (length,) = v.type.shape
            self._line(f"{cxx.declaration(dtype.base, self.name_of(v))}[{scalar.constant_value(length)}];")  # type: ignore[arg-type]
        elif init is None:
            self._line(f"{self._declaration(v)};")
        else:
            # the machine's variables convert on their own where nothing is computed with them
            value = init.name if isinstance(init, Var) and init.name in names.SPECIAL else self._plain(init)
            self._line(f"{self._declaration(v)} = {value};")

    def _declaration(self, v: Var) -> str:
        return cxx.declaration(scalar.dtype_of(v), self.name_of(v), const=v in self.const)

    def _assign(self, target: str, e: Expr, value: Expr) -> None:
        """`x = value;`, as `x += y;` where the value is `x + y` or `y + x`."""
        if isinstance(value, (Add, Sub, Multiply)) and scalar.structurally_equal(value.a, e):
            symbol, _ = _OPERATORS[type(value)]
            self._line(f"{target} {symbol}= {self._plain(value.b)};")
        elif isinstance(value, (Add, Multiply)) and scalar.structurally_equal(value.b, e):
            symbol, _ = _OPERATORS[type(value)]
            self._line(f"{target} {symbol}= {self._plain(value.a)};")
        else:
            self._line(f"{target} = {self._plain(value)};")

    def _for(self, stmt: ForStmt) -> None:
        if stmt.attr.unroll:
            self._line("#pragma unroll" + (f" {stmt.attr.unroll_factor}" if stmt.attr.unroll_factor else ""))
        end = self._plain(stmt.extent, _SHIFT)
        with self.name_of.scope():
            i = self.name_of(stmt.loop_var)
            self._line(f"for ({self._declaration(stmt.loop_var)} = 0; {i} < {end}; ++{i}) {{")
            self._block(stmt.body)
        self._line("}")

    def _if(self, stmt: IfStmt, prefix: str) -> None:
        self._line(f"{prefix}if ({self._expr(stmt.cond)}) {{")
        self._block(stmt.then_body)
        match stmt.else_body:
            case None:
                self._line("}")
            case SeqStmt(seq=(IfStmt() as other,)) | (IfStmt() as other):
                self.stmt = other
                self._if(other, "} else ")
            case other:
                self._line("} else {")
                self._block(other)
                self._line("}")

    # ------------------------------------------------------------------------------------------------- expressions

    def _expr(self, e: Expr, outer: int = _TERNARY) -> str:
        """The text of `e`, in parentheses if it binds less tightly than `outer`."""
        text, inner = self._form(e)
        return f"({text})" if inner < outer else text

    def _form(self, e: Expr) -> tuple[str, int]:
        """The text of `e` and how tightly it binds."""
        if isinstance(e, (BinaryExpr, UnaryExpr)):
            dtype = scalar.dtype_of(e)
            if _is_narrow(dtype):  # C computes it as int
                return f"({cxx.type_name(dtype)})({self._operation(e)[0]})", _UNARY
        match e:
            case Var():
                name = self.name_of(e)
                return (f"(int){name}", _UNARY) if name in names.SPECIAL else (name, _POSTFIX)
            case Constant():
                return self._constant(e)
            case Call():
                args = ", ".join(self._expr(arg) for arg in e.args)
                return f"{e.func_var.name}({args})", _POSTFIX
            case TensorElement():
                return f"{self._expr(e.base, _POSTFIX)}[{self._plain(e.indices[0])}]", _POSTFIX
            case Address():
                return self._address(e)
            case Dereference():
                return f"*{self._expr(e.expr, _UNARY)}", _UNARY
            case Cast():
                const = _root(e.expr) in self.const
                return f"({cxx.type_name(scalar.dtype_of(e), const=const)}){self._expr(e.expr, _UNARY)}", _UNARY
            case IfThenElse():
                print_branch = self._expr if _is_narrow(scalar.dtype_of(e)) else self._plain
                branches = [self._expr(e.then_expr, _OR), self._expr(e.else_expr)]
                if not isinstance(e.else_expr, Constant):
                    branches[0] = print_branch(e.then_expr, _OR)
                elif not isinstance(e.then_expr, Constant):
                    branches[1] = print_branch(e.else_expr)
                return f"{self._expr(e.cond, _OR)} ? {branches[0]} : {branches[1]}", _TERNARY
            case _:
                return self._operation(e)

    def _operation(self, e: Expr) -> tuple[str, int]:
        """The text of an operator with its operands."""
        match e:
            case Neg():
                inner = self._expr(e.a, _UNARY)
                return (f"-({inner})" if inner.startswith("-") else f"-{inner}"), _UNARY
            case LogicalNot():
                return f"!{self._expr(e.a, _UNARY)}", _UNARY
            case BitwiseNot():
                return f"~{self._expr(e.a, _UNARY)}", _UNARY
            case BinaryExpr():
                symbol, level = _OPERATORS[type(e)]
                tight = _CONFUSING.get(level, level)
                outer = level if type(e.a) is type(e) else tight
                # the left side alone decides the type of a shift
                left = self._expr(e.a, outer) if level == _SHIFT else self._operand(e.a, e.b, outer)
                right = self._operand(e.b, e.a, max(tight, level + 1))
                return f"{left} {symbol} {f'({right})' if right.startswith('-') else right}", level
            case _:
                raise CodegenError("TK406", f"the printer does not know the expression {type(e).__name__}")

    def _operand(self, e: Expr, other: Expr, outer: int) -> str:
        """An operand whose sibling is `other`: an integer needs no type of its own where the sibling decides it."""
        return self._expr(e, outer) if isinstance(other, Constant) else self._plain(e, outer)

    def _plain(self, e: Expr, outer: int = _TERNARY) -> str:
        """The text of `e` where its place says the type, so that integers are written as people write them."""
        bare = cxx.bare_integer(e.value) if isinstance(e, Constant) and scalar.is_integer(scalar.dtype_of(e)) else None
        if bare is None:
            return self._expr(e, outer)
        return f"({bare})" if bare.startswith("-") and outer > _UNARY else bare

    def _constant(self, e: Constant) -> tuple[str, int]:
        dtype = scalar.dtype_of(e)
        assert isinstance(dtype, DataType)
        text = cxx.literal(dtype, e.value)
        return text, _UNARY if text.startswith("-") else _POSTFIX

    def _address(self, e: Address) -> tuple[str, int]:
        """`&p[i]`; the first register of an array is its name."""
        match e.expr:
            case TensorElement(base=Var() as base, indices=(Constant(value=0),)):
                return self.name_of(base), _POSTFIX
            case _:
                return f"&{self._expr(e.expr, _UNARY)}", _UNARY


# ----------------------------------------------------------------------------------------------------- const pointers


def _const_pointers(function: Function) -> frozenset[Var]:
    """The pointers through which nothing is written: the read-only parameters, and all that is computed from them."""
    found: set[Var] = {*function.attrs.get(READ_ONLY, ())}
    values = [(v, _root(value)) for v, value in statements.definitions(function.body)]
    size = -1
    while size != len(found):
        size = len(found)
        found.update(v for v, root in values if root in found)
    return frozenset(found)


def _is_narrow(type_: Type) -> bool:
    """Whether C computes with integers of this type as with int."""
    return scalar.is_integer(type_) and type_.nbits < 32


def _root(e: Expr) -> Var | None:
    """The variable whose memory a pointer points into; None for what is no pointer."""
    if not isinstance(scalar.dtype_of(e), PointerType):
        return None
    match e:
        case Var():
            return e
        case Add() | Sub():
            return _root(e.a)
        case Cast():
            return _root(e.expr)
        case IfThenElse():
            return _root(e.then_expr)
        case Address(expr=TensorElement() as element):
            return _root(element.base)
        case _:
            return None
