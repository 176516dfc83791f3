# SPDX-License-Identifier: Apache-2.0
"""The scalar language: what an expression of numbers, truth values and pointers can say, and exactly what it means.

The nodes are hidet's, but only the constructors below build them: hidet's own operators fold with Python's meaning and
print with C's, promote without asking and ignore overflow. Each meaning is written here once; the evaluator
(`scalar_eval`), the emitted CUDA (`build`, `tk/`) and the host text (`scalar_eval.to_host`) hold to it.

==================  =================  ================================================================================
constructor         node               meaning
==================  =================  ================================================================================
add sub mul neg     Add Sub Multiply   integers wrap at their width; floats round to the dtype, to nearest even.
                    Neg                A pointer plus or minus an integer moves by that many elements
div                 Div on floats      IEEE division
floordiv mod        Div, Mod on ints   Python's: the quotient is rounded down, the remainder has the divisor's sign;
                                       division by zero gives 0
c_div c_mod         call of that name  C's: rounded toward zero; only for dividends proven to be not negative and
                                       divisors proven to be positive
bitwise_and/or/xor  BitwiseAnd/Or/Xor  on integers
bitwise_not         BitwiseNot
shl shr             LeftShift          shr keeps the sign of signed numbers; amounts outside 0 … width-1 have no meaning
                    RightShift         (the evaluator gives what shifting one by one would give)
lt le eq ne         LessThan LessEqual IEEE on floats: comparisons with nan are false, `ne` is true
                    Equal NotEqual
logical_and/or/not  LogicalAnd/Or/Not  on truth values; the right side is evaluated only if the left does not decide
where               IfThenElse         the same for its branches
cast                Cast               `dtypes.convert`: integers wrap; a float loses its fraction, saturates, and nan
                                       becomes 0; to float rounds to nearest even; to bool is `!= 0`
minimum maximum     call of that name  a nan on either side is the result; -0 is less than +0
call                call of that name  `FUNCTIONS`; round is to nearest even, abs of the lowest integer wraps
==================  =================  ================================================================================

That integers wrap holds of tiles on every machine: what may leave its range is emitted as a call of `tk::add`. Of other
signed scalars, counters and indices, compilers for GPUs may assume that they do not overflow, and no emitter relies on
it.

Operands have equal types: nothing is promoted here (`promote` does it for the front end, by explicit casts). Constants
fold, exactly as above; beyond that only `x+0 x*1 x*0 x//1 x%1` on integers and decided conditions are simplified.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeGuard

from tilekit import dtypes
from tilekit.diag import suggest
from tilekit.diag.errors import LanguageError
from tilekit.dtypes import DataType, Kind, Literal, Number, PointerType
from tilekit.lowir import _load, functions, promotion, types
from tilekit.lowir.functions import FUNCTIONS, Domain
from tilekit.lowir.nodes import (
    Add,
    Address,
    BinaryExpr,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Call,
    Cast,
    Constant,
    Dereference,
    Div,
    Equal,
    Expr,
    HTensorType,
    IfThenElse,
    LeftShift,
    LessEqual,
    LessThan,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    Mod,
    Multiply,
    Neg,
    NotEqual,
    RightShift,
    Sub,
    TensorElement,
    UnaryExpr,
    Var,
)
from tilekit.lowir.types import Type

_vars: Any = _load.load("ir.primitives.cuda.vars")

# what follows the library's namespace in generated code is the function's name here
NAMESPACE = "tk::"


# ---------------------------------------------------------------------------------------------- leaves and questions


def var(name: str, type_: Type) -> Var:
    """A fresh variable; variables are told apart by identity, and `name` is the one that it should have in text."""
    return Var(name, types.to_hidet(type_))


def constant(dtype: DataType, value: Number) -> Constant:
    """The number `value` of this dtype, rounded to it; an integer that does not fit is an error."""
    return _constant(dtype, dtype.constant(value).value)


@functools.lru_cache(maxsize=1024)
def int32(value: int) -> Constant:
    """The int32 of a Python integer, as indices are computed with."""
    return constant(dtypes.int32, value)


def as_expr(value: object, dtype: DataType | None = None) -> Expr:
    """An expression for a Python number: of `dtype`, or bool, int32 (int64 if it must be) or float32 by its kind."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, Literal):
        return _constant(value.dtype, value.rounded)
    number: Any = getattr(value, "item", lambda: value)()  # what a NumPy scalar holds
    if not isinstance(number, (bool, int, float)):
        raise LanguageError("TK211", f"a value of type {type(value).__name__} is no number")
    return constant(dtype or _dtype_of_number(number), number)


