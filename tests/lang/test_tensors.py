# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors, their elements, and what else a kernel may ask of them."""

import textwrap

import numpy as np
import pytest
import torch

from tests.lang.cells import Inputs, agrees, by_kernel, cell, function_of, printed
from tilekit.diag import LanguageError
from tilekit.ir import evaluator
from tilekit.ir.instructions.memory import GlobalViewInst
from tilekit.ir.tools.instruction_collector import collect
from tilekit.ir.tools.views import strided_pointers
from tilekit.jit.evaluated import as_memory

# a tile of two dimensions, and one of three in shared memory that holds it several times
SQUARE = "square = self.register_tensor(dtype=int32, shape=[4, 8], init=lambda i, j: i * 100 + j * 3 + n)"
SHARED = f"""{SQUARE}
s = self.shared_tensor(dtype=int32, shape=[3, 4, 8])
for i in range(3):
    self.store_shared(s[i], square * (i + 1))
self.sync()
"""


def agrees_after(start: str, body: str) -> None:
    """A snippet that begins with `start` keeps the same in the kernel and in Python."""
    agrees(f"{start}\n{textwrap.dedent(body)}")


# ------------------------------------------------------------------------------------------------------ parts of tiles


@pytest.mark.parametrize(
    "part", ["square[1]", "square[-1]", "square[n % 4]", "square[2, :]", "square[:][3]", "square[(1,)]", "square[*[2]]"]
)
def test_a_part_of_a_tile_along_its_first_dimension(part):
    agrees_after(SQUARE, f"self.keep(0, {part})")


def test_a_part_of_a_tile_along_any_dimension():
    agrees_after(
        SQUARE,
        """
        column = square[:, n % 8]
        self.keep(0, x + column[0]); self.keep(1, column[2].item()); self.keep(2, square[1, 2].item())
        """,
    )


def test_a_part_of_a_tile_is_a_tile_of_its_own():
    agrees_after(
        SQUARE,
        """
        row = square[1]
        square = square * 2
        row += 1
        self.keep(0, row); self.keep(1, square[1])
        """,
    )


def test_the_whole_of_a_tile_is_another_name_for_it():
    agrees("y = x[:]; x += 1; self.keep(0, x); self.keep(1, y)")


def test_a_part_in_a_loop_is_the_one_of_that_turn():
    agrees_after(
        SQUARE,
        """
        k, total = 0, x
        for i in range(n):
            row = square[k]
            k = (k + 3) % 4
            total = total * 2 + row
        self.keep(0, total)
        """,
    )


# --------------------------------------------------------------------------------------------------------- elements


def test_an_element_of_a_tile_is_a_scalar():
    agrees("k = x[3].item() + x[n].item() * 10; self.keep(0, k); self.keep(1, y + x[0].item())", n=2)


def test_an_element_keeps_the_value_it_had():
    agrees(
        """
        first = x[0].item()
        x = x + 100
        for i in range(n):
            first = first + x[0].item()
            x = x + 1
        self.keep(0, first)
        """
    )


def test_an_element_decides():
    agrees(
        """
        turns = 0
        while x[0].item() > 0 and turns < 20:
            x = x - 7
            turns += 1
        if y[1].item() > 0 or (turns > 2 and y[2].item() < y[3].item()):
            turns += 100
        k = y[4].item() if n > 2 else y[5].item()
        for i in range(y[0].item() % 5):
            k = k + i
        self.keep(0, turns); self.keep(1, k)
        """
    )


def test_the_elements_of_a_small_tile_are_a_list():
    agrees_after(
        SQUARE,
        """
        self.keep(0, sum(x.tolist()))
        total = 0
        for row in square.tolist():
            for k in row:
                total = (total * 2 + k) % 1009
        self.keep(1, total)
        """,
    )


def test_a_tile_of_one_element_is_one_element_whatever_its_dimensions():
    agrees("k = self.register_tensor(dtype=int32, shape=[1, 1], init=m).item(); self.keep(0, k)")


