# SPDX-License-Identifier: Apache-2.0
"""Every construct that kernels may use means what it means in Python."""

from collections import namedtuple

import numpy as np
import pytest
import torch

from tests.lang.cells import Inputs, agrees, by_kernel, cell, printed
from tilekit.diag import LanguageError
from tilekit.dtypes import void_p

# --------------------------------------------------------------------------------------------------------------- loops


@pytest.mark.parametrize(
    "limits",
    [
        "n", "5", "0", "2, n", "n, 2", "-3, n", "0, n, 2", "1, n, 3", "n, 0, -1", "n, -1, -2", "5, n, -3",
        "n, n * 2, 2", "-n, n", "m, n", "m, m + 7, 3", "10, 0, -3", "0, 10, -1", "n, 20, 4 + 3", "n * 1, n + 1",
    ],
)  # fmt: skip
@pytest.mark.parametrize("loop", ["range", "self.range"])
def test_ranges(limits, loop):
    agrees(
        f"""
        count, total = 0, 0
        for i in {loop}({limits}):
            count += 1
            total = total * 3 + i
        self.keep(0, count); self.keep(1, total)
        """
    )


@pytest.mark.parametrize("unroll", ["None", '"all"', "4"])
def test_an_unroll_hint_changes_no_result(unroll):
    body = f"for i in self.range(0, 12, 2, unroll={unroll}): x = x + i\nself.keep(0, x)"
    agrees(body)
    assert ("unroll" in printed(body)) is (unroll != "None")


@pytest.mark.parametrize("dtype", ["uint32", "int64"])
def test_ranges_of_other_types(dtype):
    agrees(
        f"""
        total, low, high = {dtype}(0), {dtype}(n + 1), {dtype}(4)
        for i in range(low, high):
            total = total + i
        for i in range(high, low, -2):
            total = total * 5 + i
        self.keep(0, total)
        """
    )


@pytest.mark.parametrize("n", [-3, -1, 1, 2, 7])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("limits", ["0, 9", "9, 0", "m, 9", "9, m - 5", "4, 4", "m, m + 1"])
def test_ranges_whose_step_is_known_only_at_run_time(limits, dtype, n):
    agrees(
        f"""
        count, total = 0, {dtype}(0)
        step = {dtype}(n)
        for i in range({limits}, step):
            count += 1
            total = total * 2 + i
            step = 5  # the range has its own
        self.keep(0, count); self.keep(1, total)
        """,
        n=n,
    )


def test_a_range_of_unsigned_numbers_may_count_down():
    agrees(
        """
        count, total = 0, int64(0)
        for i in range(uint32(9), uint32(2), n):
            count += 1
            total = total * 3 + i
        self.keep(0, count); self.keep(1, total)
        """,
        n=-3,
    )


def test_a_persistent_loop_visits_every_tile_once():
    source = """
    class Kernel(tilus.Script):
        def __call__(self, n: int32, out: ~int32):
            self.attrs.blocks = [3]
            self.attrs.warps = 1
            view = self.global_view(out, dtype=int32, shape=[n])
            for tile in range(self.blockIdx.x, n, self.gridDim.x):
                seen = self.load_global(view, offsets=[tile], shape=[1])
                self.store_global(view, seen + tile + 1, offsets=[tile])
    """
    handle = cell(source)["Kernel"]()
    for n in (0, 1, 3, 8):
        out = torch.zeros(n, dtype=torch.int32)
        handle(n, out)
        assert out.tolist() == list(range(1, n + 1))


def test_loops_over_python_values_are_unrolled():
    agrees(
        """
        total = 0
        for name, weight in {"a": 3, "b": 5}.items():
            for k, (tile, shift) in enumerate([(x, 1), (y, 2)]):
                x = x + tile * weight + shift * k
                total = total + n * len(name)
        else:
            total = total + 1000
        self.keep(0, x); self.keep(1, total)
        """
    )