def block_idx(axis: int) -> Var:
    """The block's coordinate in the grid."""
    return _vars.blockIdx[axis]


def grid_dim(axis: int) -> Var:
    """The number of blocks of the grid along an axis."""
    return _vars.gridDim[axis]


def thread_idx() -> Var:
    """The thread's number in its block."""
    return _vars.threadIdx[0]


_SPECIAL_NAMES = {
    **{f"blockIdx.{axis}": f"block_idx_{axis}" for axis in "xyz"},
    **{f"gridDim.{axis}": f"grid_dim_{axis}" for axis in "xyz"},
    "threadIdx.x": "thread_idx",
}


def name_hint(v: Var) -> str:
    """The name that a variable should have in text."""
    if v.name is not None:
        return _SPECIAL_NAMES.get(v.name, v.name)
    return v.hint or "v"


def dtype_of(e: Expr) -> Type:
    """The type of an expression; of a register array, the pointer type that it decays to."""
    match e:
        case Var() | Constant():
            if isinstance(e.type, HTensorType):
                return PointerType(dtypes.parse(e.type.dtype.name))
            return types.from_hidet(e.type)
        case LessThan() | LessEqual() | Equal() | NotEqual() | LogicalAnd() | LogicalOr() | LogicalNot():
            return dtypes.boolean
        case Cast():
            return types.from_hidet(e.target_type)
        case BinaryExpr() | UnaryExpr():
            return dtype_of(e.a)
        case IfThenElse():
            return dtype_of(e.then_expr)
        case Call():
            return types.from_hidet(e.func_var.type.ret_type)  # type: ignore[attr-defined]  # a function's type
        case TensorElement():
            return _pointee(e.base)
        case Dereference():
            return _pointee(e.expr)
        case Address():
            return PointerType(_scalar_type(e.expr))
        case _:
            raise LanguageError("TK216", f"{type(e).__name__} is not part of the scalar language")


def is_integer(type_: Type) -> TypeGuard[DataType]:
    """Whether a type is a scalar integer, of either sign; truth values are none."""
    return isinstance(type_, DataType) and type_.is_integer()


def is_constant(e: Expr) -> bool:
    return isinstance(e, Constant)


def constant_value(e: Expr) -> Any:
    """The number that a constant is; None for any other expression."""
    return e.value if isinstance(e, Constant) else None


def function_name(e: Call) -> str:
    """The name in `FUNCTIONS` of a called function."""
    return (e.func_var.name or "").removeprefix(NAMESPACE)


# ------------------------------------------------------------------------------------------------------- arithmetic


def add(a: Expr, b: Expr) -> Expr:
    if isinstance(dtype_of(a), PointerType):
        return _move(Add, a, b)
    dtype = _numeric("+", a, b)
    if dtype.is_integer() and (_is(a, 0) or _is(b, 0)):
        return b if _is(a, 0) else a
    return _fold(Add, dtype, lambda x, y: x + y, a, b)


def sub(a: Expr, b: Expr) -> Expr:
    if isinstance(dtype_of(a), PointerType):
        return _move(Sub, a, b)
    dtype = _numeric("-", a, b)
    if dtype.is_integer() and _is(b, 0):
        return a
    return _fold(Sub, dtype, lambda x, y: x - y, a, b)


def mul(a: Expr, b: Expr) -> Expr:
    dtype = _numeric("*", a, b)
    if dtype.is_integer():
        for one, other in ((a, b), (b, a)):
            if _is(one, 1):
                return other
            if _is(one, 0):
                return one
    return _fold(Multiply, dtype, lambda x, y: x * y, a, b)


def div(a: Expr, b: Expr) -> Expr:
    """True division of floats."""
    dtype = _same("/", a, b)
    if not dtype.is_float():
        raise LanguageError("TK211", f"/ divides floats, not {dtype}", help="use // for integers")
    return _fold(Div, dtype, functions.ieee_div, a, b)


