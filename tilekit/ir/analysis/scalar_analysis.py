# SPDX-License-Identifier: Apache-2.0
"""What is known of an integer expression: a number that divides it, and inclusive bounds.

Both survive wrap-around, because integers of the scalar language wrap at their width: where a result may leave its
dtype's range, its bounds are those of the dtype, and of its divisor only the power of two is kept. A divisor of 0
says that the value is 0, which every number divides (`math.gcd` takes it that way too).

Variables that are assigned more than once get one fact for all of their values, found by a fixpoint over the function.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeGuard

from tilekit.dtypes import DataType, PointerType
from tilekit.ir import stmt as stmts
from tilekit.ir.func import Analysis, Function, Metadata
from tilekit.ir.functors import IRVisitor
from tilekit.ir.inst import Instruction
from tilekit.ir.instructions.workspace import AllocateGlobalInst
from tilekit.ir.tensor import GlobalTensor, RegisterTensor, Tensor
from tilekit.lowir import scalar
from tilekit.lowir.nodes import (
    Add,
    BitwiseAnd,
    BitwiseNot,
    BitwiseOr,
    BitwiseXor,
    Call,
    Cast,
    Constant,
    Div,
    Equal,
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
)
from tilekit.lowir.scalar import Expr, Var
from tilekit.target import MAX_GRID

# the boundary in bytes that every workspace begins at
WORKSPACE_ALIGNMENT = 128

# rounds of the fixpoint before a bound that still moves is given up
PATIENCE = 4


@dataclass(frozen=True, slots=True)
class Fact:
    """Every value is a multiple of `divisor` and lies in [low, high]; truth values count as 0 and 1."""

    divisor: int
    low: int
    high: int

    @staticmethod
    def of(divisor: int, low: int, high: int) -> Fact:
        """The fact in its sharpest form: bounds are multiples of the divisor, and one value divides itself."""
        if divisor > 1:
            low, high = -(-low // divisor) * divisor, high // divisor * divisor
        if low >= high:  # crossed bounds mean that no value is possible; any statement about it is true
            return Fact(abs(low), low, low)
        return Fact(max(divisor, 1), low, high)

    @staticmethod
    def exactly(value: int) -> Fact:
        return Fact(abs(value), value, value)

    @property
    def value(self) -> int | None:
        """The one value that is possible, if there is only one."""
        return self.low if self.low == self.high else None

    def join(self, other: Fact) -> Fact:
        """What holds of values of either."""
        return Fact.of(math.gcd(self.divisor, other.divisor), min(self.low, other.low), max(self.high, other.high))


BOOLEAN = Fact(1, 0, 1)
FALSE, TRUE = Fact.exactly(0), Fact.exactly(1)


def limits(dtype: DataType) -> tuple[int, int]:
    """The smallest and the largest value of an integer or boolean dtype."""
    return int(dtype.min_value), int(dtype.max_value)


def anything(dtype: DataType) -> Fact:
    """What holds of every value of an integer or boolean dtype."""
    return Fact(1, *limits(dtype))


def wrapped(fact: Fact, dtype: DataType) -> Fact:
    """What holds after a result, computed without limit, has wrapped at the width of its dtype."""
    low, high = limits(dtype)
    if low <= fact.low and fact.high <= high:
        return fact
    return Fact.of(math.gcd(fact.divisor, 1 << dtype.nbits), low, high)


class Facts:
    """Answers about expressions, from what is known of their variables."""

    def __init__(self, variables: Mapping[Var, Fact] | None = None, *, wraps: bool = True) -> None:
        self.variables = dict(variables or {})
        self._wrapped = wrapped if wraps else _unlimited
        # the expression stays beside its fact, so that its id is not given to another one meanwhile
        self._known: dict[int, tuple[Expr, Fact | None]] = {}

    @staticmethod
    def from_analysis(analysis: Analysis | None) -> Facts:
        if analysis is None:
            return Facts()
        variables = {*analysis.divisibility, *analysis.lower_bound, *analysis.upper_bound}
        facts = {v: _stored(v, analysis.divisibility.get(v, 1), analysis) for v in variables}
        return Facts({v: fact for v, fact in facts.items() if fact is not None})

    def over(self, axes: Sequence[Var], shape: Sequence[int]) -> Facts:
        """The same facts where each axis runs over its extent."""
        return Facts({**self.variables, **{a: Fact.of(1, 0, e - 1) for a, e in zip(axes, shape, strict=True)}})

    def of(self, expr: Expr) -> Fact:
        """What is known of an integer or boolean expression."""
        fact = self.maybe(expr)
        assert fact is not None, f"a {scalar.dtype_of(expr)} is neither an integer nor a truth value"
        return fact

    def maybe(self, expr: Expr) -> Fact | None:
        """The same; None for floats and pointers."""
        remembered = self._known.get(id(expr))
        if remembered is not None:
            return remembered[1]
        dtype = scalar.dtype_of(expr)
        fact = self._compute(expr, dtype) if _is_discrete(dtype) else None
        self._known[id(expr)] = (expr, fact)
        return fact

    def alignment(self, pointer: Expr) -> int:
        """A number of bytes that divides the address."""
        match pointer:
            case Var() if pointer in self.variables:
                return self.variables[pointer].divisor
            case Add() | Sub():
                return math.gcd(self.alignment(pointer.a), self.of(pointer.b).divisor * _element_bytes(pointer))
            case Cast() if isinstance(scalar.dtype_of(pointer.expr), PointerType):
                return math.lcm(self.alignment(pointer.expr), _element_bytes(pointer))
            case _:
                return _element_bytes(pointer)

    def _compute(self, expr: Expr, dtype: DataType) -> Fact:
        match expr:
            case Constant():
                return Fact.exactly(int(expr.value))
            case Var():
                return self.variables.get(expr, anything(dtype))
            case Cast():
                return self._cast(self.maybe(expr.expr), dtype)
            case LogicalAnd() | LogicalOr() | LogicalNot():
                return self._logical(expr)
            case LessThan() | LessEqual() | Equal() | NotEqual():
                a, b = self.maybe(expr.a), self.maybe(expr.b)
                return BOOLEAN if a is None or b is None else _compare(type(expr), a, b)
            case IfThenElse():
                condition, then, other = map(self.of, scalar.children(expr))
                return then.join(other) if condition.value is None else then if condition.value else other
            case _:
                fact = self._before_wrapping(expr)
                return anything(dtype) if fact is None else self._wrapped(fact, dtype)

    def _before_wrapping(self, expr: Expr) -> Fact | None:
        """What holds of the result of an operation on integers, computed without limit; None if nothing is known."""
        operands = [self.maybe(part) for part in scalar.children(expr)]
        known = [operand for operand in operands if operand is not None]
        rule = _CALLS.get(scalar.function_name(expr)) if isinstance(expr, Call) else _RULES.get(type(expr))
        return rule(*known) if rule is not None and len(known) == len(operands) else None

    def may_wrap(self, expr: Expr) -> bool:
        """Whether the result of an integer operation may have left its dtype's range, for all that is known."""
        dtype = scalar.dtype_of(expr)
        fact = self.maybe(expr.expr) if isinstance(expr, Cast) else self._before_wrapping(expr)
        return fact is None or not isinstance(dtype, DataType) or wrapped(fact, dtype) != fact

    def _cast(self, operand: Fact | None, dtype: DataType) -> Fact:
        if operand is None:  # a float or a pointer
            return anything(dtype)
        if dtype.is_boolean():
            return _compare(NotEqual, operand, Fact.exactly(0))
        return self._wrapped(operand, dtype)

    def _logical(self, expr: LogicalAnd | LogicalOr | LogicalNot) -> Fact:
        values = [self.of(part).value for part in scalar.children(expr)]
        match expr:
            case LogicalNot():
                return BOOLEAN if values[0] is None else Fact.exactly(1 - values[0])
            case LogicalAnd():
                return FALSE if 0 in values else BOOLEAN if None in values else TRUE
            case LogicalOr():
                return TRUE if 1 in values else BOOLEAN if None in values else FALSE