def test_a_compile_time_break_leaves_an_unrolled_loop():
    agrees(
        """
        for k in [1, 2, 3, 4]:
            if k == 3:
                break
            x = x + k
        else:
            x = x * 0
        for k in (1, 2, 3):
            if k % 2:
                continue
            x = x * k
        else:
            x = x + 1
        self.keep(0, x)
        """
    )


def test_break_and_continue():
    agrees(
        """
        total = 0
        for i in range(12):
            if i % 3 == 1:
                continue
            for j in range(i):
                if j > n:
                    break
                if (i + j) % 2 == 0:
                    if j % 5 == 3:
                        total += 100
                        continue
                    total += 1
                else:
                    total += 10
                total = total + j
            if total > 5000:
                break
        self.keep(0, total)
        """
    )


def test_continue_in_an_unrolled_loop_may_depend_on_run_time_values():
    agrees(
        """
        for k in [1, 2, 3]:
            if n > k:
                continue
            x = x * k + 1
        self.keep(0, x)
        """
    )


def test_while():
    agrees(
        """
        turns, k = 0, n * 7
        while k > 0:
            k = k - 3
            turns += 1
        while True:
            turns += 1
            if turns % 5 == 0:
                break
        while turns > 3 and not turns == 6:
            turns = turns - 1
            if turns == 8:
                continue
            k += turns
        while False:
            k = 1000
        while (k := k - 2) > n:
            turns += k
        self.keep(0, turns); self.keep(1, k)
        """
    )


def test_else_of_loops():
    agrees(
        """
        k = 0
        for i in range(n):
            k += i
        else:
            k += 100
        while k > 90:
            k -= 7
        else:
            k += 1000
        self.keep(0, k)
        """
    )


# ---------------------------------------------------------------------------------------------------------- conditions


@pytest.mark.parametrize(
    "condition",
    [
        "n > 3", "n < m", "n >= m", "n == 3", "n != 3", "not n", "n", "m", "0 < n < 4", "n < 3 < m",
        "m < n <= 4 != m", "n > 2 and m > 0", "n > 2 or m > 0", "not (n > 2 and m > 0)", "n and m", "n or m",
        "n > 2 and True", "n > 2 or False", "False and n", "True or n", "f > 1.0", "n and m % n == 1",
        "n == 0 or m // n > 0", "(n > 3) == (m > 0)", "(n > 3) != (m > 0)", "bool(n)", "(n > 3 if m > 0 else n < 2)",
        "1 < 2 < n", "(n > 3) & (m > 0)", "(n > 3) | (m > 0)", "(n > 3) ^ (m > 0)",
    ],
)  # fmt: skip
def test_conditions(condition):
    for n in (0, 2, 4):
        agrees(
            f"""
            k = 1
            if {condition}:
                k = 2
            elif n == 2:
                k = 3
            else:
                k = 4
            j = 10 if {condition} else 20
            self.keep(0, k); self.keep(1, j)
            """,
            n=n,
        )


@pytest.mark.parametrize(
    "expression",
    ["n or 7", "n and 7", "n or m or 9", "n and m and 9", "0 or n", "5 and n", "(n > 2) + (m > 0)", "-(n > 2) + 1"],
)
def test_and_and_or_give_one_of_their_operands(expression):
    for n in (0, 3):
        agrees(f"k = {expression}; self.keep(0, k)", n=n)


def test_a_condition_that_is_known_now_leaves_no_trace():
    text = printed(
        """
        if self.flag and self.four == 4 and not self.four > 5:
            self.keep(0, x)
        elif n > 3:
            self.nonsense(x)
        if self.four in (1, 2, 3) or self.four is None:
            self.more_nonsense
        """
    )
    assert "if " not in text


def test_nested_ifs():
    agrees(
        """
        if n > 2:
            if m > 0:
                k = 1
            elif m < -2:
                k = 2
            else:
                k = 3
                if n > 4:
                    k += 10
        elif n > 1:
            k = 4
        else:
            k = 5
        self.keep(0, k)
        """
    )


