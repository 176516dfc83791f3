# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from tests.lang.cells import Inputs, agrees, by_kernel, printed
from tilekit.diag import LanguageError

# ------------------------------------------------------------------------------------------------ tiles, straight on


def test_a_second_name_of_a_tile_keeps_its_value():
    agrees("y = x; x = x + 1; self.keep(0, x); self.keep(1, y)")


def test_the_first_name_of_a_tile_keeps_its_value():
    agrees("y = x; y = y + 1; self.keep(0, x); self.keep(1, y)")


def test_several_targets_are_several_tiles():
    agrees("a = b = c = x * 2; b += 1; c = c - 1; self.keep(0, a); self.keep(1, b); self.keep(2, c)")


def test_straight_line_code_copies_no_tile():
    body = "x = x + 1; x = x * y; a = x - 1; x = a; a, x = x, a; self.keep(0, x)"
    agrees(body)
    # `x = a` is a second name; the swap needs none
    assert printed(body).count("assign(") == 1


def test_a_swap_exchanges():
    agrees("x, y = y, x; self.keep(0, x); self.keep(1, y)")


def test_a_rotation_rotates():
    agrees("a, b, c = x, y, x + y; a, b, c = c, a, b; self.keep(0, a); self.keep(1, b); self.keep(2, c)")


def test_one_value_for_two_targets_is_two_tiles():
    agrees("a, b = y, y; a += 1; self.keep(0, a); self.keep(1, b); self.keep(2, y)")


def test_update_writes_the_tile_in_place():
    body = "x += y; x -= 3; x *= 2; self.keep(0, x)"
    agrees(body)
    lines = printed(body).splitlines()
    assert "    x = add(x, y)" in lines
    assert [line.split(" = ")[0].strip() for line in lines if "mul(" in line] == ["x"]


def test_update_leaves_a_second_name_alone():
    agrees("z = x; x += 1; self.keep(0, x); self.keep(1, z)")


def test_update_leaves_a_container_alone():
    agrees("t = (x, y); x += 1; t[1]; self.keep(0, x); self.keep(1, t[0]); self.keep(2, t[1])")
    agrees("t = [x]; t[0] += 1; self.keep(0, x); self.keep(1, t[0])")
    agrees("t = {'a': [x]}; x *= 2; self.keep(0, x); self.keep(1, t['a'][0])")


def test_floor_division_and_modulo_of_tiles_are_those_of_python():
    agrees("y = y | 1; x //= y; self.keep(0, x)")
    agrees("y = y | 1; x %= y; self.keep(0, x)")


# ------------------------------------------------------------------------------------------------------ tiles in loops


def test_an_accumulator_is_carried():
    agrees(
        """
        for i in range(n):
            x = x + y * i
        self.keep(0, x)
        """
    )


@pytest.mark.parametrize("update", ["x = x + y", "x += y", "x = self.maximum(x, y)"])
def test_an_accumulator_loop_prints_with_no_copy(update):
    text = printed(f"for i in range(n): {update}\nself.keep(0, x)")
    assert "assign(" not in text
    assert text.count("x = ") == 1


def test_a_swap_in_a_loop_exchanges_at_each_turn():
    agrees(
        """
        for i in range(n):
            x, y = y, x
        self.keep(0, x); self.keep(1, y)
        """
    )


def test_fibonacci_of_tiles():
    agrees(
        """
        for i in range(n):
            x, y = y, x + y
        self.keep(0, x); self.keep(1, y)
        """
    )


def test_a_name_remembers_the_value_of_the_last_turn():
    agrees(
        """
        before = x
        for i in range(n):
            before = x
            x = x + y
        self.keep(0, before); self.keep(1, x)
        """
    )


def test_a_container_keeps_the_tile_that_a_loop_rebinds():
    agrees(
        """
        kept = (x, [y])
        for i in range(n):
            x = x + y
            y += 1
        self.keep(0, kept[0]); self.keep(1, kept[1][0]); self.keep(2, x); self.keep(3, y)
        """
    )