def floordiv(a: Expr, b: Expr) -> Expr:
    """Integer division rounded down, Python's `//`."""
    dtype = _integers("//", a, b)
    if _is(b, 1):
        return a
    if _is(b, 0):
        return Div(a, b)
    return _fold(Div, dtype, lambda x, y: x // y, a, b)


def mod(a: Expr, b: Expr) -> Expr:
    """The remainder that has the divisor's sign, Python's `%`."""
    dtype = _integers("%", a, b)
    if _is(b, 1):
        return _constant(dtype, 0)
    if _is(b, 0):
        return Mod(a, b)
    return _fold(Mod, dtype, lambda x, y: x % y, a, b)


def c_div(a: Expr, b: Expr) -> Expr:
    """A quotient of operands proven to be not negative: C's division will do."""
    return a if _is(b, 1) else call("c_div", [a, b])


def c_mod(a: Expr, b: Expr) -> Expr:
    """A remainder of operands proven to be not negative: C's will do."""
    return _constant(_integers("%", a, b), 0) if _is(b, 1) else call("c_mod", [a, b])


def neg(a: Expr) -> Expr:
    dtype = _numeric("-", a)
    return _constant(dtype, -a.value) if isinstance(a, Constant) else Neg(a)


def bitwise_and(a: Expr, b: Expr) -> Expr:
    return _fold(BitwiseAnd, _integers("&", a, b), lambda x, y: x & y, a, b)


def bitwise_or(a: Expr, b: Expr) -> Expr:
    return _fold(BitwiseOr, _integers("|", a, b), lambda x, y: x | y, a, b)


def bitwise_xor(a: Expr, b: Expr) -> Expr:
    return _fold(BitwiseXor, _integers("^", a, b), lambda x, y: x ^ y, a, b)


def bitwise_not(a: Expr) -> Expr:
    dtype = _integers("~", a)
    return _constant(dtype, ~a.value) if isinstance(a, Constant) else BitwiseNot(a)


def shl(a: Expr, b: Expr) -> Expr:
    dtype = _shift("<<", a, b)
    return _fold(LeftShift, dtype, lambda x, y: x << y, a, b)


def shr(a: Expr, b: Expr) -> Expr:
    """Shift to the right; signed numbers keep their sign."""
    dtype = _shift(">>", a, b)
    return _fold(RightShift, dtype, lambda x, y: x >> y, a, b)


def minimum(a: Expr, b: Expr) -> Expr:
    return call("minimum", [a, b])


def maximum(a: Expr, b: Expr) -> Expr:
    return call("maximum", [a, b])


def call(name: str, args: Sequence[Expr]) -> Expr:
    """A function of `FUNCTIONS` applied to arguments of one dtype."""
    function = FUNCTIONS.get(name)
    if function is None:
        near = suggest(name, FUNCTIONS)
        raise LanguageError(
            "TK216", f"there is no scalar function {name!r}", help=f"did you mean {near}?" if near else None
        )
    if len(args) != function.arity:
        raise LanguageError("TK216", f"{name} takes {function.arity} arguments, not {len(args)}")
    dtype = _numeric(name, *args)
    if function.domain is Domain.FLOAT and not dtype.is_float():
        raise LanguageError("TK211", f"{name} takes a float, not {dtype}", help=f"cast it first: {name}(float32(x))")
    if function.domain is Domain.INT and not dtype.is_integer():
        raise LanguageError("TK211", f"{name} takes integers, not {dtype}")
    values = [arg.value for arg in args if isinstance(arg, Constant)]
    by_zero = function.domain is Domain.INT and _is(args[1], 0)
    if function.exact and len(values) == len(args) and not by_zero:
        return _constant(dtypes.boolean if function.tests else dtype, functions.fold(function, dtype, values))
    return Call(_function_var(name, dtype), tuple(args))


# ------------------------------------------------------------------------------------- comparisons, logic, conversion


def lt(a: Expr, b: Expr) -> Expr:
    _same("<", a, b)
    return _fold(LessThan, dtypes.boolean, lambda x, y: x < y, a, b)


def le(a: Expr, b: Expr) -> Expr:
    _same("<=", a, b)
    return _fold(LessEqual, dtypes.boolean, lambda x, y: x <= y, a, b)


def gt(a: Expr, b: Expr) -> Expr:
    return lt(b, a)


def ge(a: Expr, b: Expr) -> Expr:
    return le(b, a)


def eq(a: Expr, b: Expr) -> Expr:
    _comparable("==", a, b)
    return _fold(Equal, dtypes.boolean, lambda x, y: x == y, a, b)


def ne(a: Expr, b: Expr) -> Expr:
    _comparable("!=", a, b)
    return _fold(NotEqual, dtypes.boolean, lambda x, y: x != y, a, b)


def logical_and(a: Expr, b: Expr) -> Expr:
    _truths("and", a, b)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Constant):
            return other if one.value else one
    return LogicalAnd(a, b)


