# SPDX-License-Identifier: Apache-2.0
"""A part of a tensor that lies outside of it is refused where that is proven, and nowhere else."""

import pytest

from tests.ir.tools.programs import one_line, program, refusal
from tilekit.ir.tools import verify

S = "s: Shared[f32[4, 32]] = shared_tensor()"
A = "a: f32[8] = register_tensor(init=f32(0.0))"


def row(at: str) -> str:
    return f"r: Shared[f32[32]] = slice_shared(s, offsets=[{at}, i32(0)], dims=[1])"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([S, row("n % i32(3) + i32(4)")], "line 2: this takes element 4 or a later one of s along dimension 0"),
        ([S, row("n % i32(3) - i32(5)")], "line 2: this takes an element before the first of s along dimension 0"),
        (
            [S, "r: Shared[f32[2, 32]] = slice_shared(s, offsets=[n % i32(2) + i32(3), i32(0)], dims=[0, 1])"],
            "line 2: this takes element 4 or a later one of s along dimension 0, which has 4 elements",
        ),
        ([S, "k: i32 = i32(4)", row("k")], "line 3: this takes element 4 of s along dimension 0"),
        (
            [S, "for i in range(i32(5)):", f"    {row('i')}"],
            "line 3: this takes element 4 of s along dimension 0, which has 4 elements; "
            "it is so in the last round of this loop (line 2)",
        ),
        (
            [S, "for i in range(i32(4)):", "    k: i32 = i - i32(1)", f"    {row('k')}"],
            "line 4: this takes element -1 of s along dimension 0, which has 4 elements; "
            "it is so in the first round of this loop (line 2)",
        ),
        (
            [S, "for i in range(i32(3)):", "    for j in range(i32(3)):", f"        {row('i + j')}"],
            "line 4: this takes element 4 of s along dimension 0, which has 4 elements; "
            "it is so in the last round of this loop (line 2); it is so in the last round of this loop (line 3)",
        ),
        (
            [S, "if n < i32(3):", "    for i in range(i32(5)):", f"        {row('i')}"],
            "line 4: this takes element 4 of s along dimension 0",
        ),
        (
            [A, "for i in range(i32(9)):", "    b: f32[()] = slice_register(a, offsets=[i], dims=[])"],
            "line 3: this takes element 8 of a along dimension 0, which has 8 elements",
        ),
        (
            [
                A,
                "one: f32[4] = register_tensor(init=f32(1.0))",
                "for i in range(i32(3)):",
                "    slice_assign(a, one, offsets=[i * i32(4)], dims=[0])",
            ],
            "line 4: this takes elements 8 to 11 of a along dimension 0, which has 8 elements",
        ),
        ([S, "v: Item[f32] = s[n, i32(32)]"], "line 2: this takes element 32 of s along dimension 1"),
        ([S, "v: Item[~f32] = ~s[i32(-1), n]"], "line 2: this takes element -1 of s along dimension 0"),
    ],
)
def test_a_part_that_is_outside_for_certain_is_refused(lines, message):
    assert one_line(refusal(program(*lines))).startswith(message)


@pytest.mark.parametrize(
    "lines",
    [
        [S, row("n")],
        [S, row("n % i32(5)")],
        [S, "for i in range(n):", f"    {row('i')}"],
        [S, "for i in range(i32(4)):", f"    {row('i')}"],
        [S, "for i in range(i32(5)):", f"    {row('i % i32(4)')}"],
        # not every round comes to it
        [S, "for i in range(i32(5)):", "    if i < i32(4):", f"        {row('i')}"],
        [S, "for i in range(i32(5)):", "    if i == n:", "        break", f"    {row('i')}"],
        [S, "for i in range(i32(5)):", "    if i == n:", "        return", f"    {row('i')}"],
        [
            S,
            "k: i32 = n",
            "for i in range(i32(5)):",
            "    while k < n:",
            f"        {row('i')}",
            "        k = k + i32(1)",
        ],
        [S, "for i in range(i32(9)):", "    for j in range(n):", f"        {row('i')}"],
        # nothing comes to it
        [S, "for i in range(i32(0)):", f"    {row('i + i32(4)')}"],
        [S, "k: i32 = i32(1)", "if k < i32(1):", f"    {row('k + i32(3)')}"],
        [S, "k: i32 = i32(1)", "if k < i32(2):", "    pass", "else:", f"    {row('k + i32(3)')}"],
        [S, "k: i32 = i32(1)", "j: i32 = n", "while j < n and k < i32(1):", f"    {row('k + i32(3)')}", "    j = n"],
        # the variable does not stay what it was first
        [S, "k: i32 = i32(4)", "k = n", row("k")],
        [S, "k: i32 = i32(0)", "for i in range(i32(5)):", f"    {row('k')}", "    k = (k + i32(1)) % i32(4)"],
    ],
)
def test_a_part_that_may_lie_inside_is_accepted(lines):
    verify(program(*lines))


def test_numbers_that_come_from_each_other_are_looked_at_once_each():
    """As one expression the last of them would have as many parts as 2 to the power of their number."""
    mixed = [f"    x{i + 1}: i32 = (x{i} >> i32(3)) ^ x{i}" for i in range(40)]
    loop = ["for i in range(i32(5)):", "    x0: i32 = i % i32(4)", *mixed]
    verify(program(S, *loop, f"    {row('x40 % i32(4)')}"))
    error = refusal(program(S, *loop, "    k: i32 = (x40 & i32(0)) + i", f"    {row('k')}"))
    assert one_line(error).startswith("line 45: this takes element 4 of s along dimension 0")