def test_a_container_made_in_a_loop_keeps_the_present_tile():
    agrees(
        """
        for i in range(n):
            pair = (x, y)
            x = x * 3 - y
            y = pair[0] + pair[1]
        self.keep(0, x); self.keep(1, y)
        """
    )


def test_several_targets_in_a_loop():
    agrees(
        """
        a = y
        for i in range(n):
            a = x = x + a
            a += 1
        self.keep(0, a); self.keep(1, x)
        """
    )


def test_a_tile_that_a_turn_makes_lives_until_the_turn_ends():
    agrees(
        """
        for i in range(n):
            t = x * 2
            x = t + 1
            t = t + x
            y = y + t
        self.keep(0, x); self.keep(1, y)
        """
    )


def test_a_temporary_name_may_have_another_shape_in_a_loop():
    agrees(
        """
        t = self.register_tensor(dtype=int32, shape=[4, 2], init=1)
        s = 0
        for i in range(n):
            t = x + i
            x = t * 2
            for t in [1, 2]:
                s = s + t
        self.keep(0, x); self.keep(1, s)
        """
    )


def test_nested_loops_carry_names():
    agrees(
        """
        a, b = x, y
        for i in range(n):
            b = a + i
            for j in range(i):
                a = a + b * j
                b += 1
            a = a - b
        self.keep(0, a); self.keep(1, b)
        """
    )


def test_a_loop_after_a_loop():
    agrees(
        """
        a = x
        for i in range(n):
            a = a + 1
        b = a
        for i in range(n):
            a = a * 2 - b
        self.keep(0, a); self.keep(1, b)
        """
    )


def test_a_tile_that_a_loop_rebinds_and_updates():
    agrees(
        """
        for i in range(n):
            x += 1
            x = x * y
            x -= i
        self.keep(0, x)
        """
    )


def test_a_tile_that_becomes_another_form_of_itself():
    agrees(
        """
        square = self.register_tensor(dtype=int32, shape=[8, 8], init=lambda i, j: i * 9 + j * j)
        for i in range(n):
            square = square.transpose() + x
            square = square.transpose()
        self.keep(0, square[3]); self.keep(1, square[:, 2])
        """
    )
    inside = printed("a = x.unsqueeze(0)\nfor i in range(n):\n    a = self.reshape(a, [1, 8])\nself.keep(0, a[0])")
    assert "a = reshape(a)" not in inside, "it would read what it writes"


def test_the_condition_of_a_branch_is_read_at_the_next_turn_of_an_unrolled_loop():
    agrees(
        """
        s = n
        for k in [1, 2, 3]:
            if s > 2:
                s = k
            for i in range(s):
                s = k - 1
            x = x + 1
        self.keep(0, x)
        """
    )


# --------------------------------------------------------------------------------------------------- tiles in branches


@pytest.mark.parametrize("m", [-1, 1])
def test_rebinding_in_one_branch(m):
    agrees("z = x\nif m > 0:\n    x = x + y\nself.keep(0, x); self.keep(1, z)", m=m)


@pytest.mark.parametrize("m", [-1, 1])
def test_rebinding_in_both_branches(m):
    agrees("if m > 0:\n    x = x + y\nelse:\n    x = x * 2\nself.keep(0, x)", m=m)


@pytest.mark.parametrize("m", [-1, 0, 1])
def test_first_bound_in_every_branch(m):
    agrees(
        """
        if m > 0:
            z = x + y
            k = 1
        elif m < 0:
            z = x
            k = n * 2
        else:
            z, k = y, 7
        z = z + k
        self.keep(0, z); self.keep(1, x); self.keep(2, y); self.keep(3, k)
        """,
        m=m,
    )