def bounds(expr: Expr, analysis: Analysis | None) -> tuple[int | None, int | None]:
    """Inclusive bounds of an integer expression, where they say more than its dtype does."""
    fact = Facts.from_analysis(analysis).maybe(expr)
    if fact is None:
        return None, None
    dtype = scalar.dtype_of(expr)
    assert isinstance(dtype, DataType)
    low, high = limits(dtype)
    return fact.low if fact.low > low else None, fact.high if fact.high < high else None


def divisor(expr: Expr, analysis: Analysis | None) -> int:
    """A number that divides every value of an integer expression; 0 if the value is 0."""
    fact = Facts.from_analysis(analysis).maybe(expr)
    return 1 if fact is None else fact.divisor


def box_of(inst: Instruction) -> Mapping[Var, int]:
    """The variables that an instruction binds, each with the extent it runs over: those of its tile."""
    if not inst.bound_vars:
        return {}
    tile = inst.output if isinstance(inst.output, RegisterTensor) else inst.laid_out_tensors[0]
    return dict(zip(inst.bound_vars, tile.shape, strict=True))


# --------------------------------------------------------------------------------------------- variables of a function

# what a statement says of a variable, from what is known of others
Rule = Callable[[Facts], Fact]


def analyze(func: Function) -> Analysis:
    """What is known of each scalar variable of a function, all of the values that it ever has taken together.

    What the function's metadata say of its parameters is taken over.
    """
    collector = _Definitions(func.params, func.metadata)
    collector.visit(func)
    facts = _fixpoint(collector.rules)
    discrete = {v: fact for v, fact in facts.items() if _is_discrete(scalar.dtype_of(v))}
    return Analysis(
        divisibility={v: fact.divisor for v, fact in facts.items() if fact.divisor > 1},
        lower_bound={v: fact.low for v, fact in discrete.items() if fact.low > limits(_dtype(v))[0]},
        upper_bound={v: fact.high for v, fact in discrete.items() if fact.high < limits(_dtype(v))[1]},
    )


