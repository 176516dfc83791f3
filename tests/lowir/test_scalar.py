# SPDX-License-Identifier: Apache-2.0
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lowir.expressions import (
    INTEGERS,
    NUMBERS,
    SCALARS,
    dtype_of,
    environments,
    expressions,
    hidet_var,
    numbers,
    same,
    variables,
)
from tilekit import dtypes
from tilekit.diag import LanguageError
from tilekit.dtypes import bfloat16, boolean, float16, float32, float64, int8, int32, int64, uint8, uint32, uint64
from tilekit.lowir import scalar, scalar_eval, types

NAMES = variables()


def i32(number):
    return scalar.constant(int32, number)


@pytest.fixture
def n():
    return scalar.var("n", int32)


# ------------------------------------------------------------------------------------------------------------- folding


@given(st.data())
def test_an_expression_of_constants_folds_to_what_it_evaluates_to(data):
    dtype = data.draw(st.sampled_from(SCALARS))
    e = data.draw(expressions(dtype, NAMES))
    env = data.draw(environments(NAMES))
    unfolded = scalar_eval.evaluate(e, env)
    numbers_of = {v: scalar.constant(dtype_of(v), env[v].item()) for v in env}
    assert same(scalar_eval.evaluate(scalar.rewrite(e, numbers_of), {}), unfolded)


@given(st.data())
def test_integers_wrap_at_their_width(data):
    dtype = data.draw(st.sampled_from(INTEGERS))
    x, y = data.draw(numbers(dtype)), data.draw(numbers(dtype))
    a, b = scalar.constant(dtype, x), scalar.constant(dtype, y)
    for fold, exact in ((scalar.add, x + y), (scalar.sub, x - y), (scalar.mul, x * y)):
        assert (scalar.constant_value(fold(a, b)) - exact) % 2**dtype.nbits == 0


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1).filter(bool))
def test_division_of_integers_is_pythons(x, y):
    quotient = scalar.constant_value(scalar.floordiv(i32(x), i32(y)))
    assert quotient == dtypes.convert(x // y, int32)
    assert scalar.constant_value(scalar.mod(i32(x), i32(y))) == x % y


def test_division_by_a_zero_constant_does_not_fold(n):
    assert not scalar.is_constant(scalar.floordiv(i32(1), i32(0)))
    assert scalar_eval.evaluate(scalar.mod(n, i32(0)), {n: 5}) == 0


def test_float_constants_round_to_their_dtype():
    assert scalar.constant_value(scalar.constant(float16, 0.1)) == float(np.float16(0.1))
    tenth, third = scalar.constant(float32, 0.1), scalar.constant(float32, 1 / 3)
    assert scalar.constant_value(scalar.mul(tenth, third)) == float(np.float32(0.1) * np.float32(1 / 3))
    assert scalar.constant_value(scalar.div(scalar.constant(float32, -1), scalar.constant(float32, 0))) == -math.inf


def test_the_sign_of_zero_survives():
    minus_zero = scalar.neg(scalar.constant(float32, 0.0))
    assert math.copysign(1, scalar.constant_value(minus_zero)) == -1
    assert not scalar.structurally_equal(minus_zero, scalar.constant(float32, 0.0))


def test_a_nan_on_either_side_is_the_minimum():
    nan, one = scalar.constant(float32, math.nan), scalar.constant(float32, 1)
    assert math.isnan(scalar.constant_value(scalar.minimum(nan, one)))
    assert math.isnan(scalar.constant_value(scalar.minimum(one, nan)))


def test_neutral_integers_vanish(n):
    zero, one = i32(0), i32(1)
    assert scalar.add(n, zero) is n and scalar.add(zero, n) is n and scalar.sub(n, zero) is n
    assert scalar.mul(one, n) is n and scalar.floordiv(n, one) is n
    assert scalar.constant_value(scalar.mul(n, zero)) == 0 and scalar.constant_value(scalar.mod(n, one)) == 0


def test_adding_a_float_zero_stays():
    x = scalar.var("x", float32)
    e = scalar.add(x, scalar.constant(float32, 0.0))
    assert e is not x  # it turns -0.0 into 0.0
    assert same(scalar_eval.evaluate(e, {x: np.float32(-0.0)}), np.float32(0.0))


def test_a_decided_condition_leaves_one_branch(n):
    true, false = scalar.constant(boolean, True), scalar.constant(boolean, False)
    condition = scalar.lt(n, i32(3))
    assert scalar.logical_and(true, condition) is condition and scalar.logical_or(condition, false) is condition
    assert scalar.logical_and(condition, false) is false and scalar.logical_or(true, condition) is true
    assert scalar.where(true, n, i32(1)) is n and scalar.where(condition, n, n) is n
    assert scalar.logical_not(scalar.logical_not(condition)) is condition


# --------------------------------------------------------------------------------------------------------------- types


def test_operands_of_different_types_are_refused(n):
    with pytest.raises(LanguageError, match=r"\+ needs operands of one type, not int32 and int64"):
        scalar.add(n, scalar.constant(int64, 1))
    with pytest.raises(LanguageError, match="where needs operands of one type"):
        scalar.where(scalar.lt(n, i32(3)), n, scalar.constant(float32, 1))


def test_true_division_of_integers_is_refused_with_advice(n):
    with pytest.raises(LanguageError, match="use // for integers"):
        scalar.div(n, n)


def test_truth_values_do_not_add_and_numbers_do_not_combine_as_truth(n):
    truth = scalar.lt(n, i32(3))
    with pytest.raises(LanguageError, match="not on truth values"):
        scalar.add(truth, truth)
    with pytest.raises(LanguageError, match="and works on truth values, not on int32"):
        scalar.logical_and(n, n)


def test_an_unknown_function_names_the_near_one(n):
    with pytest.raises(LanguageError, match="did you mean exp"):
        scalar.call("expp", [n])
    with pytest.raises(LanguageError, match="exp takes a float, not int32"):
        scalar.call("exp", [n])


def test_a_shift_past_the_width_is_refused(n):
    with pytest.raises(LanguageError, match="shifts int32 by more than its 32 bits"):
        scalar.shl(n, i32(32))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (int32, int64, int64),
        (int8, uint8, dtypes.int16),
        (int32, uint32, int64),
        (int64, uint32, int64),
        (int32, float16, float16),
        (float16, bfloat16, float32),
        (float32, float64, float64),
        (boolean, int32, int32),
        (dtypes.float8_e4m3, dtypes.float8_e5m2, float16),
    ],
)
def test_operands_promote_to_what_holds_both(left, right, expected):
    for one, other in ((left, right), (right, left)):
        a, b = scalar.promote(scalar.var("a", one), scalar.var("b", other))
        assert scalar.dtype_of(a) is scalar.dtype_of(b) is expected


