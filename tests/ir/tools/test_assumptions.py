# SPDX-License-Identifier: Apache-2.0
"""What every run of a kernel assumes of its parameters: as text, and whether it holds for some arguments."""

import random

import pytest

from tests.ir.tools.programs import program
from tilekit.ir.tools import assumptions

DOUBLED = ["k: i32 = n % i32(8)", "j: i32 = k + k"]


def test_an_assumption_is_said_in_terms_of_the_parameters():
    func = program(*DOUBLED, "assume(cond=j == i32(4))").function
    ((condition, span),) = assumptions.conditions(func)
    assert span.line == 3
    for n in random.sample(range(1000), 20):
        assert eval(condition, {"n": n}) == (2 * (n % 8) == 4)


def test_the_first_one_that_does_not_hold_is_found():
    func = program(*DOUBLED, "assume(cond=n > i32(0))", "assume(cond=j == i32(4))").function
    assert assumptions.first_false(func, [10, 0]) is None
    assert assumptions.first_false(func, [-6, 0]).span.line == 3
    assert assumptions.first_false(func, [11, 0]).span.line == 4


@pytest.mark.parametrize(
    "lines",
    [
        ["m: i32 = n", "m = m + i32(1)", "assume(cond=m == i32(-1))"],
        ["if n < i32(5):", "    assume(cond=n < i32(0))"],
        ["for i in range(n):", "    if i > i32(1):", "        return", "assume(cond=n < i32(0))"],
    ],
)
def test_what_changes_and_what_some_runs_do_not_come_to_is_not_asked(lines):
    func = program(*lines).function
    assert assumptions.conditions(func) == [] and assumptions.first_false(func, [3, 0]) is None


def test_numbers_that_no_assumption_asks_for_cost_nothing():
    """Written out, the last of them would have 2 to the power of 60 parts."""
    mixed = [f"x{i + 1}: i32 = (x{i} >> i32(3)) ^ x{i}" for i in range(60)]
    func = program("x0: i32 = n", *mixed, "assume(cond=n > i32(0))").function
    assert len(assumptions.conditions(func)) == 1