class _Definitions(IRVisitor):
    """Collects, per variable, every rule that gives it a value."""

    def __init__(self, params: Sequence[Var], metadata: Metadata) -> None:
        super().__init__()
        self.rules: defaultdict[Var, list[tuple[tuple[Var, ...], Rule]]] = defaultdict(list)
        self.workspaces: set[Tensor] = set()
        given = metadata.analysis or Analysis()
        for param in params:
            divisor = math.lcm(metadata.param2divisibility.get(param, 1), given.divisibility.get(param, 1))
            if (fact := _stored(param, divisor, given)) is not None:
                self._define(param, (), lambda _, fact=fact: fact)
        for index, extent in zip(metadata.block_indices, metadata.grid_blocks, strict=True):
            self._define(index, scalar.free_vars(extent), lambda facts, e=extent: _block_index(e, facts))

    def _define(self, var: Var, reads: tuple[Var, ...], rule: Rule) -> None:
        self.rules[var].append((reads, rule))

    def _value(self, var: Var, value: Expr) -> None:
        if _is_discrete(scalar.dtype_of(var)):
            self._define(var, scalar.free_vars(value), lambda facts: facts.of(value))

    def visit_ForStmt(self, stmt: stmts.ForStmt) -> None:
        below = stmt.extent
        self._define(
            stmt.iter_var, scalar.free_vars(below), lambda facts: Fact.of(1, 0, max(facts.of(below).high - 1, 0))
        )
        super().visit_ForStmt(stmt)

    def visit_LetStmt(self, stmt: stmts.LetStmt) -> None:
        for var, value in zip(stmt.bind_vars, stmt.bind_values, strict=True):
            self._value(var, value)
        super().visit_LetStmt(stmt)

    def visit_DeclareStmt(self, stmt: stmts.DeclareStmt) -> None:
        if stmt.init is not None:
            self._value(stmt.var, stmt.init)
        elif _is_discrete(scalar.dtype_of(stmt.var)):
            self._define(stmt.var, (), lambda _: anything(_dtype(stmt.var)))

    def visit_AssignStmt(self, stmt: stmts.AssignStmt) -> None:
        self._value(stmt.var, stmt.value)

    def visit_AllocateGlobalInst(self, inst: AllocateGlobalInst) -> None:
        self.workspaces.add(inst.tensor)

    def visit_TensorItemValueStmt(self, stmt: stmts.TensorItemValueStmt) -> None:
        if _is_discrete(dtype := scalar.dtype_of(stmt.var)):
            self._define(stmt.var, (), lambda _: anything(dtype))

    def visit_TensorItemPtrStmt(self, stmt: stmts.TensorItemPtrStmt) -> None:
        """A workspace begins where the launch aligned it; what other pointers promise is in their types."""
        if isinstance(stmt.tensor, GlobalTensor) and stmt.tensor in self.workspaces:
            offset, element = stmt.tensor.layout.offset(stmt.offsets), stmt.tensor.dtype.nbytes
            aligned = partial(_aligned_element, offset, element)
            self._define(stmt.ptr_var, scalar.free_vars(offset), aligned)