# ------------------------------------------------------------------------------------------- parts of shared memory


def test_a_part_of_shared_memory_shows_the_same_elements():
    agrees_after(
        SHARED,
        """
        first, last = s[0], s[-1]
        self.store_shared(first[1], x)
        self.store_shared(s[:, 2, :][2], y)
        self.sync()
        self.keep(0, self.load_shared(s[0])[1]); self.keep(1, self.load_shared(last)[2])
        self.keep(2, self.load_shared(first[n % 4])); self.keep(3, self.load_shared(s)[1, 3])
        """,
    )


def test_two_names_of_shared_memory_are_one():
    agrees_after(
        SHARED,
        """
        t = s
        self.store_shared(t[0], square - 7)
        self.sync()
        self.keep(0, self.load_shared(s[0, 1])); self.keep(1, s.size + t.nbytes + s.shape[1])
        """,
    )


def test_a_part_with_a_name_stays_where_it_was():
    agrees_after(
        SHARED,
        """
        stage = 0
        for i in range(n):
            now = s[stage]
            stage = (stage + 1) % 3
            x = x * 3 + self.load_shared(now)[i % 4]
        self.keep(0, x)
        """,
    )


def test_an_index_in_an_instruction_needs_no_copy():
    text = printed(f"{SHARED}\nk = 0\nfor i in range(n):\n    x = self.load_shared(s[k])[0]\n    k = (k + 1) % 3")
    assert "slice_shared(s, offsets=[k, i32(0), i32(0)]" in text


def test_shared_memory_with_its_dimensions_in_another_order():
    agrees_after(
        SHARED,
        """
        self.keep(0, self.load_shared(s[1].transpose())[2].unsqueeze(1)[0, 0].item())
        self.keep(1, self.load_shared(s.permute([2, 0, 1]))[3, 2, 1].item())
        self.keep(2, self.load_shared(s.permute(dims=[1, 0, 2])[3])[0])
        """,
    )


def test_an_element_of_shared_memory():
    agrees_after(SHARED, "k = s[2, 1, n].item(); self.keep(0, k); self.keep(1, s[1][3, 7].item() + s[0][0][0].item())")


def test_an_element_of_shared_memory_is_read_once():
    agrees_after(
        SHARED,
        """
        before = s[0, 0, 0].item()
        self.sync()
        self.store_shared(s[0], square + 1000)
        self.sync()
        self.keep(0, before); self.keep(1, s[0, 0, 0].item())
        """,
    )


def test_a_pointer_to_shared_memory_is_one_of_its_type():
    text = printed(f"{SHARED}\np = s[1, 2, n].item_ptr()")
    assert "i32" in text and "s[i32(1), i32(2), n]" in text


# ------------------------------------------------------------------------------------------- parts of global memory

GLOBAL = """
class Kernel(tilus.Script):
    def __call__(self, n: int32, a: ~int32, out: ~int32):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        g = self.global_view(a, dtype=int32, shape=[n, 4, 8])
        o = self.global_view(out, dtype=int32, shape=[8])
        {body}
"""


def global_kernel(body: str) -> tuple[np.ndarray, np.ndarray]:
    """The input, and what the snippet stores to `o`, with n = 3."""
    a = torch.randint(-1000, 1000, (3, 4, 8), dtype=torch.int32)
    out = torch.full((8,), -1, dtype=torch.int32)
    handle = cell(GLOBAL.format(body="\n        ".join(body.strip().splitlines())))["Kernel"]()
    function_of(handle, 3, a, out)
    evaluator.run(handle._jit_instance_for(3, a, out).transpiled_programs[0], [3, as_memory(a), as_memory(out)])
    return a.numpy(), out.numpy()


