# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.ir.analysis import expressions
from tilekit import dtypes
from tilekit.ir.analysis import scalar_analysis
from tilekit.ir.analysis.scalar_analysis import Fact, Facts, analyze
from tilekit.ir.func import Analysis, Function, Metadata
from tilekit.ir.stmt import AssignStmt, DeclareStmt, ForStmt, LetStmt, SeqStmt, Stmt, WhileStmt
from tilekit.lowir import scalar, scalar_eval
from tilekit.lowir.scalar import Expr, Var

i32 = dtypes.int32


def c(value: int, dtype: dtypes.DataType = i32) -> Expr:
    return scalar.constant(dtype, value)


def function(
    body: Stmt, params: tuple[Var, ...] = (), grid: Expr | None = None, divisors: dict[Var, int] | None = None
):
    metadata = Metadata.create(
        (grid if grid is not None else c(1), c(1), c(1)), (1, 1, 1), tuple(map(scalar.block_idx, range(3))), 4, divisors
    )
    return Function.create("f", params, body, metadata)


@st.composite
def known_variables(draw: st.DrawFn) -> dict[Var, tuple[Fact, np.ndarray]]:
    """Variables of several dtypes, each with a fact and an array of values that agree with it."""
    variables = {}
    for n, dtype in enumerate(draw(st.lists(st.sampled_from(expressions.DTYPES), min_size=1, max_size=3))):
        low, high = scalar_analysis.limits(dtype)
        if draw(st.booleans()):
            low, high = max(low, -20), min(high, draw(st.integers(-10, 200)))
        divisor = draw(st.sampled_from([1, 1, 2, 3, 4, 8, 16]))
        fact = Fact.of(divisor, low, max(low, high))
        first, last = -(-fact.low // divisor), fact.high // divisor
        ends = st.one_of(st.integers(first, last), st.sampled_from([first, last]))
        values = [draw(ends) * divisor for _ in range(6)] if first <= last else [fact.low] * 6
        variables[scalar.var(f"v{n}", dtype)] = (fact, np.array(values, dtypes.numpy_dtype(dtype)))
    return variables


@given(known_variables(), st.data())
def test_every_value_agrees_with_the_fact(variables, data):
    dtype = data.draw(st.sampled_from([expressions.dtype_of(v) for v in variables]))
    expr = data.draw(st.one_of(expressions.integer(list(variables), dtype, 4), expressions.truth(list(variables), 3)))
    fact = Facts({v: known for v, (known, _) in variables.items()}).of(expr)
    values = scalar_eval.evaluate(expr, {v: array for v, (_, array) in variables.items()})
    for value in np.atleast_1d(values):
        assert fact.low <= int(value) <= fact.high
        assert int(value) == 0 if fact.divisor == 0 else int(value) % fact.divisor == 0


def test_a_sum_that_may_wrap_keeps_only_a_power_of_two():
    n = scalar.var("n", i32)
    facts = Facts({n: Fact.of(12, *scalar_analysis.limits(i32))})
    assert facts.of(scalar.add(n, c(24))) == Fact.of(4, -(2**31), 2**31 - 4)
    assert facts.of(scalar.floordiv(n, c(3))).divisor == 4


def test_a_block_index_times_its_tile_does_not_wrap():
    n = scalar.var("n", i32)
    blocks = scalar.floordiv(scalar.add(n, c(127)), c(128))
    analysis = analyze(function(SeqStmt(()), (n,), blocks))
    start = scalar.mul(scalar.block_idx(0), c(128))
    assert scalar_analysis.bounds(start, analysis) == (0, 2**31 - 128)
    assert scalar_analysis.divisor(start, analysis) == 128


def test_the_only_block_along_an_axis_has_index_zero():
    analysis = analyze(function(SeqStmt(())))
    assert scalar_analysis.bounds(scalar.block_idx(1), analysis) == (0, 0)


def test_divisors_of_parameters_come_from_the_metadata():
    n, p = scalar.var("n", i32), scalar.var("p", ~dtypes.float16)
    analysis = analyze(function(SeqStmt(()), (n, p), divisors={n: 16, p: 32}))
    assert scalar_analysis.divisor(scalar.mul(n, c(2)), analysis) == 32
    facts = Facts.from_analysis(analysis)
    assert facts.alignment(p) == 32
    assert facts.alignment(scalar.add(p, c(4))) == 8
    assert facts.alignment(scalar.var("q", ~dtypes.float32)) == 4


def test_a_loop_variable_stays_below_its_extent():
    k, n = scalar.var("k", i32), scalar.var("n", i32)
    start = scalar.var("start", i32)
    body = LetStmt((start,), (scalar.mul(k, c(32)),), SeqStmt(()))
    analysis = analyze(function(ForStmt(k, scalar.floordiv(n, c(32)), body), (n,)))
    assert scalar_analysis.bounds(k, analysis) == (0, 2**26 - 2)
    assert scalar_analysis.bounds(start, analysis) == (0, (2**26 - 2) * 32)
    assert analysis.divisibility[start] == 32


def test_a_stage_that_goes_around_is_bounded():
    stage, n = scalar.var("stage", i32), scalar.var("n", i32)
    step = AssignStmt(stage, scalar.mod(scalar.add(stage, c(1)), c(3)))
    body = SeqStmt((DeclareStmt(stage, c(0)), ForStmt(scalar.var("i", i32), n, step)))
    assert scalar_analysis.bounds(stage, analyze(function(body, (n,)))) == (0, 2)


def test_a_counter_keeps_its_divisor_and_loses_its_bounds():
    i, n = scalar.var("i", i32), scalar.var("n", i32)
    body = SeqStmt((DeclareStmt(i, c(0)), WhileStmt(scalar.lt(i, n), AssignStmt(i, scalar.add(i, c(48))))))
    analysis = analyze(function(body, (n,)))
    assert scalar_analysis.divisor(i, analysis) == 16  # of 48, what survives wrapping
    assert scalar_analysis.bounds(i, analysis) == (None, 2**31 - 16)


def test_a_variable_without_a_first_value_may_hold_anything():
    x = scalar.var("x", i32)
    analysis = analyze(function(SeqStmt((DeclareStmt(x, None), AssignStmt(x, c(8))))))
    assert scalar_analysis.bounds(x, analysis) == (None, None)
    assert scalar_analysis.divisor(x, analysis) == 1


@st.composite
def program(draw: st.DrawFn):
    """Mutable variables, a loop around assignments to them, and what they held when it ran."""
    variables = [scalar.var(f"x{n}", draw(st.sampled_from([dtypes.int8, i32]))) for n in range(3)]
    firsts = [draw(expressions.integer([v], expressions.dtype_of(v), 0).filter(scalar.is_constant)) for v in variables]
    steps = [
        (v := draw(st.sampled_from(variables)), draw(expressions.integer(variables, expressions.dtype_of(v), 3)))
        for _ in range(draw(st.integers(1, 4)))
    ]
    return variables, firsts, steps, draw(st.integers(1, 12))


@given(program())
def test_the_fixpoint_holds_in_every_iteration(case):
    variables, firsts, steps, trips = case
    body = SeqStmt(tuple(AssignStmt(v, e) for v, e in steps))
    declares = tuple(map(DeclareStmt, variables, firsts))
    analysis = analyze(function(SeqStmt((*declares, ForStmt(scalar.var("i", i32), c(trips), body)))))
    facts = Facts.from_analysis(analysis)
    env = {v: scalar_eval.evaluate(first, {}) for v, first in zip(variables, firsts, strict=True)}
    for _ in range(trips):
        for v, e in steps:
            env[v] = scalar_eval.evaluate(e, env)
            fact = facts.of(v)
            assert fact.low <= int(env[v]) <= fact.high
            assert int(env[v]) == 0 if fact.divisor == 0 else int(env[v]) % fact.divisor == 0


def test_an_empty_analysis_knows_the_dtype():
    x = scalar.var("x", dtypes.uint8)
    assert Facts.from_analysis(Analysis()).of(x) == Fact(1, 0, 255)
    assert scalar_analysis.bounds(scalar.cast(x, i32), None) == (0, 255)


def test_what_metadata_know_of_parameters_is_taken_over():
    n = scalar.var("n", i32)
    func = function(SeqStmt(()), (n,), divisors={n: 8})
    given = Analysis(divisibility={n: 12}, lower_bound={n: 1}, upper_bound={n: 100})
    analysis = analyze(func.with_metadata(replace(func.metadata, analysis=given)))
    assert scalar_analysis.bounds(n, analysis) == (24, 96)
    assert scalar_analysis.divisor(n, analysis) == 24
