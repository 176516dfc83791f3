# SPDX-License-Identifier: Apache-2.0
"""A read of shared memory is refused where it cannot find its data on any path, and a wait where it never waits."""

import pytest

from tests.ir.tools.programs import one_line, program, refusal
from tilekit.ir.tools import verify

S = "s: Shared[f32[4, 32]] = shared_tensor()"
G = "g: Global[f32[n, n]] = global_view(ptr=x)"
TILE = "a: f32[4, 32] = register_tensor(init=f32(0.0))"
COPY = "copy_async(s, g, offsets=[n, n], dims=[0, 1])"
LOAD = "y: f32[4, 32] = load_shared(s)"
COMMIT, WAIT_ALL = "copy_async_commit_group()", "copy_async_wait_all()"


def wait(n: int) -> str:
    return f"copy_async_wait_group(n={n})"


def row(name: str, at: str) -> str:
    return f"{name}: Shared[f32[32]] = slice_shared(s, offsets=[{at}, i32(0)], dims=[1])"


def copy(name: str) -> str:
    return f"copy_async({name}, g, offsets=[n, n], dims=[1])"


def load(name: str) -> str:
    return f"y: f32[32] = load_shared({name})"


PART = "part: f32[32] = register_tensor(init=f32(1.0))"
HOLLOW = "is read before anything is stored in it or copied to it; its memory is made here, and holds nothing"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([S, LOAD], f"line 2: s {HOLLOW} (line 1)"),
        ([S, row("r", "n"), load("r")], f"line 3: r {HOLLOW} (line 1)"),
        ([S, "v: Item[f32] = s[n, n]"], f"line 2: s {HOLLOW} (line 1)"),
        (
            [S, PART, row("r", "i32(1)"), row("q", "i32(2)"), "store_shared(r, part)", load("q")],
            f"line 6: q {HOLLOW} (line 1)",
        ),
        ([S, "print_tensor(s, msg='s')"], f"line 2: s {HOLLOW} (line 1)"),
        ([TILE, S, LOAD, "store_shared(s, a)"], f"line 3: s {HOLLOW} (line 2)"),
        ([TILE, S, "if n < i32(3):", f"    {LOAD}", "else:", "    store_shared(s, a)"], f"line 4: s {HOLLOW} (line 2)"),
    ],
)
def test_memory_that_nobody_wrote_before_is_not_read(lines, message):
    assert one_line(refusal(program(*lines))).startswith(message)


@pytest.mark.parametrize(
    "lines",
    [
        [TILE, S, "store_shared(s, a)", LOAD],
        [TILE, S, "if n < i32(3):", "    store_shared(s, a)", LOAD],
        [TILE, S, "for i in range(n):", "    store_shared(s, a)", LOAD],
        # a later round reads what an earlier one stored
        [TILE, S, "for i in range(n):", "    if i > i32(0):", f"        {LOAD}", "    store_shared(s, a)"],
        [TILE, S, row("r", "n"), "part: f32[32] = slice_register(a, offsets=[i32(0), i32(0)], dims=[1])",
         "store_shared(r, part)", LOAD],
        [S, PART, row("r", "n"), row("q", "i32(2)"), "store_shared(r, part)", load("q")],
        [S, PART, row("r", "i32(2)"), row("q", "i32(2)"), "store_shared(r, part)", load("q")],
        [S, PART, row("r", "i32(1)"), "store_shared(r, part)", LOAD],
        # nothing is read
        [S, "if False:", f"    {LOAD}"],
        [TILE, S, "if True:", "    store_shared(s, a)", "else:", f"    {LOAD}"],
        [S, "for i in range(i32(0)):", f"    {LOAD}"],
        [S, "while False:", f"    {LOAD}"],
        # whoever has an address may write
        [S, "p: Item[~f32] = ~s[n, n]", LOAD],
    ],
)  # fmt: skip
def test_memory_that_somebody_may_have_written_is_read(lines):
    verify(program(*lines))