def test_what_is_not_needed_is_not_computed():
    """The right side of `and`, and the branch not taken, have effects only if they are reached."""
    methods = """
    def noted(self, row, value):
        self.keep(row, value)
        return value > 2
    """
    agrees(
        """
        k = 0
        if n > 1 and self.noted(1, n):
            k = 1
        if n > 1 or self.noted(2, n):
            k += 2
        j = self.noted(3, n) if n > 3 else False
        i = 0 < n < (4 if self.noted(4, m) else 5) < 6
        self.keep(0, k); self.keep(5, j); self.keep(6, i)
        """,
        methods,
    )


def test_choices_between_tiles():
    agrees("z = x if n > 2 else y; z += 1; self.keep(0, z); self.keep(1, x); self.keep(2, y)")
    agrees("for i in range(n): x = x + y if i % 2 else y - x\nself.keep(0, x)")


def test_a_return_ends_the_kernel():
    for n in (1, 5):
        agrees("self.keep(0, x)\nif n > 3:\n    return\nself.keep(1, y)", n=n)
        agrees(
            """
            for i in range(10):
                self.keep(0, i)
                if i == n:
                    self.keep(1, y)
                    return
            self.keep(2, x)
            """,
            n=n,
        )
    agrees("self.keep(0, x)\nreturn\nself.keep(1, y)")


# ----------------------------------------------------------------------------------------------------------- operators


@pytest.mark.parametrize(
    "expression",
    [
        "n + m", "n - m", "n * m", "m // 3", "m // -3", "m % 3", "m % -3", "(m - 7) // 4", "(m - 7) % 4", "-m", "+m",
        "~m", "m << 3", "m >> 1", "(m - 20) >> 2", "1 << n", "m & 12", "m | 3", "m ^ n", "n & m | 1 ^ n", "2 - n",
        "7 // (n + 1)", "-7 // (n + 1)", "-7 % (n + 1)", "f * n", "f / 3", "n / f", "1 / f", "(n + 0.5) * f", "f - m",
        "abs(m)", "min(n, m)", "max(n, m)", "max(n, m, 3)", "min(n, 2, m)", "max(f, 1.25)", "max(n, f)", "int(f * 3)",
        "float(n) / 2", "int(n > m)", "cdiv(n, 4)", "cdiv(n + m * m, n + 1)", "sum([n, m, 3])", "n == m", "not n",
    ],
)  # fmt: skip
def test_scalar_operators(expression):
    agrees(f"self.keep(0, {expression}); self.keep(1, f * 0 + ({expression}))")


@pytest.mark.parametrize(
    "expression",
    [
        "x + y", "x - y", "x * y", "x // 7", "x % 7", "x // -7", "x % -7", "x + n", "n - x", "3 * x", "-x", "x & y",
        "x | 5", "x ^ y", "x // (y | 1)", "x % (y | 1)", "100 // (y | 1)", "u / v", "1.5 / v", "u / n if n else u",
        "u * f", "u * 2", "2.5 - u", "-u", "self.maximum(x, y)", "self.where(x < y, x, 0)",
        "self.where(x >= 3, y, x)", "self.exp(u)", "self.where(u == v, 1.0, u)",
        "self.where((x > y) & (x > 0), x, y)", "self.where((x > y) | (x > 0), x, n)", "x.to(float32) / 3",
        "float32(x) * f", "self.square(x)", "self.where(x != y, x, y)", "self.where(3 <= x, x, y)", "~x", "x << 2",
        "y >> 1", "x >> n % 3", "1 << (x & 7)", "self.where(~(x > y), x, y)",
    ],
)  # fmt: skip
def test_tile_operators(expression):
    agrees(f"self.keep(0, {expression})")


@pytest.mark.parametrize("op", ["+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"])
def test_augmented_assignment_of_scalars(op):
    agrees(f"k = m * 3; k {op}= 5; self.keep(0, k); j = 7; j {op}= 2; self.keep(1, j); n {op}= 3; self.keep(2, n)")
    agrees(f"k = m * 3\nfor i in range(1, 4): k {op}= i\nself.keep(0, k)", n=3)