def logical_or(a: Expr, b: Expr) -> Expr:
    _truths("or", a, b)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Constant):
            return one if one.value else other
    return LogicalOr(a, b)


def logical_not(a: Expr) -> Expr:
    _truths("not", a)
    if isinstance(a, Constant):
        return _constant(dtypes.boolean, not a.value)
    return a.a if isinstance(a, LogicalNot) else LogicalNot(a)


def where(condition: Expr, a: Expr, b: Expr) -> Expr:
    """`a` where the condition holds, else `b`."""
    _truths("where", condition)
    if dtype_of(a) != dtype_of(b):
        raise _mismatch("where", a, b)
    if isinstance(condition, Constant):
        return a if condition.value else b
    return a if a is b else IfThenElse(condition, a, b)


def cast(e: Expr, type_: Type) -> Expr:
    """The value as another type, as `dtypes.convert` says; a pointer only as a pointer or a 64-bit integer."""
    source = dtype_of(e)
    if source == type_:
        return e
    if isinstance(source, PointerType) or isinstance(type_, PointerType):
        others = [t for t in (source, type_) if isinstance(t, DataType)]
        if any(t not in (dtypes.int64, dtypes.uint64) for t in others):
            raise LanguageError("TK211", f"{source} cannot be cast to {type_}", help="go through int64 or uint64")
        return Cast(e, types.to_hidet(type_))
    if source.is_vector() or type_.is_vector():
        raise LanguageError("TK211", f"{source} cannot be cast to {type_}: a vector is not a scalar")
    if isinstance(e, Constant):
        return _constant(type_, e.value)
    return Cast(e, types.to_hidet(type_))


# ---------------------------------------------------------------------------------------------- trees of expressions