@pytest.mark.parametrize(
    "part, expected",
    [
        ("g[1, 2]", (1, 2)),
        ("g[n - 1][n]", (2, 3)),
        ("g[1, -1]", (1, 3)),
        ("g[-1, 0]", (2, 0)),
        ("g[-n + 1 + n][0]", (1, 0)),
    ],
)
def test_a_part_of_global_memory(part, expected):
    a, out = global_kernel(f"self.store_global(o, self.load_global({part}, offsets=[0], shape=[8]), offsets=[0])")
    np.testing.assert_array_equal(out, a[expected])


def test_a_part_of_global_memory_along_other_dimensions():
    a, out = global_kernel(
        """
row = self.load_global(g[:, 1, :], offsets=[2, 0], shape=[8], dims=[1])
self.store_global(o, row, offsets=[0])
"""
    )
    np.testing.assert_array_equal(out, a[2, 1])


def test_a_part_of_global_memory_ends_where_its_dimensions_end():
    _, out = global_kernel(
        "self.store_global(o, self.load_global(g[0], offsets=[4, 0], shape=[8], dims=[1]), offsets=[0])"
    )
    assert (out == 0).all()


def test_what_is_stored_to_a_part_is_stored_to_the_whole():
    a, out = global_kernel(
        """
self.store_global(g[1, 3], self.load_global(g[0, 0], offsets=[0], shape=[8]), offsets=[0])
self.store_global(o, self.load_global(g, offsets=[1, 3, 0], shape=[8]), offsets=[0])
"""
    )
    np.testing.assert_array_equal(out, a[0, 0])
    np.testing.assert_array_equal(a[1, 3], a[0, 0])


def test_a_part_of_a_view_whose_pointer_was_computed_from_a_name_that_changed():
    a, out = global_kernel(
        """
at, k = 0, 0
for i in range(n):
    view = self.global_view(a + at, dtype=int32, shape=[4, 8])
    at = at + 32
    k = k + view[2, 5].item()
    self.store_global(o, self.load_global(view[1], offsets=[0], shape=[8]) + k, offsets=[0])
"""
    )
    np.testing.assert_array_equal(out, a[2, 1] + a[:, 2, 5].sum())


def test_an_element_of_global_memory():
    a, out = global_kernel(
        """
k = g[n - 1, 2, 3].item()
self.store_global(o, self.register_tensor(dtype=int32, shape=[8], init=k + g[0][1][2].item()), offsets=[0])
"""
    )
    assert (out == a[2, 2, 3] + a[0, 1, 2]).all()


@pytest.mark.parametrize("address", ["g[1, 2, n].item_ptr()", "~g[1, 2, n]", "g[1][2, n].item_ptr()"])
def test_a_pointer_to_an_element(address):
    a, out = global_kernel(
        f"""
p: ~int32 = {address}
self.store_global(o, self.load_global(self.global_view(p, dtype=int32, shape=[8]), offsets=[0], shape=[8]), offsets=[0])
"""
    )
    np.testing.assert_array_equal(out, a.reshape(-1)[32 + 16 + 3 :][:8])


def test_a_pointer_stays_where_it_was():
    a, out = global_kernel(
        """
k = 0
for i in range(n):
    p = g[k, 0, 0].item_ptr()
    k = k + 1
    view = self.global_view(p, dtype=int32, shape=[8])
    self.store_global(o, self.load_global(view, offsets=[0], shape=[8]), offsets=[0])
"""
    )
    np.testing.assert_array_equal(out, a[2, 0])


def test_elements_and_parts_of_a_workspace():
    _, out = global_kernel(
        """
w = self.global_tensor(int32, [n, 8], requires_clean=True)
self.store_global(w[1], self.register_tensor(dtype=int32, shape=[8], init=lambda i: i * i), offsets=[0])
self.sync()
k = w[1, 5].item() + w[2, 5].item()
p = self.global_view(~w[1, 0], dtype=int32, shape=[8])
self.store_global(o, self.load_global(p, offsets=[0], shape=[8]) + k, offsets=[0])
self.sync()
self.store_global(w[1], self.register_tensor(dtype=int32, shape=[8], init=0), offsets=[0])
"""
    )
    np.testing.assert_array_equal(out, np.arange(8) ** 2 + 25)