@pytest.mark.parametrize("m", [-1, 1])
def test_rebound_in_both_branches_to_another_type(m):
    agrees(
        """
        z = 5
        if m > 0:
            z = x + z
        else:
            z = y
        self.keep(0, z)
        z = u
        if m > 0:
            z = x
        else:
            z = y
        self.keep(1, z)
        """,
        m=m,
    )


@pytest.mark.parametrize("m", [-1, 1])
def test_the_first_value_of_a_name_may_be_none(m):
    agrees(
        """
        z = None
        if m > 0:
            z = x
        else:
            z = y
        if z is None:
            z = x * 100
        self.keep(0, z)
        """,
        m=m,
    )


def test_a_branch_in_a_loop():
    agrees(
        """
        last = x
        for i in range(n):
            if i % 2 == 0:
                last = x
                x = x + y
            else:
                y = last - y
        self.keep(0, x); self.keep(1, y); self.keep(2, last)
        """
    )


@pytest.mark.parametrize("m", [-1, 2])
def test_a_branch_that_leaves_the_loop_binds_nothing_after_it(m):
    agrees(
        """
        for i in range(n):
            if i == m:
                z = x
                break
            else:
                z = y
            x = x + z
        self.keep(0, x)
        """,
        m=m,
    )


@pytest.mark.parametrize("m", [-1, 1])
def test_update_in_a_branch(m):
    agrees(
        """
        z = x
        if m > 0:
            x += y
            z -= 1
        self.keep(0, x); self.keep(1, z)
        """,
        m=m,
    )


# ---------------------------------------------------------------------------------------------------------- scalars


def test_scalars_have_values():
    agrees("a = n; n = n + 1; b = n; n += 5; self.keep(0, a); self.keep(1, b); self.keep(2, n)")


def test_scalars_are_carried():
    agrees(
        """
        a, b = n, m
        for i in range(5):
            c = a
            a, b = b, a + b
            if a > b:
                a = c
        self.keep(0, a); self.keep(1, b); self.keep(2, n); self.keep(3, m)
        """
    )


def test_host_numbers_become_variables_where_a_loop_changes_them():
    agrees(
        """
        count, scale, odd = 0, 1.5, False
        for i in range(n):
            count += 2
            scale = scale * 2
            odd = not odd
        self.keep(0, count); self.keep(1, scale); self.keep(2, odd)
        """
    )


def test_a_host_number_that_a_loop_leaves_alone_stays_one():
    agrees(
        """
        rows = 8
        for i in range(n):
            x = x + self.register_tensor(dtype=int32, shape=[rows], init=rows)
        self.keep(0, x)
        """
    )


def test_an_expression_keeps_the_value_it_was_made_with():
    agrees(
        """
        i = n
        twice = i * 2
        pair = [i, i + 1]
        for k in range(3):
            later = i + 100
            both = (i, later)
            i = i + both[1] - pair[0]
        self.keep(0, twice); self.keep(1, pair[0]); self.keep(2, pair[1]); self.keep(3, i)
        """
    )


def test_names_in_a_comprehension_are_its_own():
    agrees(
        """
        i = 10
        for k in range(n):
            parts = [i + j for i in (1, 2) for j in (i, k)]
            i = i + parts[0] + parts[1] + parts[2] + parts[3]
        self.keep(0, i)
        """
    )


def test_a_comprehension_keeps_the_present_values():
    agrees(
        """
        i = n
        for k in range(3):
            parts = [i * j for j in (1, 2)]
            i = i + 1
            x = x + parts[0] + parts[1]
        self.keep(0, i); self.keep(1, x)
        """
    )


def test_a_loop_counter_may_be_rebound():
    agrees(
        """
        s = 0
        for i in range(n):
            s = s + i
            i = i * 2
            if i > 2:
                i = i + 1
            s = s + i
        self.keep(0, s)
        """
    )