@pytest.mark.parametrize(
    "function",
    [
        "exp",
        "log",
        "log2",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "asinh",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "ceil",
        "floor",
        "trunc",
    ],
)
def test_math_functions(function):
    agrees(f"self.keep(0, math.{function}(f)); self.keep(1, math.{function}(n + 1)); self.keep(2, math.{function}(2))")


@pytest.mark.parametrize("function", ["asin", "acos", "atanh", "acosh"])
def test_math_functions_of_part_of_the_line(function):
    argument = "f + 1" if function == "acosh" else "f / 4"
    agrees(f"self.keep(0, math.{function}({argument}))")


def test_tests_for_nan_and_infinity():
    agrees("self.keep(0, math.isnan(f)); self.keep(1, math.isinf(f)); self.keep(2, math.isnan(f * float('nan')))")


# -------------------------------------------------------------------------------------------- assignment and containers


def test_targets():
    agrees(
        """
        (a, b), [c, *rest] = (n, 2), [3, 4, m]
        first, *middle, last = [1, n, m, 5]
        *front, end = (x, y)
        q = r = n + 1
        table = {"k": [1, 2]}
        table["k"][1], table["new"] = 10, n
        _, _, three = 1, 2, 3
        self.keep(0, a + b * 10 + c * 100 + rest[1]); self.keep(1, first + middle[0] + middle[1] * last)
        self.keep(2, front[0] - end); self.keep(3, q * r + table["k"][1] + table["new"] + three)
        """
    )


def test_annotated_assignment():
    agrees(
        """
        k: int32 = 0
        w: float32 = n
        size: int = 4
        tile: RegisterTensor = x
        for i in range(n):
            k = k + size
            w = w + 0.5
            tile = tile + 1
        self.keep(0, k); self.keep(1, w); self.keep(2, tile)
        self.keep(3, self.register_tensor(dtype=int32, shape=[8], init=size))
        """
    )


def test_containers():
    agrees(
        """
        numbers = [1, 2, n] + [4] * 2
        numbers.append(m - 1)
        numbers.append(m + 1)
        numbers += [7]
        numbers[0] = 11
        pair = (x, *[y, n])
        names = {"a": 1, **{"b": m}}
        found = {k: v * 2 for k, v in names.items() if k != "c"}
        unique = {1, 2, 2, 3}
        self.keep(0, sum(numbers)); self.keep(1, pair[0] + pair[1] * pair[-1]); self.keep(2, found["b"] + found["a"])
        self.keep(3, len(numbers) * 10 + len(unique)); self.keep(4, numbers[2:4][0]); self.keep(5, 2 in unique)
        """
    )


def test_comprehensions():
    agrees(
        """
        squares = [k * k + n for k in range(4) if k % 2]
        grid = [(a, b) for a in (1, 2) for b in range(a)]
        tiles = [t + k for k, t in enumerate((x, y))]
        total = sum(a * b for a, b in grid) + sum(squares)
        last = [(seen := k) for k in (3, 4, 5)]
        self.keep(0, total); self.keep(1, tiles[0] * tiles[1]); self.keep(2, seen + len(last))
        """
    )


def test_strings():
    agrees(
        """
        name = f"{'row'}_{self.four:03d}{self.four!r}" + "x" * 2 + "{}".format(3) + "%d" % 4
        self.keep(0, 1 if name == "row_0044xx34" else 0)
        self.keep(1, len(f"{int32(5)}"))
        """
    )


def test_walrus():
    agrees("k = (j := n + 1) * j; t = (z := x + 1) + z; self.keep(0, k + j); self.keep(1, t - z)")
    agrees("if (k := n * 2) > 4:\n    k = k + 1\nself.keep(0, k)")


# ----------------------------------------------------------------------------------------------------------- functions


