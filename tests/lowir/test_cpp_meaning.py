# SPDX-License-Identifier: Apache-2.0
"""The printed C++ of an expression gives what the evaluator gives, bit for bit."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lowir.expressions import EXACT, SCALARS, environments, expressions, same, variables
from tests.lowir.kernels import Known, values_in_cpp
from tilekit import dtypes
from tilekit.ir.analysis.scalar_analysis import Fact
from tilekit.lowir import scalar_eval, scalar_text
from tilekit.toolchain import host

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="no C++ compiler here")

NAMES = variables()
COMPILES = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


def disagreements(several, env, folder, knowledge=None):
    found, text = values_in_cpp(several, NAMES, env, folder, knowledge)
    expected = [scalar_eval.evaluate(e, env) for e in several]
    return [
        f"{scalar_text.to_text(e)}: {ours!r} in C++, {right!r} by the evaluator\n{text}"
        for e, ours, right in zip(several, found, expected, strict=True)
        if not same(ours, right)
    ]


@COMPILES
@given(st.data())
def test_cpp_agrees_with_the_evaluator(tmp_path, data):
    kinds = data.draw(st.lists(st.sampled_from(SCALARS), min_size=20, max_size=20))
    several = [data.draw(expressions(dtype, NAMES, functions=EXACT)) for dtype in kinds]
    assert not disagreements(several, data.draw(environments(NAMES)), tmp_path)


@COMPILES
@given(st.data())
def test_plain_division_agrees_where_it_is_proven(tmp_path, data):
    integers = [dtypes.int32, dtypes.int64, dtypes.uint32]
    facts, env = {}, data.draw(environments(NAMES))
    for dtype in integers:
        for v in NAMES[dtype]:
            facts[v] = Fact.of(1, 0, 1000)
            env[v] = dtypes.numpy_dtype(dtype).type(data.draw(st.integers(0, 1000)))
    kinds = data.draw(st.lists(st.sampled_from(integers), min_size=20, max_size=20))
    several = [data.draw(expressions(dtype, NAMES, functions=("abs",))) for dtype in kinds]
    assert not disagreements(several, env, tmp_path, Known(facts))