def test_a_counter_that_an_outer_loop_carries_keeps_its_last_value():
    agrees(
        """
        i, s = 100, 0
        for k in range(3):
            s = s + i
            for i in range(k, n):
                s = s + i
        self.keep(0, s); self.keep(1, i)
        """
    )


def test_limits_of_a_loop_are_computed_once():
    agrees(
        """
        low, high, s = 0, n, 0
        for k in range(2):
            for i in range(low, high):
                low = low + 1
                high = high + 3
                s = s + i
        self.keep(0, s); self.keep(1, low); self.keep(2, high)
        """
    )


def test_a_lambda_reads_names_wherever_it_is_called():
    agrees(
        """
        k, s = 1, 0
        scaled = lambda a: a * k + s
        for i in range(n):
            k = i
            if i > 1:
                s = 3
            else:
                s = 5
        self.keep(0, scaled(10))
        """
    )


def test_a_name_that_no_one_reads_later_has_no_storage():
    text = printed("if n > 2:\n    z = x\n    k = m\nelse:\n    z = y\n    k = n\nself.keep(0, z)")
    assert "    z: i32[8] = register_tensor()" in text and "    k: i32\n" not in text


def test_a_range_keeps_the_limits_it_was_made_with():
    agrees(
        """
        s, high = 0, n
        for k in range(2):
            turns = range(high)
            high = high + 2
            for i in turns:
                s = s + i
        self.keep(0, s)
        """
    )


def test_a_walrus_in_an_expression_does_not_overtake():
    agrees(
        """
        i = n
        for k in range(3):
            i = i + (i := i * 2) + i
            x = x * 2 + (x := x + i) - x
        self.keep(0, i); self.keep(1, x)
        """
    )


def test_an_annotation_fixes_the_type_of_a_variable():
    text = printed("k: int64 = 0\nfor i in range(n):\n    k = k + 1\nself.keep(0, k)")
    assert "k: i64 = i64(0)" in text and "k = k + i64(1)" in text
    text = printed("k: int64 = 7\nk = 3\nfor i in range(n):\n    k = k * 2\nself.keep(0, k)")
    assert "k: i64 = i64(3)" in text and "k = k * i64(2)" in text


# ------------------------------------------------------------------------------------------------- helpers and names

HELPERS = """
def rebind_first(self, a, b):
    a = a + 1
    return a * 1000 + b

def rebind_in_loop(self, a, b, n):
    for i in range(n):
        a = a + 1
    return a * 1000 + b

def rebind_in_branch(self, a, b, n):
    if n > 2:
        a = a + 1
    return a * 1000 + b

def ident(self, a):
    return a

def swapped(self, a, b):
    return b, a

def count_down(self, n):
    n = n - 1
    n -= 1
    return n
"""


@pytest.mark.parametrize("op", ["<<", ">>", "&", "|", "^"])
def test_updates_of_every_kind_are_in_place(op):
    body = f"z = x; x {op}= 3; self.keep(0, x); self.keep(1, z)"
    agrees(body)
    assert "    x = binary(" in printed(body)


@pytest.mark.parametrize("helper", ["rebind_first(x, x)", "rebind_in_loop(x, x, n)", "rebind_in_branch(x, x, n)"])
def test_one_tile_as_two_arguments(helper):
    agrees(f"r = self.{helper}; self.keep(0, r); self.keep(1, x)", HELPERS)


def test_a_helper_that_rebinds_its_parameter_leaves_the_caller_alone():
    agrees("a = self.rebind_in_loop(x, y, n); b = self.count_down(n); self.keep(0, x); self.keep(1, n)", HELPERS)


def test_what_a_helper_returns_is_another_name():
    agrees("z = self.ident(x); z += 1; self.keep(0, x); self.keep(1, z)", HELPERS)
    agrees("x, y = self.swapped(x, y); self.keep(0, x); self.keep(1, y)", HELPERS)