UNDER_WAY = "is read while the copy to it may be under way"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [G, S, COPY, "sync()", LOAD],
            f"line 5: s {UNDER_WAY}: nothing waits for it; the copy starts here (line 3); "
            "call self.copy_async_wait_all(), and then self.sync()",
        ),
        (
            [G, S, COPY, COMMIT, COMMIT, wait(2), COMMIT, LOAD],
            f"line 8: s {UNDER_WAY}: the wait leaves 2 groups under way; the copy starts here (line 3); "
            "the wait is here (line 6); let the wait leave fewer: copy_async_wait_group(0) waits for all",
        ),
        (
            [G, S, COMMIT, COPY, wait(0), LOAD],
            f"line 6: s {UNDER_WAY}: it is in no group, which the wait does not count; the copy starts here (line 4); "
            "the wait is here (line 5); "
            "call self.copy_async_commit_group() after the copies, or wait with self.copy_async_wait_all()",
        ),
        ([G, S, COPY, "v: Item[f32] = s[n, n]"], f"line 4: s {UNDER_WAY}: nothing waits for it"),
        ([G, S, "for i in range(n):", f"    {COPY}", f"    {COMMIT}", f"    {wait(1)}", f"    {LOAD}"],
         f"line 7: s {UNDER_WAY}: the wait leaves a group under way"),
        # on every path
        ([G, S, COPY, "if n < i32(3):", f"    {COMMIT}", LOAD], f"line 6: s {UNDER_WAY}: nothing waits for it"),
        ([G, S, "for i in range(i32(2)):", f"    {COPY}", LOAD], f"line 5: s {UNDER_WAY}: nothing waits for it"),
        ([G, S, COPY, "for i in range(n):", f"    {COMMIT}", LOAD], f"line 6: s {UNDER_WAY}: nothing waits for it"),
        ([G, S, "while True:", f"    {COPY}", "    break", LOAD], f"line 6: s {UNDER_WAY}: nothing waits for it"),
        # of parts
        ([G, S, row("r", "n"), copy("r"), load("r")], f"line 5: r {UNDER_WAY}"),
        ([G, S, row("r", "n"), copy("r"), LOAD], f"line 5: s {UNDER_WAY}"),
        ([G, S, row("r", "i32(2)"), row("q", "i32(2)"), copy("r"), load("q")], f"line 6: q {UNDER_WAY}"),
        ([G, S, "t: Shared[f32[32, 4]] = permute_shared(s, dims=[1, 0])",
          "q: Shared[f32[32]] = slice_shared(t, offsets=[i32(0), i32(1)], dims=[0])",
          row("r", "i32(1)"), copy("r"), load("q")], f"line 7: q {UNDER_WAY}"),
        ([G, S, COPY, "t: Shared[f32[128]] = reshape_shared(s)", "y: f32[128] = load_shared(t)"],
         f"line 5: t {UNDER_WAY}"),
        ([G, S, COPY, "t: Shared[f32[16, 8]] = reshape_shared(s)",
          "u: Shared[f32[8, 16]] = permute_shared(t, dims=[1, 0])", "y: f32[8, 16] = load_shared(u)"],
         f"line 6: u {UNDER_WAY}"),
    ],
)  # fmt: skip
def test_a_copy_that_nobody_waited_for_is_not_read(lines, message):
    assert one_line(refusal(program(*lines))).startswith(message)


@pytest.mark.parametrize(
    "lines",
    [
        [G, S, COPY, WAIT_ALL, LOAD],
        [G, S, COPY, COMMIT, wait(0), LOAD],
        [G, S, COPY, COMMIT, COMMIT, wait(1), LOAD],
        [G, S, COPY, "if n < i32(3):", f"    {WAIT_ALL}", LOAD],
        [G, S, "if n < i32(3):", f"    {COPY}", "sync()", LOAD],
        [TILE, G, S, "store_shared(s, a)", "for i in range(n):", f"    {LOAD}", f"    {COPY}", f"    {WAIT_ALL}"],
        [G, S, COPY, "for i in range(i32(1)):", f"    {WAIT_ALL}", LOAD],
        # a wait of a later round, and groups that other rounds commit
        [G, S, COPY, COMMIT, "for i in range(n):", f"    {COMMIT}", f"    {wait(1)}", f"    {LOAD}"],
        # other parts
        [G, S, row("r", "i32(1)"), row("q", "i32(2)"), copy("r"), copy("q"), COMMIT, COMMIT, wait(1), load("q")],
        [TILE, G, S, "store_shared(s, a)", row("r", "i32(1)"), row("q", "i32(2)"), copy("r"), load("q")],
        [TILE, G, S, "store_shared(s, a)", row("r", "n"), row("q", "n + i32(1)"), copy("r"), load("q")],
        [TILE, G, S, "store_shared(s, a)", row("r", "n"), copy("r"),
         "r = slice_shared(s, offsets=[n - i32(1), i32(0)], dims=[1])", load("r")],
        [TILE, G, S, COPY, S.replace("s:", "u:"), "store_shared(u, a)", LOAD.replace("(s)", "(u)")],
    ],
)  # fmt: skip
def test_a_copy_that_somebody_may_have_waited_for_is_read(lines):
    verify(program(*lines))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [G, S, COPY, wait(0)],
            "line 4: copy_async_wait_group(0) never waits: the kernel commits no group; "
            "this copy is not waited for (line 3); "
            "call self.copy_async_commit_group() after the copies, or wait with self.copy_async_wait_all()",
        ),
        (
            [G, S, COPY, COMMIT, wait(1), "if n < i32(3):", f"    {COPY}"],
            "line 5: copy_async_wait_group(1) never waits: the kernel commits only 1 group; "
            "this copy is not waited for (line 3); copy_async_wait_group(0) waits for all of them",
        ),
        (
            [
                G,
                S,
                "for i in range(i32(2)):",
                f"    {COPY}",
                f"    {COMMIT}",
                wait(3),
                "if n < i32(1):",
                f"    {COMMIT}",
            ],
            "line 6: copy_async_wait_group(3) never waits: the kernel commits only 3 groups",
        ),
    ],
)
def test_a_wait_that_never_waits_is_refused(lines, message):
    assert one_line(refusal(program(*lines))).startswith(message)


@pytest.mark.parametrize(
    "lines",
    [
        [wait(0)],
        [COMMIT, wait(3)],
        [G, S, "for i in range(i32(0)):", f"    {COPY}", f"    {COMMIT}", f"    {wait(0)}"],
        [G, S, COPY, WAIT_ALL, wait(0)],
        # others wait
        [G, S, COPY, COMMIT, wait(1), WAIT_ALL, LOAD],
        [G, S, COPY, COMMIT, wait(1), wait(0), LOAD],
        [G, S, COPY, COMMIT, wait(1), COMMIT],
        [G, S, COPY, "for i in range(n):", f"    {COMMIT}", wait(8)],
        [G, S, COPY, "k: i32 = n", "while k < i32(0):", f"    {COMMIT}", "    k = k + i32(1)", wait(8)],
    ],
)
def test_a_wait_that_may_wait_or_has_nothing_to_wait_for_is_accepted(lines):
    verify(program(*lines))
