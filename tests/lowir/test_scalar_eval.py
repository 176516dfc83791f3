# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lowir.expressions import (
    FLOATS,
    INTEGERS,
    NUMBERS,
    SCALARS,
    environments,
    expressions,
    hidet_var,
    numbers,
    same,
    variables,
)
from tilekit import dtypes
from tilekit.diag import LanguageError
from tilekit.dtypes import bfloat16, float16, float32, int32, int64
from tilekit.lowir import scalar, scalar_eval
from tilekit.runtime import grid

NAMES = variables()


@settings(max_examples=30)
@given(st.data())
def test_an_array_evaluates_as_its_elements_do(data):
    e = data.draw(expressions(data.draw(st.sampled_from(SCALARS)), NAMES))
    envs = [data.draw(environments(NAMES)) for _ in range(3)]
    together = {v: np.stack([env[v] for env in envs]) for v in envs[0]}
    whole = np.broadcast_to(scalar_eval.evaluate(e, together), (3,))
    assert all(same(whole[k], scalar_eval.evaluate(e, env)) for k, env in enumerate(envs))


@given(st.data())
def test_the_value_has_the_dtype_of_the_expression(data):
    dtype = data.draw(st.sampled_from(SCALARS))
    e = data.draw(expressions(dtype, NAMES))
    assert np.asarray(scalar_eval.evaluate(e, data.draw(environments(NAMES)))).dtype == dtypes.numpy_dtype(dtype)


@given(st.data())
def test_a_cast_converts_as_the_dtypes_say(data):
    source, target = data.draw(st.sampled_from(NUMBERS)), data.draw(st.sampled_from(dtypes.SCALARS))
    number = dtypes.convert(data.draw(numbers(source)), source)
    v = scalar.var("v", source)
    value = scalar_eval.evaluate(scalar.cast(v, target), {v: np.asarray(number).astype(dtypes.numpy_dtype(source))})
    assert same(value, np.asarray(dtypes.convert(number, target)).astype(dtypes.numpy_dtype(target)))


@given(st.data())
def test_small_floats_round_after_every_operation(data):
    dtype = data.draw(st.sampled_from([float16, bfloat16]))
    a, b, c = NAMES[dtype][0], NAMES[dtype][1], scalar.var("c", dtype)
    x, y, z = (dtypes.convert(data.draw(st.floats(-100, 100)), dtype) for _ in range(3))
    product = dtypes.convert(x * y, dtype)
    env = {v: np.asarray(number).astype(dtypes.numpy_dtype(dtype)) for v, number in ((a, x), (b, y), (c, z))}
    assert float(scalar_eval.evaluate(scalar.add(scalar.mul(a, b), c), env)) == dtypes.convert(product + z, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_are_close_to_the_real_ones(dtype):
    x = NAMES[dtype][0]
    values = np.linspace(0.25, 3, 7).astype(dtypes.numpy_dtype(dtype))
    for name, real in (("exp", np.exp), ("rsqrt", lambda v: 1 / np.sqrt(v)), ("log2", np.log2), ("tanh", np.tanh)):
        ours = scalar_eval.evaluate(scalar.call(name, [x]), {x: values}).astype(np.float64)
        assert np.allclose(ours, real(values.astype(np.float64)), rtol=4 * dtype.eps)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(1, 1000))
def test_c_division_agrees_with_pythons_where_it_may_be_used(x, y):
    a, b = scalar.var("a", int32), scalar.var("b", int32)
    env = {a: abs(x) & (2**31 - 1), b: y}
    for ours, theirs in ((scalar.c_div, scalar.floordiv), (scalar.c_mod, scalar.mod)):
        assert scalar_eval.evaluate(ours(a, b), env) == scalar_eval.evaluate(theirs(a, b), env)
    assert scalar_eval.evaluate(scalar.c_div(a, b), {a: x, b: y}) == int(x / y)


# ----------------------------------------------------------------------------------------------------------- host text


def names(v):
    return scalar.name_hint(v)


def test_a_grid_is_integer_python():
    n = hidet_var("n", int32)
    assert scalar_eval.to_host(scalar.normalize((n + 15) // 16), names) == "((n + 15) // 16)"
    wide = scalar.minimum(scalar.cast(n, int64), scalar.constant(int64, 4))
    assert scalar_eval.to_host(wide, names) == "min(n, 4)"


@given(st.integers(-1000, 1000), st.sampled_from([int32, int64]))
def test_a_grid_may_shift_mask_and_take_absolute_values(number, dtype):
    n = scalar.var("n", dtype)
    three, mask = scalar.constant(dtype, 3), scalar.constant(dtype, 15)
    forms = [scalar.shr(n, three), scalar.shl(n, three), scalar.bitwise_and(n, mask), scalar.call("abs", [n])]
    for e in (*forms, scalar.bitwise_and(n, scalar.bitwise_not(mask))):
        launch = grid.compile_grid([scalar_eval.to_host(e, names), "1", "1"], ["n"])
        assert launch(number)[0] == scalar_eval.evaluate(e, {n: dtypes.numpy_dtype(dtype).type(number)})


@given(st.data())
def test_host_text_computes_what_the_expression_is_worth(data):
    pair = NAMES[int64]
    e = data.draw(expressions(int64, {int64: pair, dtypes.boolean: NAMES[dtypes.boolean]} | NAMES, depth=2))
    if not all(scalar.is_integer(scalar.dtype_of(part)) for part in scalar.walk(e)):
        return
    if any(type(part).__name__ in ("LeftShift", "RightShift", "Div", "Mod", "Cast") for part in scalar.walk(e)):
        return
    if any(type(part).__name__.startswith("Bitwise") for part in scalar.walk(e)):
        return
    env = {v: data.draw(st.integers(-100, 100)) for v in scalar.free_vars(e)}
    text = scalar_eval.to_host(e, names)
    known = {names(v): number for v, number in env.items()}
    exact = eval(text, {"min": min, "max": max, "abs": abs}, known)
    assert dtypes.convert(exact, int64) == scalar_eval.evaluate(e, {v: np.int64(number) for v, number in env.items()})


@pytest.mark.parametrize("dtype", [float32, float16])
def test_floats_do_not_decide_a_grid(dtype):
    x = scalar.var("x", dtype)
    with pytest.raises(LanguageError, match="cannot be computed before a launch"):
        scalar_eval.to_host(scalar.cast(x, int32), names)


def test_integers_alone_make_a_grid():
    assert all(scalar_eval.to_host(scalar.var("v", dtype), names) == "v" for dtype in INTEGERS)