def _fixpoint(rules: Mapping[Var, Sequence[tuple[tuple[Var, ...], Rule]]]) -> dict[Var, Fact]:
    """The facts that agree with every rule; a variable that has none yet stands for no value at all."""
    env: dict[Var, Fact] = {}
    rounds = 0
    changed = True
    while changed:
        changed = False
        rounds += 1
        for var, given in rules.items():
            before = env.get(var)
            after = _joined(given, rules, env)
            if after is None:
                continue
            if before is not None:
                after = before.join(after)
            if after == before:
                continue
            env[var] = after if before is None or rounds <= PATIENCE else _widened(before, after, _dtype(var))
            changed = True
    # one round down: what widening gave away too much, the rules take back
    return {var: fact for var, given in rules.items() if (fact := _joined(given, rules, env)) is not None}


def _joined(
    given: Sequence[tuple[tuple[Var, ...], Rule]],
    rules: Mapping[Var, Sequence[tuple[tuple[Var, ...], Rule]]],
    env: Mapping[Var, Fact],
) -> Fact | None:
    result: Fact | None = None
    for reads, rule in given:
        if any(var in rules and var not in env for var in reads):
            continue
        fact = rule(Facts(env))
        result = fact if result is None else result.join(fact)
    return result


def _widened(before: Fact, after: Fact, dtype: DataType) -> Fact:
    """Bounds that still move after some rounds are given up."""
    low, high = limits(dtype)
    return Fact.of(
        after.divisor, low if after.low < before.low else after.low, high if after.high > before.high else after.high
    )


def _aligned_element(offset: Expr, nbytes: int, facts: Facts) -> Fact:
    """The address of an element of a workspace."""
    return Fact(math.gcd(WORKSPACE_ALIGNMENT, facts.of(offset).divisor * nbytes), 0, 2**64 - 1)


def _block_index(extent: Expr, facts: Facts) -> Fact:
    # a launch computes the grid in integers without limit, the evaluator in wrapping ones
    exact = Facts(facts.variables, wraps=False).of(extent).high
    return Fact.of(1, 0, max(min(max(exact, facts.of(extent).high), max(MAX_GRID)) - 1, 0))


def _stored(var: Var, divisor: int, analysis: Analysis) -> Fact | None:
    """The fact that an analysis gives, with a divisor of its own; None for floats."""
    dtype = scalar.dtype_of(var)
    if isinstance(dtype, PointerType):
        return Fact(divisor, 0, 2**64 - 1)
    if not _is_discrete(dtype):
        return None
    low, high = limits(dtype)
    return Fact.of(divisor, analysis.lower_bound.get(var, low), analysis.upper_bound.get(var, high))


def _dtype(var: Var) -> DataType:
    dtype = scalar.dtype_of(var)
    assert isinstance(dtype, DataType)
    return dtype


def _element_bytes(pointer: Expr) -> int:
    """The size of what a pointer points to: its natural alignment."""
    kind = scalar.dtype_of(pointer)
    assert isinstance(kind, PointerType)
    return kind.base.nbytes if isinstance(kind.base, DataType) and not kind.base.is_subbyte() else 1


# ------------------------------------------------------------------------------------------------- facts of operations


def _unlimited(fact: Fact, dtype: DataType) -> Fact:
    return fact


def _is_discrete(dtype: DataType | PointerType) -> TypeGuard[DataType]:
    return isinstance(dtype, DataType) and not dtype.is_vector() and (dtype.is_integer() or dtype.is_boolean())


def _hull(divisor: int, corners: Iterable[int]) -> Fact:
    values = list(corners)
    return Fact.of(divisor, min(values), max(values))


def _add(a: Fact, b: Fact) -> Fact:
    return Fact.of(math.gcd(a.divisor, b.divisor), a.low + b.low, a.high + b.high)


def _neg(a: Fact) -> Fact:
    return Fact.of(a.divisor, -a.high, -a.low)


def _sub(a: Fact, b: Fact) -> Fact:
    return _add(a, _neg(b))


def _mul(a: Fact, b: Fact) -> Fact:
    return _hull(a.divisor * b.divisor, (x * y for x in (a.low, a.high) for y in (b.low, b.high)))