METHODS = """
scale = 3

def affine(self, tile, factor=2, *, shift=1):
    return tile * factor + shift

def many(self, first, *rest, **named):
    total = first
    for part in rest:
        total = total + part
    for key, part in named.items():
        total = total + part * len(key)
    return total

def both(self, tile):
    if self.four == 4:
        return tile + 1, tile - 1
    return None

def nothing(self, tile):
    pass

@property
def five(self):
    return self.four + 1

@property
def three_times_five(self):
    k = 0
    for i in range(self.five):
        k = k + self.scale
    return k

@staticmethod
def cubed(tile):
    return tile * tile * tile

@classmethod
def scaled(cls, tile):
    return tile * cls.scale
"""


def test_helpers():
    agrees(
        """
        arguments, options = [x, 3], {"shift": n}
        self.keep(0, self.affine(x)); self.keep(1, self.affine(*arguments, **options))
        self.keep(2, self.affine(y, shift=2))
        self.keep(3, self.many(x, y, x, ab=y, c=n)); self.keep(4, self.affine(self.affine(n), shift=m))
        up, down = self.both(x)
        self.keep(5, up * down); self.keep(6, self.nothing(x) is None)
        """,
        METHODS,
    )


def test_methods_of_all_kinds():
    agrees(
        """
        self.keep(0, self.five + n); self.keep(1, self.cubed(x)); self.keep(2, self.scaled(x)); self.keep(3, self.scale)
        self.keep(4, self.three_times_five); self.keep(5, type(self).cubed(y))
        """,
        METHODS,
    )


def test_super():
    bases = """
    class Base(PARENT):
        def step(self, tile, k):
            return tile + k

        def twice(self, tile):
            return self.step(self.step(tile, 1), 1)
    """
    methods = """
    def step(self, tile, k):
        tile = super().step(tile, k * 10)
        return tile - 1
    """
    inputs = Inputs.fresh()
    found = by_kernel("self.keep(0, self.twice(x))", inputs, methods, base="Base", bases=bases)
    assert (found[0] == inputs.ints[0] + 18).all()


def test_parameters_of_helpers_have_their_annotated_type():
    methods = """
    def typed(self, tile: RegisterTensor, k: int32, w: float32, size: int, flag: bool = True):
        k = k + 1
        return tile + k * size if flag else tile
    """
    agrees("self.keep(0, self.typed(x, 3, n, 4)); self.keep(1, self.typed(x, m, 2, 4, False))", methods)


def test_any_pointer_is_a_raw_one():
    methods = """
    def first(self, p: void_p, q: ~int32):
        return self.load_global(self.global_view(q, dtype=int32, shape=[8]), offsets=[0], shape=[8])
    """
    inputs = Inputs.fresh()
    found = by_kernel("self.keep(0, self.first(floats, ints))", inputs, methods, void_p=void_p)
    assert (found[0] == inputs.ints[0]).all()
    with pytest.raises(LanguageError, match="q is annotated as ~int32, but its value is a run-time ~float32"):
        printed("self.first(ints, floats)", methods, void_p=void_p)


def test_names_from_outside():
    def outer():
        weight = 5

        def weigh(value):
            return value * weight + 1

        return weigh

    agrees(
        "self.keep(0, weigh(n)); self.keep(1, SIZE * n + len(TABLE)); self.keep(2, max(SIZE, 3) + config['size'])",
        weigh=outer(), SIZE=7, TABLE=[1, 2], config={"size": 12},
    )  # fmt: skip


