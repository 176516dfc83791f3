# SPDX-License-Identifier: Apache-2.0
import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lowir.expressions import SCALARS, expressions, numbers, variables
from tilekit import dtypes
from tilekit.diag import LanguageError
from tilekit.dtypes import float16, float32, int32, int64
from tilekit.lowir import scalar, scalar_text

NAMES = variables()


def read(text, variables=()):
    names = {scalar.name_hint(v): v for v in variables}
    return scalar_text.from_text(ast.parse(text, mode="eval").body, lambda name: names[name])


@given(st.data())
def test_what_is_printed_reads_back_node_by_node(data):
    e = data.draw(expressions(data.draw(st.sampled_from(SCALARS)), NAMES, depth=4))
    assert scalar.structurally_equal(read(scalar_text.to_text(e), scalar.free_vars(e)), e)


@given(st.data())
def test_a_literal_is_the_shortest_that_reads_back(data):
    dtype = data.draw(st.sampled_from(dtypes.SCALARS))
    number = dtypes.convert(data.draw(numbers(dtype)), dtype)
    e = scalar.constant(dtype, number)
    text = scalar_text.to_text(e)
    assert scalar.structurally_equal(read(text), e)
    assert len(text) <= len(f"{dtype.short_name}({number!r})") + 2


def test_the_text_is_python_with_typed_literals():
    n, i, x = scalar.var("n", int32), scalar.var("i", int32), scalar.var("x", float16)
    index = scalar.add(scalar.mul(scalar.block_idx(0), scalar.as_expr(128)), i)
    inside = scalar.lt(index, n)
    assert scalar_text.to_text(inside) == "(block_idx_x * i32(128) + i) < n"
    assert scalar_text.to_text(scalar.floordiv(n, scalar.sub(i, n))) == "n // (i - n)"
    assert scalar_text.to_text(scalar.sub(n, scalar.sub(i, n))) == "n - (i - n)"
    assert scalar_text.to_text(scalar.cast(index, int64)) == "i64(block_idx_x * i32(128) + i)"
    half = scalar.where(inside, scalar.call("exp", [x]), scalar.constant(float16, float("-inf")))
    assert scalar_text.to_text(half) == 'exp(x) if (block_idx_x * i32(128) + i) < n else f16("-inf")'
    assert scalar_text.to_text(scalar.constant(float32, 0.1)) == "f32(0.1)"
    assert scalar_text.to_text(scalar.cast(scalar.var("p", ~float16), ~float32)) == 'cast(p, "~f32")'


def test_pointer_casts_read_back():
    p, raw = scalar.var("p", ~float16), scalar.var("raw", int64)
    for e in (scalar.cast(p, ~float32), scalar.cast(p, int64), scalar.cast(raw, ~float16), scalar.add(p, raw)):
        assert scalar.structurally_equal(read(scalar_text.to_text(e), scalar.free_vars(e)), e)


@pytest.mark.parametrize("text", ["1", "f()", "a.b", "[1]", "lambda: 1", "1 < 2 < 3", "i32(1, 2)", "'text'", "n @ n"])
def test_other_python_is_refused(text):
    with pytest.raises(LanguageError):
        read(text, [scalar.var("n", int32)])