def test_sizes_of_global_memory_are_expressions():
    _, out = global_kernel(
        """
k = g.size + g.nbytes * 1000 + g.shape[1]
self.store_global(o, self.register_tensor(dtype=int32, shape=[8], init=k), offsets=[0])
"""
    )
    assert (out == 96 + 384000 + 4).all()


# ---------------------------------------------------------------------------------------------- other shapes and types


def test_other_shapes_of_a_tile():
    agrees_after(
        SQUARE,
        """
        turned = square.transpose()
        self.keep(0, turned[3, 2].item()); self.keep(1, x.unsqueeze(0)[0]); self.keep(2, x.unsqueeze(1).squeeze(1))
        self.keep(3, (square + square[:, 1].unsqueeze(1))[2]); self.keep(4, x.unsqueeze((0, 2)).squeeze((0, -1)))
        self.keep(5, square.size + square.shape[0]); self.keep(6, x.to(float32) / 2)
        """,
    )


def test_what_is_known_of_a_tile_is_known_while_compiling():
    text = printed(
        "rows = x.size * x.dtype.nbytes + x.nbytes\n"
        "z = self.register_tensor(dtype=x.dtype, shape=[rows, *x.shape], init=0)\nself.keep(0, z[0])"
    )
    assert "i32[64, 8]" in text


# ------------------------------------------------------------------------------------------------ writing to parts


def items(body: str, n: int | None = None) -> tuple[np.ndarray, Inputs]:
    inputs = Inputs.fresh(n)
    return by_kernel(body, inputs), inputs


def test_an_element_of_a_tile_is_written_in_place():
    rows, inputs = items("x[3] = 7; x[n] = m; x[-1] = x[0]; self.keep(0, x)", n=5)
    expected = inputs.ints[0].copy()
    expected[3], expected[5], expected[7] = 7, inputs.m, expected[0]
    np.testing.assert_array_equal(rows[0], expected)


def test_a_part_of_a_tile_is_written_in_place():
    rows, inputs = items(
        f"""
        {SQUARE}
        square[1] = x
        square[2, :] = 5
        square[:, 7] = square[:, 0]
        square[3, 2] += 1
        square[0] *= y
        self.keep(0, square[0]); self.keep(1, square[1]); self.keep(2, square[2]); self.keep(3, square[3])
        """
    )
    expected = np.array([[i * 100 + j * 3 + inputs.n for j in range(8)] for i in range(4)])
    expected[1], expected[2] = inputs.ints[0], 5
    expected[:, 7] = expected[:, 0]
    expected[3, 2] += 1
    expected[0] *= inputs.ints[1]
    np.testing.assert_array_equal(rows[:4], expected)


def test_all_of_a_tile_is_written_in_place():
    rows, inputs = items("x[:] = y; y[:] = 3; self.keep(0, x); self.keep(1, y)")
    np.testing.assert_array_equal(rows[:2], [inputs.ints[1], [3] * 8])


def test_a_number_takes_the_type_of_the_tile_it_is_written_to():
    rows, inputs = items("u[0] = n; u[1] = 2; u[2] = f; self.keep(0, u)")
    np.testing.assert_allclose(rows[0, :3], [inputs.n, 2, inputs.f])


def test_writing_a_part_leaves_every_other_holder_alone():
    rows, inputs = items(
        """
        z, kept = x, [x]
        self.held = x
        x[0] = 1000
        z[1] = 2000
        self.held[2] = 3000
        kept[0][3] = 4000
        self.keep(0, x); self.keep(1, z); self.keep(2, self.held); self.keep(3, kept[0])
        """
    )
    for row in range(4):
        expected = inputs.ints[0].copy()
        expected[row] = (row + 1) * 1000
        np.testing.assert_array_equal(rows[row], expected)