def test_host_functions_compute_with_run_time_scalars():
    def blend(a, b, by=1):
        parts = [a + by, 2 * a - b // 3]
        return sum(parts) % 11, (a << 1) | 1

    agrees("p, q = blend(n, m + 30, by=2); self.keep(0, p); self.keep(1, q); self.keep(2, -abs(p - q))", blend=blend)


def test_host_functions_may_change_the_lists_that_they_are_given():
    def push(stack, value):
        stack.append(value)
        stack[0] = stack[0] + 1
        return stack[-1]

    agrees(
        """
        stack = [n, [m]]
        top = push(stack, m * 2)
        push(stack[1], 5)
        self.keep(0, stack[0]); self.keep(1, stack[2] + top); self.keep(2, stack[1][0] * 10 + stack[1][1])
        """,
        push=push,
    )


def test_builtins_take_lists_of_run_time_scalars():
    agrees(
        """
        self.keep(0, max([n, m, 2])); self.keep(1, min((n, m))); self.keep(2, sum([n, m], 4))
        self.keep(3, max([3, 1]) + max([n]) + min([4]))
        """
    )
    with pytest.raises(LanguageError, match="sorted asks for a value that exists only at run time"):
        printed("sorted([n, m])")
    with pytest.raises(LanguageError, match="any asks for a value that exists only at run time"):
        printed("any([n > 2, m > 2])")


def test_objects_may_hold_run_time_values():
    agrees(
        """
        pair = Pair(n, x)
        for i in range(3):
            n = n + 1
            here = Pair(n, x + i)
            n = n + 1
            x = here.second + here.first
        self.keep(0, pair.first * 2); self.keep(1, pair.second); self.keep(2, x); self.keep(3, n)
        """,
        Pair=namedtuple("Pair", ["first", "second"]),
    )


def test_numpy_scalars_are_numbers():
    agrees(
        "k = sizes[0]; self.keep(0, x * k + sizes[1]); self.keep(1, n + sizes.sum()); assert k == 8 and not empty",
        sizes=np.array([8, 3]), empty=np.bool_(False),
    )  # fmt: skip


def test_host_functions_cannot_look_at_run_time_scalars():
    def clumsy(a):
        return 1 if a == 1 else 2

    with pytest.raises(LanguageError, match="asks for a value that exists only at run time"):
        printed("self.keep(0, clumsy(n))", clumsy=clumsy)


def test_lambdas_see_the_names_that_are_there_when_they_are_called():
    agrees(
        """
        k = 1
        bend = lambda a, b: a * k + b
        k = n
        self.keep(0, bend(3, 4)); self.keep(1, bend(x, y))
        self.keep(2, self.register_tensor(dtype=int32, shape=[8], init=lambda i: i * k + self.four))
        self.keep(3, sorted([3, 1, 2], key=lambda a: -a)[0])
        """
    )


def test_init_takes_functions_of_every_kind():
    methods = """
    def diagonal(self, i):
        j = i * 3
        return j % 5

    @staticmethod
    def constant(i):
        return 9
    """

    def slope(i):
        return i * 2 + 1

    agrees(
        """
        for row, init in enumerate([self.diagonal, self.constant, slope, 4, n, lambda i: slope(i) // 2 - m]):
            self.keep(row, self.register_tensor(dtype=int32, shape=[8], init=init))
        """,
        methods,
        slope=slope,
    )


def test_assertions_are_checked_while_compiling():
    agrees("assert self.four == 4, 'four'; self.keep(0, n)")
    with pytest.raises(LanguageError, match="assertion failed: not 5"):
        printed("assert self.four == 5, f'not {5}'")
    with pytest.raises(LanguageError, match="static assertion failed: must be 5"):
        printed("self.static_assert(self.four == 5, 'must be 5')")


def test_printing_happens_while_compiling(capsys):
    printed("print('four is', self.four)")
    assert capsys.readouterr().out == "four is 4\n"


def test_scalars_know_their_place_in_the_grid():
    agrees("bx, by, bz = 0, 0, 0; self.keep(0, bx + by + bz)")
    text = printed("bx, by, bz = self.blockIdx; self.keep(0, bx * self.gridDim.y + len(self.blockIdx))")
    assert "bx: i32 = block_idx_x" in text and "grid_dim_y" in text


def test_pointers_move():
    text = printed("p = ints + 8; q = p\nfor i in range(n): p = p + 1\nself.keep(0, x)")
    assert "p: ~i32 = ints + i32(8)" in text and "p = p + i32(1)" in text