def test_what_a_helper_returns_in_a_loop():
    agrees(
        """
        for i in range(n):
            x, y = self.swapped(x, y)
            x = self.ident(x) + 1
            y = self.ident(x)
        self.keep(0, x); self.keep(1, y)
        """,
        HELPERS,
    )


def test_a_helper_writes_its_callers_tile_in_place():
    methods = """
    def bump(self, tile, n):
        tile += 1
        for i in range(n):
            tile += 2

    def fill(self, tile):
        self.assign(tile, tile * 3)
    """
    inputs = Inputs.fresh()
    found = by_kernel(
        "z = x; self.bump(x, n); self.keep(0, x); self.keep(1, z); self.fill(y); self.keep(2, y)", inputs, methods
    )
    np.testing.assert_array_equal(found[0], inputs.ints[0] + 1 + 2 * inputs.n)
    np.testing.assert_array_equal(found[1], inputs.ints[0])
    np.testing.assert_array_equal(found[2], inputs.ints[1] * 3)


def test_a_tile_on_self_is_another_name():
    agrees("self.kept = x; x += 1; self.keep(0, self.kept); self.keep(1, x)")
    agrees("self.kept = x; z = self.kept; self.kept += 1; self.keep(0, z); self.keep(1, self.kept); self.keep(2, x)")


# ------------------------------------------------------------------------- what cannot be said is an error, never wrong


@pytest.mark.parametrize(
    "body",
    [
        "tiles = [x]\nfor i in range(n): tiles[0] = tiles[0] + 1",
        "tiles = [x]\nfor i in range(n): tiles.append(x)",
        "seen = {}\nif n > 2: seen['x'] = 1",
        "seen = {1}\nif n > 2: seen.add(2)",
        "sums = [0]\nfor i in range(n): sums += [i]",
        "a = ([],)\nwhile n > 0:\n    a[0].append(n)\n    n -= 1",
        "for i in range(n): self.total = x",
        "if n > 1: self.attrs.warps = 2",
        "seen = []\nk = 1 if n > 1 and seen.append(1) else 2",
    ],
)
def test_python_objects_cannot_change_at_run_time(body):
    with pytest.raises(LanguageError) as caught:
        printed(body)
    assert caught.value.code == "TK114"


def test_a_list_made_in_a_loop_may_change_in_the_same_turn():
    agrees(
        """
        for i in range(n):
            tiles = []
            tiles.append(x + i)
            tiles[0] += 1
            x = tiles[0]
        self.keep(0, x)
        """
    )


@pytest.mark.parametrize(
    "body, code",
    [
        ("if n > 2: z = x\nself.keep(0, z)", "TK105"),
        ("for i in range(n): z = x\nself.keep(0, z)", "TK105"),
        ("for i in range(n): pass\nself.keep(0, i)", "TK105"),
        ("self.keep(0, z); z = x", "TK105"),
        ("for i in range(n):\n    self.keep(0, z)\n    z = x", "TK105"),
        ("if n > 2: x = x.to(float32)\nself.keep(0, x)", "TK114"),
        ("k = 0\nfor i in range(n): k = k + f\nself.keep(0, k)", "TK114"),
        ("k = 0\nfor i in range(n): k = 2.5\nself.keep(0, k)", "TK114"),
        ("k: int = 0\nfor i in range(n): k = k + 1\nself.keep(0, k)", "TK114"),
        ("if n > 2: z = x\nelse: z = 3\nself.keep(0, z)", "TK114"),
        ("if n > 2: z = n\nelse: z = f\nself.keep(0, z)", "TK114"),
        ("if n > 2: z = 'a'\nelse: z = 'b'\nself.keep(0, z)", "TK105"),
        ("mode = 'a'\nif n > 2: mode = 'b'\nself.keep(0, 1 if mode == 'a' else 2)", "TK114"),
    ],
)
def test_a_name_without_one_type_and_value_is_an_error(body, code):
    with pytest.raises(LanguageError) as caught:
        printed(body)
    assert caught.value.code == code, caught.value.to_text()