def test_writing_a_part_in_a_loop():
    rows, inputs = items(
        """
        kept = (x,)
        for i in range(n):
            x[i] = x[i] + i * 100
            before = x
            x[7] = i
            y[i] = before[7]
        self.keep(0, x); self.keep(1, kept[0]); self.keep(2, y)
        """
    )
    expected, other = inputs.ints[0].copy(), inputs.ints[1].copy()
    for i in range(inputs.n):
        expected[i] += i * 100
        other[i] = expected[7]
        expected[7] = i
    np.testing.assert_array_equal(rows[:3], [expected, inputs.ints[0], other])


def test_writing_a_part_in_a_branch():
    for n in (1, 5):
        rows, inputs = items("z = x\nif n > 3:\n    x[0] = 9\nelse:\n    z[1] = 8\nself.keep(0, x); self.keep(1, z)", n)
        first, second = inputs.ints[0].copy(), inputs.ints[0].copy()
        if n > 3:
            first[0] = 9
        else:
            second[1] = 8
        np.testing.assert_array_equal(rows[:2], [first, second])


def test_a_helper_writes_a_part_of_its_callers_tile():
    methods = """
    def mark(self, tile, at: int32):
        tile[at] = 1000

    def own(self, tile, at: int32):
        tile = tile * 2
        tile[at] = 1000
        return tile
    """
    inputs = Inputs.fresh(2)
    found = by_kernel(
        """
        z = x
        self.mark(x, n)
        r = self.own(y, n)
        self.keep(0, x); self.keep(1, z); self.keep(2, y); self.keep(3, r)
        """,
        inputs,
        methods,
    )
    expected, doubled = inputs.ints[0].copy(), inputs.ints[1] * 2
    expected[2] = doubled[2] = 1000
    np.testing.assert_array_equal(found[:4], [expected, inputs.ints[0], inputs.ints[1], doubled])


def test_a_loop_that_writes_a_part_needs_no_copy():
    text = printed("for i in range(n): x[i] = 3\nself.keep(0, x)")
    assert "assign(x)" not in text.replace("slice_assign(x", "")


def test_a_python_list_is_still_written_by_index():
    agrees("t = [1, n]; t[0] = x; t[1] += 2; self.keep(0, t[0]); self.keep(1, t[1])")


# ------------------------------------------------------------------------------------------------- shared memory names


@pytest.mark.parametrize(
    "body",
    [
        "a, b = s[0], s[1]\nfor i in range(n):\n    a, b = b, a",
        "a = s[0]\nif n > 2:\n    a = s[1]\nx = self.load_shared(a)[0]",
        "self.stage = s[0]\nfor i in range(n):\n    self.stage = s[i]",
    ],
)
def test_run_time_control_flow_cannot_rebind_memory(body):
    with pytest.raises(LanguageError) as caught:
        printed(f"{SHARED}\n{body}")
    assert caught.value.code == "TK114", caught.value.to_text()


def test_an_element_needs_no_view_of_it():
    handle = cell(GLOBAL.format(body="k = g[0, 1, 2].item()"))["Kernel"]()
    a = torch.zeros(3, 4, 8, dtype=torch.int32)
    views = collect(function_of(handle, 3, a, torch.zeros(8, dtype=torch.int32)), GlobalViewInst)
    assert [view.view.name for view in views] == ["g", "o"]


@pytest.mark.parametrize(
    "body, strided",
    [
        ("k = g[:, 1, :][0, 0].item()", []),
        ("k = g[1].item_ptr() if False else g[1, 0, 0].item()", []),
        ("h = self.global_view(a, dtype=int32, shape=[n, 4], strides=[n, 8])[1]", ["a"]),
    ],
)
def test_a_part_of_a_row_major_view_has_no_strides_of_its_own(body, strided):
    handle = cell(GLOBAL.format(body=body))["Kernel"]()
    a = torch.zeros(3, 4, 8, dtype=torch.int32)
    instance = handle._jit_instance_for(3, a, torch.zeros(8, dtype=torch.int32))
    assert strided_pointers(instance.transpiled_programs[0]) == strided