def test_uint64_and_a_signed_integer_have_no_common_type():
    with pytest.raises(LanguageError, match="uint64 and int32 have no common type"):
        scalar.promote(scalar.var("a", uint64), scalar.var("b", int32))


def test_python_numbers_become_expressions():
    assert scalar.dtype_of(scalar.as_expr(True)) is boolean
    assert scalar.dtype_of(scalar.as_expr(3)) is int32
    assert scalar.dtype_of(scalar.as_expr(2**31)) is int64
    assert scalar.dtype_of(scalar.as_expr(0.5)) is float32
    assert scalar.dtype_of(scalar.as_expr(np.int64(3))) is int32
    assert scalar.dtype_of(scalar.as_expr(3, float16)) is float16
    assert scalar.constant_value(scalar.as_expr(dtypes.int8(5))) == 5
    with pytest.raises(LanguageError, match="a value of type str is no number"):
        scalar.as_expr("3")
    with pytest.raises(LanguageError, match="does not fit"):
        scalar.as_expr(300, uint8)


def test_pointers_move_by_elements_and_cast_to_pointers():
    p, n = scalar.var("p", ~float16), scalar.var("n", int64)
    assert scalar.dtype_of(scalar.add(p, n)) == ~float16
    assert scalar_eval.evaluate(scalar.add(p, n), {p: 1000, n: -3}) == 994
    assert scalar.dtype_of(scalar.cast(p, ~int8)) == ~int8
    assert scalar.add(p, scalar.constant(int64, 0)) is p
    with pytest.raises(LanguageError, match="go through int64 or uint64"):
        scalar.cast(p, int32)
    with pytest.raises(LanguageError, match="void_p does not point to anything"):
        scalar.add(scalar.var("q", dtypes.void_p), n)


