# SPDX-License-Identifier: Apache-2.0
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilekit.diag import LaunchError
from tilekit.runtime.grid import check_grid, compile_grid

integers = st.integers(-(2**40), 2**40)


@given(integers, integers.filter(bool))
def test_expressions_mean_what_python_means(m: int, n: int) -> None:
    expressions = [
        "(m + n - 1) // n",
        "max(m, n) * -m - m % n",
        "m if m < n <= 5 or not m == n and m != 3 else min(m, n, 7)",
    ]
    assert compile_grid(expressions, ["m", "n"])(m, n) == tuple(eval(text, {"m": m, "n": n}) for text in expressions)


def test_parameters_may_be_called_like_the_functions() -> None:
    assert compile_grid(["max(max, min)", "min(min, max)", "max"], ["min", "max"])(3, 5) == (5, 3, 5)


def test_a_grid_without_parameters_is_a_grid() -> None:
    assert compile_grid(["4", "2", "1"], [])() == (4, 2, 1)


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("__import__('os').system('true')", "__import__('os').system('true')"),
        ("(lambda: m)()", "(lambda: m)()"),
        ("m.bit_length()", "m.bit_length()"),
        ("m.real", "m.real"),
        ("m ** m", "m ** m"),
        ("m / 2", "m / 2"),
        ("m << 3", "m << 3"),
        ("~m", "~m"),
        ("[m][0]", "[m][0]"),
        ("1.5 * m", "1.5"),
        ("m * 'a'", "'a'"),
        ("(n := 2)", "(n := 2)"),
        ("max(m)", "max(m)"),
        ("max(*m, 1)", "*m"),
        ("max(m, 1, key=m)", "max(m, 1, key=m)"),
        ("f'{m}'", "f'{m}'"),
        ("m is m", "m is m"),
        ("m in (m, m)", "m in (m, m)"),
        ("x", "x, which is no integer parameter"),
        ("min", "min, which is no integer parameter"),
    ],
)
def test_everything_else_is_refused_by_name(expression: str, shown: str) -> None:
    with pytest.raises(LaunchError) as caught:
        compile_grid([expression, "1", "1"], ["m"])
    assert caught.value.message == f"grid expression {expression!r} uses {shown}"


@pytest.mark.parametrize(
    "text", ["", "m if", "\0", "(" * 300 + "m" + ")" * 300, "-" * 15_000 + "m", "m" * 30_000, "m; m"]
)
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(LaunchError):
        compile_grid([text, "1", "1"], ["m"])


def test_the_limits_of_cuda_hold() -> None:
    check_grid((2**31 - 1, 65535, 65535), "k")
    check_grid((0, 65535, 0), "k")


@pytest.mark.parametrize(("axis", "limit"), [("x", 2**31 - 1), ("y", 65535), ("z", 65535)])
def test_a_grid_out_of_range_is_a_sentence(axis: str, limit: int) -> None:
    extents = [1, 1, 1]
    extents["xyz".index(axis)] = wrong = random.randint(limit + 1, 2**40)
    with pytest.raises(LaunchError) as caught:
        check_grid(tuple(extents), "softmax")  # pyright: ignore[reportArgumentType]
    expected = f"softmax: the grid has {wrong} blocks along {axis}, more than the {limit} that CUDA allows"
    assert caught.value.message == expected


def test_a_negative_grid_is_a_sentence() -> None:
    with pytest.raises(LaunchError, match="the grid has -1 blocks along y, negative"):
        check_grid((1, -1, 1), "softmax")