def children(e: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression, left to right."""
    match e:
        case Var() | Constant():
            return ()
        case BinaryExpr():
            return (e.a, e.b)
        case UnaryExpr():
            return (e.a,)
        case Cast() | Address() | Dereference():
            return (e.expr,)
        case IfThenElse():
            return (e.cond, e.then_expr, e.else_expr)
        case Call():
            return e.args
        case TensorElement():
            return (e.base, *e.indices)
        case _:
            raise LanguageError("TK216", f"{type(e).__name__} is not part of the scalar language")


def rebuild(e: Expr, parts: Sequence[Expr]) -> Expr:
    """`e` with other operands, built by the constructors; `e` itself where they are the ones that it has."""
    if all(new is old for new, old in zip(parts, children(e), strict=True)):
        return e
    match e:
        case Div():
            return floordiv(*parts) if is_integer(dtype_of(e)) else div(*parts)
        case Cast():
            return cast(parts[0], dtype_of(e))
        case Call():
            return call(function_name(e), parts) if function_name(e) in FUNCTIONS else Call(e.func_var, tuple(parts))
        case TensorElement():
            return TensorElement(parts[0], tuple(parts[1:]))
        case Address():
            return Address(parts[0])
        case Dereference():
            return Dereference(parts[0])
        case _:
            return _CONSTRUCTORS[type(e)](*parts)


def rewrite(e: Expr, replacements: Mapping[Var, Expr]) -> Expr:
    """`e` with variables replaced; `e` itself where none of them occurs."""
    if isinstance(e, Var):
        return replacements.get(e, e)
    return rebuild(e, [rewrite(part, replacements) for part in children(e)])


def walk(e: Expr) -> Iterator[Expr]:
    """The expression and all its parts, each before its operands."""
    yield e
    for part in children(e):
        yield from walk(part)


def free_vars(e: Expr) -> tuple[Var, ...]:
    """The variables of an expression, each once, in the order in which they are read."""
    return tuple(dict.fromkeys(part for part in walk(e) if isinstance(part, Var)))


def structurally_equal(a: Expr, b: Expr, var_map: Mapping[Var, Var] | None = None) -> bool:
    """Whether two expressions say the same; `var_map` gives the variables of `b` that stand for those of `a`."""
    if isinstance(a, Var):
        return (var_map or {}).get(a, a) is b
    if type(a) is not type(b):
        return False
    match a, b:
        case Constant(), Constant():
            return dtype_of(a) == dtype_of(b) and functions.same_number(a.value, b.value)
        case Cast(), Cast() if dtype_of(a) != dtype_of(b):
            return False
        case Call(), Call() if a.func_var.name != b.func_var.name:
            return False
        case _:
            ours, theirs = children(a), children(b)
            return len(ours) == len(theirs) and all(map(lambda x, y: structurally_equal(x, y, var_map), ours, theirs))


# ------------------------------------------------------------------------------------------------------- conversion


def promote(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Both operands of an arithmetic operator in the dtype that they have in common, by explicit casts."""
    left, right = dtype_of(a), dtype_of(b)
    if isinstance(left, PointerType) or isinstance(right, PointerType):
        return a, b
    common = promotion.common(left, right)
    return cast(a, common), cast(b, common)


def normalize(e: Expr) -> Expr:
    """The expression of the scalar language that one built by hidet's operators means.

    Host code such as `cdiv(n, 16)` runs hidet's operators on kernel parameters. There `//` and `/` on integers are the
    same node, which is read as `//`, and a number beside an expression takes the expression's dtype if it fits.
    """
    match e:
        case Var():
            return e
        case Constant():
            return _constant(types.from_hidet(e.type), e.value)  # hidet folds without wrapping
        case _:
            parts = [normalize(part) for part in children(e)]
    match e:
        case LogicalAnd() | LogicalOr() | LogicalNot():
            return _CONSTRUCTORS[type(e)](*map(_as_truth, parts))
        case LeftShift() | RightShift():
            return _CONSTRUCTORS[type(e)](parts[0], cast(parts[1], dtype_of(parts[0])))
        case BinaryExpr():
            return _normalize_binary(e, *parts)
        case UnaryExpr():
            return _CONSTRUCTORS[type(e)](*parts)
        case IfThenElse():
            return where(_as_truth(parts[0]), *_promote_weakly(parts[1], parts[2]))
        case Cast():
            return cast(parts[0], dtype_of(e))
        case Call():
            return _normalize_call(e, parts)
        case _:
            raise LanguageError("TK216", f"{type(e).__name__} is not part of the scalar language")


def _normalize_binary(e: BinaryExpr, a: Expr, b: Expr) -> Expr:
    a, b = _promote_weakly(a, b)
    if isinstance(e, Div):
        return floordiv(a, b) if is_integer(dtype_of(a)) else div(a, b)
    return _CONSTRUCTORS[type(e)](a, b)


# hidet's generic functions that are called otherwise here
_HIDET_FUNCTIONS = {"min": "minimum", "max": "maximum"}


def _normalize_call(e: Call, args: Sequence[Expr]) -> Expr:
    name = function_name(e).removeprefix("generic_")
    name = _HIDET_FUNCTIONS.get(name, name)
    return call(name, _promote_weakly(*args) if len(args) == 2 else args)


def _promote_weakly(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """`promote`, where an integer constant takes the other side's integer dtype if it fits."""
    if isinstance(a, Constant) != isinstance(b, Constant):
        a, b = _adopt(a, b), _adopt(b, a)
    return promote(a, b)


def _adopt(e: Expr, other: Expr) -> Expr:
    """`e`, in the dtype of `other` if it is an integer constant and that is an integer dtype that holds it."""
    dtype = dtype_of(other)
    if not isinstance(e, Constant) or not is_integer(dtype_of(e)) or not is_integer(dtype):
        return e
    return _constant(dtype, e.value) if dtype.min_value <= e.value <= dtype.max_value else e


def _as_truth(e: Expr) -> Expr:
    return cast(e, dtypes.boolean)


# ------------------------------------------------------------------------------------------------- checks and folding


def _scalar_type(e: Expr) -> DataType:
    type_ = dtype_of(e)
    if isinstance(type_, PointerType) or type_.is_vector():
        raise LanguageError("TK211", f"a scalar is wanted here, not {type_}")
    return type_


def _pointee(e: Expr) -> Type:
    type_ = dtype_of(e)
    if not isinstance(type_, PointerType) or type_.is_raw():
        raise LanguageError("TK211", f"{type_} does not point to anything that can be read")
    return type_.base  # type: ignore[return-value]  # not void: checked above


def _mismatch(what: str, a: Expr, b: Expr) -> LanguageError:
    return LanguageError("TK210", f"{what} needs operands of one type, not {dtype_of(a)} and {dtype_of(b)}")


def _same(what: str, *operands: Expr) -> DataType:
    """The one scalar dtype of the operands."""
    dtype = _scalar_type(operands[0])
    for other in operands[1:]:
        if dtype_of(other) != dtype:
            raise _mismatch(what, operands[0], other)
    return dtype


def _numeric(what: str, *operands: Expr) -> DataType:
    dtype = _same(what, *operands)
    if dtype.kind is Kind.BOOL:
        raise LanguageError("TK211", f"{what} works on numbers, not on truth values", help="cast them to an integer")
    return dtype


def _integers(what: str, *operands: Expr) -> DataType:
    dtype = _same(what, *operands)
    if not dtype.is_integer():
        raise LanguageError("TK211", f"{what} works on integers, not on {dtype}")
    return dtype


def _shift(what: str, a: Expr, b: Expr) -> DataType:
    dtype = _integers(what, a, b)
    if isinstance(b, Constant) and not 0 <= b.value < dtype.nbits:
        raise LanguageError("TK211", f"{what} {b.value} shifts {dtype} by more than its {dtype.nbits} bits")
    return dtype


def _truths(what: str, *operands: Expr) -> None:
    dtype = _same(what, *operands)
    if not dtype.is_boolean():
        raise LanguageError("TK211", f"{what} works on truth values, not on {dtype}", help="compare it with something")


def _comparable(what: str, a: Expr, b: Expr) -> None:
    if dtype_of(a) != dtype_of(b):
        raise _mismatch(what, a, b)


def _move(node: type[BinaryExpr], pointer: Expr, offset: Expr) -> Expr:
    """A pointer some elements further."""
    dtype = dtype_of(offset)
    if not isinstance(dtype, DataType) or not dtype.is_integer():
        raise LanguageError("TK211", f"a pointer moves by a number of elements, not by {dtype}")
    _pointee(pointer)
    return pointer if _is(offset, 0) else node(pointer, offset)


def _is(e: Expr, number: int) -> bool:
    return isinstance(e, Constant) and e.value == number


def _fold(node: type[BinaryExpr], dtype: DataType, python: Callable[[Any, Any], Number], a: Expr, b: Expr) -> Expr:
    """`node(a, b)`, or the constant that it is."""
    if isinstance(a, Constant) and isinstance(b, Constant):
        return _constant(dtype, python(a.value, b.value))
    return node(a, b)


def _constant(dtype: Type, value: Number) -> Constant:
    """The constant that holds `value`, wrapped or rounded; never hidet's pooled ones, which lose the sign of zero."""
    assert isinstance(dtype, DataType), f"no constant of type {dtype}"
    return Constant(dtypes.convert(value, dtype), types.to_hidet(dtype))


def _dtype_of_number(number: Number) -> DataType:
    if isinstance(number, bool):
        return dtypes.boolean
    if isinstance(number, float):
        return dtypes.float32
    return dtypes.int32 if dtypes.int32.min_value <= number <= dtypes.int32.max_value else dtypes.int64


_CONSTRUCTORS: Mapping[type[Expr], Callable[..., Expr]] = {
    Add: add,
    Sub: sub,
    Multiply: mul,
    Mod: mod,
    Neg: neg,
    BitwiseAnd: bitwise_and,
    BitwiseOr: bitwise_or,
    BitwiseXor: bitwise_xor,
    BitwiseNot: bitwise_not,
    LeftShift: shl,
    RightShift: shr,
    LessThan: lt,
    LessEqual: le,
    Equal: eq,
    NotEqual: ne,
    LogicalAnd: logical_and,
    LogicalOr: logical_or,
    LogicalNot: logical_not,
    IfThenElse: where,
}


@cache
def _function_var(name: str, dtype: DataType) -> Var:
    """The one variable that stands for a function at a dtype in calls."""
    function = FUNCTIONS[name]
    result = dtypes.boolean if function.tests else dtype
    return Var(None, types.function((dtype,) * function.arity, result), NAMESPACE + name)