def test_every_type_has_its_counterpart_in_hidet():
    for dtype in dtypes.ALL:
        assert types.from_hidet(types.to_hidet(dtype)) is dtype
        hidet_type: Any = types.to_hidet(dtype)
        assert hidet_type.nbits == dtype.nbits
        assert types.from_hidet(types.to_hidet(~dtype)) == ~dtype
    assert types.from_hidet(types.to_hidet(dtypes.void_p)) == dtypes.void_p


# --------------------------------------------------------------------------------------------------------------- trees


@given(st.data())
def test_rewriting_nothing_gives_the_same_object(data):
    e = data.draw(expressions(data.draw(st.sampled_from(SCALARS)), NAMES))
    assert scalar.rewrite(e, {}) is e
    assert scalar.rewrite(e, {scalar.var("other", int32): i32(1)}) is e


@given(st.data())
def test_renaming_keeps_the_structure(data):
    e = data.draw(expressions(data.draw(st.sampled_from(SCALARS)), NAMES))
    renamed = {v: scalar.var("renamed", scalar.dtype_of(v)) for v in scalar.free_vars(e)}
    other = scalar.rewrite(e, renamed)
    assert scalar.structurally_equal(e, other, renamed)
    assert scalar.structurally_equal(e, other) == (not renamed)
    assert list(map(renamed.get, scalar.free_vars(e))) == list(scalar.free_vars(other))


def test_variables_are_told_apart_by_identity():
    first, second = scalar.var("n", int32), scalar.var("n", int32)
    assert not scalar.structurally_equal(first, second)
    assert scalar.free_vars(scalar.add(first, second)) == (first, second)


def test_special_variables_have_one_object_each():
    assert scalar.block_idx(0) is scalar.block_idx(0)
    assert scalar.block_idx(0) is not scalar.block_idx(1)
    assert scalar.name_hint(scalar.grid_dim(2)) == "grid_dim_z"
    assert scalar.dtype_of(scalar.thread_idx()) is int32


# ------------------------------------------------------------------------------------------- hidet's operators, read


def test_host_code_on_parameters_means_what_it_says(n):
    built = (n + 15) // 16
    assert scalar.structurally_equal(scalar.normalize(built), scalar.floordiv(scalar.add(n, i32(15)), i32(16)))
    assert scalar_eval.evaluate(scalar.normalize(built), {n: -20}) == -1


def test_a_number_beside_an_expression_takes_its_dtype():
    wide, unsigned = hidet_var("wide", int64), hidet_var("unsigned", uint32)
    assert scalar.dtype_of(scalar.normalize(wide % 16)) is int64
    assert scalar.dtype_of(scalar.normalize(unsigned + 1)) is uint32
    assert scalar.dtype_of(scalar.normalize(unsigned - (-1))) is int64


def test_hidets_overflowing_constants_wrap():
    from tilekit.lowir.nodes import Add, Constant

    too_large = Constant(2**31, types.to_hidet(int32))
    assert scalar.constant_value(scalar.normalize(too_large)) == -(2**31)
    assert scalar.constant_value(scalar.normalize(Add(too_large, too_large))) == 0


def test_mixed_operands_of_hidet_get_casts(n):
    x, wide = hidet_var("x", float32), hidet_var("wide", int64)
    assert scalar.structurally_equal(scalar.normalize(n + wide), scalar.add(scalar.cast(n, int64), wide))
    assert scalar.structurally_equal(scalar.normalize(x / n), scalar.div(x, scalar.cast(n, float32)))


@given(st.data())
def test_normalizing_what_the_constructors_built_changes_nothing(data):
    e = data.draw(expressions(data.draw(st.sampled_from(SCALARS)), NAMES))
    assert scalar.structurally_equal(scalar.normalize(e), e)


@given(st.integers(-1000, 1000), st.sampled_from(NUMBERS))
def test_casts_of_constants_convert(number, dtype):
    source = dtypes.float64 if dtype is not float64 else int64
    folded = scalar.cast(scalar.constant(source, number), dtype)
    assert scalar.constant_value(folded) == dtypes.convert(source.constant(number).rounded, dtype)