def _floordiv(a: Fact, b: Fact) -> Fact | None:
    if b.low <= 0 <= b.high:  # division by zero has no value
        return None
    exact = b.value is not None and a.divisor % b.value == 0
    # a quotient is monotonic in each operand as long as the divisor keeps its sign
    return _hull(a.divisor // abs(b.low) if exact else 1, (x // y for x in (a.low, a.high) for y in (b.low, b.high)))


def _mod(a: Fact, b: Fact) -> Fact | None:
    if b.low <= 0 <= b.high:
        return None
    if a.low >= 0 and a.high < b.low:
        return a
    common = math.gcd(a.divisor, b.divisor)
    if b.low > 0:
        return Fact.of(common, 0, min(a.high, b.high - 1) if a.low >= 0 else b.high - 1)
    return Fact.of(common, b.low + 1, 0)


def _c_div(a: Fact, b: Fact) -> Fact | None:
    return _floordiv(a, b) if a.low >= 0 and b.low >= 0 else None


def _c_mod(a: Fact, b: Fact) -> Fact | None:
    return _mod(a, b) if a.low >= 0 and b.low >= 0 else None


def _minimum(a: Fact, b: Fact) -> Fact:
    if a.high <= b.low:
        return a
    if b.high <= a.low:
        return b
    return Fact.of(math.gcd(a.divisor, b.divisor), min(a.low, b.low), min(a.high, b.high))


def _maximum(a: Fact, b: Fact) -> Fact:
    return _neg(_minimum(_neg(a), _neg(b)))


def _absolute(a: Fact) -> Fact:
    return _maximum(a, _neg(a)) if not a.low <= 0 <= a.high else Fact.of(a.divisor, 0, max(-a.low, a.high))


def _power_of_two(divisor: int) -> int:
    """The largest power of two in a divisor; 0 for 0."""
    return divisor & -divisor


def _bitwise_and(a: Fact, b: Fact) -> Fact | None:
    low_zeros = math.lcm(_power_of_two(a.divisor), _power_of_two(b.divisor))
    highs = [fact.high for fact in (a, b) if fact.low >= 0]
    return Fact.of(low_zeros, 0, min(highs)) if highs else None


def _bitwise_or(a: Fact, b: Fact) -> Fact | None:
    low_zeros = math.gcd(_power_of_two(a.divisor), _power_of_two(b.divisor))
    if a.low < 0 or b.low < 0:
        return None
    return Fact.of(low_zeros, 0, (1 << max(a.high, b.high).bit_length()) - 1)


def _left_shift(a: Fact, b: Fact) -> Fact | None:
    return _mul(a, Fact.exactly(1 << b.low)) if b.value is not None and 0 <= b.low < 64 else None


def _right_shift(a: Fact, b: Fact) -> Fact | None:
    if b.value is not None and 0 <= b.low < 64:
        return _floordiv(a, Fact.exactly(1 << b.low))
    return Fact.of(1, 0, a.high) if a.low >= 0 else None


def _bitwise_not(a: Fact) -> Fact:
    return _sub(Fact.exactly(-1), a)


def _compare(kind: type[Expr], a: Fact, b: Fact) -> Fact:
    """The truth of a comparison, where the bounds decide it."""
    if kind is LessThan:
        return TRUE if a.high < b.low else FALSE if a.low >= b.high else BOOLEAN
    if kind is LessEqual:
        return TRUE if a.high <= b.low else FALSE if a.low > b.high else BOOLEAN
    apart = a.high < b.low or b.high < a.low
    same = a.value is not None and a.value == b.value
    if not apart and not same:
        return BOOLEAN
    return Fact.exactly(int(same == (kind is Equal)))


_RULES: Mapping[type[Expr], Callable[..., Fact | None]] = {
    Add: _add,
    Sub: _sub,
    Multiply: _mul,
    Neg: _neg,
    Div: _floordiv,
    Mod: _mod,
    BitwiseAnd: _bitwise_and,
    BitwiseOr: _bitwise_or,
    BitwiseXor: _bitwise_or,
    BitwiseNot: _bitwise_not,
    LeftShift: _left_shift,
    RightShift: _right_shift,
}
_CALLS: Mapping[str, Callable[..., Fact | None]] = {
    "minimum": _minimum,
    "maximum": _maximum,
    "abs": _absolute,
    "c_div": _c_div,
    "c_mod": _c_mod,
}
