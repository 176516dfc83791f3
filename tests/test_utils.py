# SPDX-License-Identifier: Apache-2.0
import ast
import math
import operator
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tilekit import dtypes, utils

POSITIVE = st.integers(1, 10**12)


class Symbol:
    """Stands for an expression over a kernel's parameters: whatever is computed with it becomes text."""

    def __init__(self, text: str):
        self.text = text

    def _with(self, sign: str, other: object) -> "Symbol":
        return Symbol(f"({self.text} {sign} {other.text if isinstance(other, Symbol) else other})")

    def __add__(self, other: object) -> "Symbol":
        return self._with("+", other)

    def __sub__(self, other: object) -> "Symbol":
        return self._with("-", other)

    def __mul__(self, other: object) -> "Symbol":
        return self._with("*", other)

    def __floordiv__(self, other: object) -> "Symbol":
        return self._with("//", other)


@given(st.integers(-(10**12), 10**12), POSITIVE)
def test_cdiv_rounds_up(a, b):
    assert utils.cdiv(a, b) == -(-a // b)


def test_cdiv_and_prod_take_expressions():
    assert utils.cdiv(Symbol("n"), 128).text == "((n + 127) // 128)"
    assert utils.cdiv(Symbol("n"), Symbol("b")).text == "((n + (b - 1)) // b)"
    assert utils.prod([Symbol("m"), Symbol("n"), 4]).text == "((m * n) * 4)"


@given(POSITIVE, POSITIVE)
def test_idiv_divides_what_can_be_divided(a, b):
    assert utils.idiv(a * b, b) == a


def test_idiv_refuses_a_remainder():
    with pytest.raises(ValueError, match=r"^7 is not a multiple of 2$"):
        utils.idiv(7, 2)


@given(POSITIVE, POSITIVE, POSITIVE)
def test_gcd_and_lcm(a, b, c):
    assert utils.gcd(a, b) * utils.lcm(a, b) == a * b
    assert all(utils.lcm(a, b, c) % x == 0 and x % utils.gcd(a, b, c) == 0 for x in (a, b, c))


@given(st.lists(POSITIVE, max_size=5))
def test_prod(factors):
    assert utils.prod(factors) == utils.prod(iter(factors)) == math.prod(factors)


@given(POSITIVE)
def test_logarithms_and_powers_of_two(n):
    k = utils.floor_log2(n)
    assert 2**k <= n < 2 ** (k + 1)
    assert utils.is_power_of_two(n) == (2**k == n)


def test_there_is_no_logarithm_of_zero():
    with pytest.raises(ValueError, match=r"^0 has no logarithm$"):
        utils.floor_log2(0)
    assert not utils.is_power_of_two(0) and not utils.is_power_of_two(-4)


@given(st.integers(1, 10**6))
def test_prime_factors(n):
    factors = utils.factorize_decomposition(n)
    assert math.prod(factors) == n
    assert factors == sorted(factors)
    assert all(all(factor % d for d in range(2, math.isqrt(factor) + 1)) for factor in factors)


def test_bytes_and_bits():
    assert utils.nbytes_from_nbits(24) == 3
    with pytest.raises(ValueError, match=r"^12 bits are no whole number of bytes$"):
        utils.nbytes_from_nbits(12)
    assert utils.select_bits(0b1101_0110, 2, 6) == 0b0101
    assert utils.select_bits(0xFF, 3, 3) == 0


def test_same_list_compares_objects_unless_told_otherwise():
    a, b = [1], [1]
    assert utils.same_list([a, b], (a, b))
    assert not utils.same_list([a], [b])
    assert utils.same_list([a], [b], use_equal=True)
    assert not utils.same_list([a], [a, a])


def test_ranked_product_runs_the_highest_rank_fastest():
    assert list(utils.ranked_product("ab", "xy", ranks=[1, 0])) == [["a", "x"], ["b", "x"], ["a", "y"], ["b", "y"]]
    items = list(utils.ranked_product(range(2), range(3), range(4), ranks=[2, 0, 1]))
    assert sorted(map(tuple, items)) == sorted((i, j, k) for i in range(2) for j in range(3) for k in range(4))
    assert items == sorted(items, key=operator.itemgetter(1, 2, 0))
    with pytest.raises(ValueError, match="ranks of 2 iterables are 0 to 1 in some order"):
        next(utils.ranked_product("a", "b", ranks=[0, 2]))


@pytest.mark.parametrize(
    ("name", "snake"),
    [
        ("Softmax", "softmax"),
        ("VectorAdd", "vector_add"),
        ("MatmulWGMMA", "matmul_w_g_m_m_a"),
        ("MatmulV5", "matmul_v5"),
        ("already_snake", "already_snake"),
        ("With_Underscore", "with_underscore"),
        ("f", "f"),
        ("", ""),
    ],
)
def test_snake_case_puts_an_underscore_before_every_capital(name, snake):
    assert utils.to_snake_case(name) == snake


def test_a_way_between_folders(tmp_path):
    assert utils.relative_to_with_walk_up(tmp_path / "a" / "b", tmp_path / "c" / "f.py") == Path("../../c/f.py")
    assert utils.relative_to_with_walk_up(tmp_path, tmp_path) == Path(".")


def test_a_unique_file_name_takes_the_first_free_number(tmp_path):
    pattern = str(tmp_path / "run{}.txt")
    assert utils.unique_file_name(pattern) == str(tmp_path / "run0.txt")
    (tmp_path / "run0.txt").touch()
    assert utils.unique_file_name(pattern) == str(tmp_path / "run1.txt")
    with pytest.raises(ValueError, match=r"has no \{\} to fill"):
        utils.unique_file_name("run.txt")


def test_initialize_calls_at_once():
    calls = []

    @utils.initialize(3, key="x")
    def register(number, key):
        calls.append((number, key))

    assert calls == [(3, "x")]
    register(4, key="y")
    assert calls[-1] == (4, "y")


def test_repeat_until_converge_stops_at_the_same_object():
    steps = []

    def halve(value):
        steps.append(value)
        return value if len(value) < 2 else value[: len(value) // 2]

    assert utils.repeat_until_converge(halve, "abcdefgh") == "a"
    assert steps == ["abcdefgh", "abcd", "ab", "a"]
    assert utils.repeat_until_converge(halve, "abcdefgh", limit=2) == "ab"


def test_parallel_maps_keep_the_order():
    jobs = ["1", "(2, 3)", "[4]"]
    expected = [1, (2, 3), [4]]
    assert utils.parallel_map(ast.literal_eval, jobs, num_workers=2) == expected
    assert list(utils.serial_imap(ast.literal_eval, jobs)) == expected
    assert utils.parallel_map(ast.literal_eval, []) == []


def test_a_call_is_timed_in_milliseconds(monkeypatch):
    calls = []

    def run():
        calls.append(None)
        time.sleep(0.01)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert 10 <= utils.benchmark_func(run, warmup=2, repeat=3) < 1000
    assert len(calls) == 5


def test_torch_types():
    assert utils.dtype_to_torch(dtypes.bfloat16) is torch.bfloat16
    assert utils.dtype_to_torch(dtypes.float8_e4m3) is torch.float8_e4m3fn
    assert utils.dtype_from_torch(torch.int64) is dtypes.int64


def test_colors_come_and_go():
    assert utils.red("no") == "\x1b[31mno\x1b[0m"
    painted = f"{utils.bold(1.25, '{:.1f}')} {utils.green('a')}{utils.blue('b')}{utils.cyan('c')}"
    assert utils.nocolor(painted) == "1.2 abc"


def test_importing_the_helpers_imports_no_torch():
    code = "import sys, tilekit.utils, tilekit.testing, tilekit.option; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
