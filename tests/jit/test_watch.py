# SPDX-License-Identifier: Apache-2.0
"""Watching a kernel: what a name holds behind a line, in a step of its loop, in one block."""

import dataclasses
import doctest
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import tilekit as tilus
from tilekit import bfloat16, boolean, float16, float32, int4b, int32
from tilekit.diag import ArgumentError, KernelError
from tilekit.dtypes import numpy_dtype
from tilekit.jit.instantiated import InstantiatedScript
from tilekit.jit.watched import Place, Watched


class Stage(tilus.Class):
    """Two rows in shared memory, and a sum of all that went through."""

    def __init__(self):
        self.rows = self.shared_tensor(dtype=float32, shape=[2, 64])
        self.total = self.register_tensor(dtype=float32, shape=[64], init=0.0)

    def through(self, stage, tile):
        twice = tile * 2.0
        self.total += twice
        self.store_shared(self.rows[stage], twice)
        self.sync()
        return self.load_shared(self.rows[stage])


class Sums(tilus.Script):
    """Each block adds up every second row."""

    def halved(self, tile):
        tile = tile * 0.5
        return tile

    def __call__(self, n: int32, x_ptr: ~float32, y_ptr: ~float32):
        self.attrs.blocks = [2]
        self.attrs.warps = 2
        stage = Stage()
        gx = self.global_view(x_ptr, dtype=float32, shape=[n, 64])
        gy = self.global_view(y_ptr, dtype=float32, shape=[2, 64])
        acc = self.register_tensor(dtype=float32, shape=[64], init=0.0)
        for i in range(n // 2):
            row = i * 2 + self.blockIdx.x
            x = self.load_global(gx, offsets=[row, 0], shape=[64], dims=[1])
            acc = acc + x
            y = stage.through(
                i % 2,
                x,
            )
            acc += y
        acc = self.halved(acc)
        if n > 100:
            acc = acc * 3.0
        positive = self.where(acc > 0.0, acc, 0.0)
        self.store_global(gy, positive, offsets=[self.blockIdx.x, 0], dims=[1])


class Copied(tilus.Script):
    """A copy that is waited for late, and a loop that may run into a wall."""

    def __call__(self, n: int32, x_ptr: ~float16, y_ptr: ~float16):
        self.attrs.blocks = [1]
        self.attrs.warps = 1
        gx = self.global_view(x_ptr, dtype=float16, shape=[32])
        gy = self.global_view(y_ptr, dtype=float16, shape=[32])
        s = self.shared_tensor(dtype=float16, shape=[32])
        self.copy_async(gx, s, offsets=[0])
        self.copy_async_wait_all()
        self.sync()
        held = self.load_shared(s)
        self.free_shared(s)
        for step in range(n):
            self.assume(step < 3)
            held += 1.0
        self.store_global(gy, held, offsets=[0])


class InTurn(tilus.Script):
    """Each block adds its number to what the one before it left."""

    def __call__(self, y_ptr: ~int32):
        self.attrs.blocks = [4]
        self.attrs.warps = 1
        turn = self.global_tensor(dtype=int32, shape=[1], requires_clean=True)
        gy = self.global_view(y_ptr, dtype=int32, shape=[1])
        self.lock_semaphore(turn[0].item_ptr(), self.blockIdx.x)
        left = self.load_global(gy, offsets=[0], shape=[1])
        self.sync()  # every lane has read it
        self.store_global(gy, left + self.blockIdx.x, offsets=[0])
        after = 0 if self.blockIdx.x == 3 else self.blockIdx.x + 1
        self.release_semaphore(turn[0].item_ptr(), after)


def line_of(script: type, text: str) -> int:
    """The line of this file that holds `text`, in the kernel of a script."""
    body, first = inspect.getsourcelines(script)
    (line,) = [number for number, row in enumerate(body, first) if text in row]
    return line


@pytest.fixture(scope="module")
def x():
    return torch.randn(6, 64)


@pytest.fixture(scope="module")
def sums(x):
    handle = Sums()
    handle.arguments = (6, x, torch.full((2, 64), 7.0))  # a kernel remembers its arguments weakly
    handle(*handle.arguments)
    return handle


def test_a_tile_in_a_step_of_a_loop(sums, x):
    line = line_of(Sums, "acc = acc + x")
    for block in range(2):
        for step in range(3):
            found = sums.watch("acc", block=block, line=line, step=step)
            rows = x[block::2]
            before = sum((3 * rows[i] for i in range(step)), torch.zeros(64))
            np.testing.assert_allclose(found.array, before + rows[step], rtol=1e-5, atol=1e-6)
            assert found.defined.all() and found.dtype == float32 and found.array.dtype == np.float32
            assert (found.where.line, found.where.text) == (line, "acc = acc + x")
            assert (found.where.step, found.where.block, found.steps) == (step, (block, 0, 0), step + 1)


def test_by_default_the_last_assignment_and_its_last_step(sums, x):
    found = sums.last.watch("x")
    np.testing.assert_array_equal(found.array, x[4])
    assert (found.where.line, found.where.step, found.steps) == (line_of(Sums, "x = self.load_global"), 2, 3)
    last = sums.watch("acc")
    assert last.where.text == "acc = self.halved(acc)", "the branch with another one is not taken"
    np.testing.assert_allclose(last.array, 1.5 * x[::2].sum(0), rtol=1e-5, atol=1e-6)


def test_a_name_means_what_a_method_returned(sums, x):
    found = sums.watch("acc", line=line_of(Sums, "acc = self.halved(acc)"))
    np.testing.assert_allclose(found.array, 1.5 * x[::2].sum(0), rtol=1e-5, atol=1e-6)
    inside = sums.watch("tile", line=line_of(Sums, "tile = tile * 0.5"))
    np.testing.assert_array_equal(inside.array, found.array)


def test_a_call_over_several_lines_is_one_line(sums, x):
    first = line_of(Sums, "y = stage.through(")
    for line in (first, first + 1, first + 3):
        found = sums.watch("y", line=line, step=1, block=1)
        np.testing.assert_array_equal(found.array, 2 * x[3])
        assert (found.where.line, found.steps) == (first, 2)


def test_attributes_of_objects_and_what_is_in_shared_memory(sums, x):
    np.testing.assert_allclose(sums.watch("total").array, 2 * x[::2].sum(0), rtol=1e-5, atol=1e-6)
    rows = sums.watch("rows")
    np.testing.assert_array_equal(rows.array, 2 * x[[4, 2]])
    assert rows.where.text == "self.store_shared(self.rows[stage], twice)", "parts of it are no assignments"
    half = sums.watch("rows", step=0)
    np.testing.assert_array_equal(half.array[0], 2 * x[0])
    assert half.defined[0].all() and not half.defined[1].any()
    assert "64 undefined (·)" in repr(half)


def test_numbers_and_global_memory(sums, x):
    assert sums.watch("row", step=1, block=1).array == 3
    assert sums.watch("i").array == 2 and sums.watch("n").array == 6
    assert sums.watch("n").where.line is None
    np.testing.assert_array_equal(sums.watch("gx").array, x)
    before = sums.watch("gy", line=line_of(Sums, "positive ="), args=(6, x, torch.full((2, 64), 7.0)))
    assert (before.array == 7).all()
    after = sums.watch("gy", args=(6, x, torch.full((2, 64), 7.0)))
    assert (after.array[1] == 7).all() and (after.array[0] != 7).all()
    assert not (sums.arguments[2] == 7).any(), "that is what the launch wrote"


def test_a_kernel_from_the_cache_knows_its_names(sums, x):
    del Sums._handles
    again = Sums()
    again(*sums.arguments)
    assert again.last.cached and again.last.specialized.transpile is not None, "it was read from text"
    found = again.watch("acc", line=line_of(Sums, "acc = self.halved(acc)"))
    np.testing.assert_allclose(found.array, 1.5 * x[::2].sum(0), rtol=1e-5, atol=1e-6)


def test_a_program_without_its_names_says_why(sums):
    bare = dataclasses.replace(sums.last.specialized, transpile=None)
    kernel = dataclasses.replace(sums.last, specialized=bare)
    with pytest.raises(ArgumentError, match=r"TK640.*the source of Sums has changed"):
        kernel.watch("acc")


def test_watching_changes_no_tensor(sums, x):
    y = torch.full((2, 64), 3.0)
    sums.watch("acc", args=(6, x, y))
    assert (y == 3).all()


@pytest.mark.gpu
def test_a_kernel_that_ran_on_a_gpu_is_watched_on_the_cpu(x):
    handle = Sums()
    there = (6, x.cuda(), torch.empty(2, 64, device="cuda"))
    handle(*there)
    found = handle.watch("acc")
    np.testing.assert_allclose(found.array, 1.5 * x[::2].sum(0), rtol=1e-5, atol=1e-6)


def test_a_copy_on_its_way_has_no_value_yet():
    handle, x, y = Copied(), torch.randn(32).half(), torch.empty(32).half()
    handle(2, x, y)
    assert handle.watch("s").where.text == "self.copy_async_wait_all()"
    early = handle.watch("s", line=line_of(Copied, "self.copy_async(gx"))
    assert not early.defined.any()
    assert early.notes == ("a copy into 32 of its elements is on its way",) and early.notes[0] in repr(early)
    late = handle.watch("s", line=line_of(Copied, "self.sync()"))
    assert late.defined.all() and (late.array == x.numpy()).all() and late.notes == ()
    with pytest.raises(ArgumentError, match=r"TK642.*s has no value after line \d+: it was freed"):
        handle.watch("s", line=line_of(Copied, "held += 1.0"))


def test_what_goes_wrong_says_how_far_the_line_came():
    handle, x, y = Copied(), torch.zeros(32).half(), torch.empty(32).half()
    handle(2, x, y)
    with pytest.raises(KernelError, match=r"(?s)TK706.*had run 3 times: watch held with line=\d+, step=2"):
        handle.watch("held", args=(5, x, y))
    assert (handle.watch("held", step=2, args=(5, x, y)).array == 3).all()


def test_blocks_that_wait_for_each_other_all_run():
    handle, y = InTurn(), torch.zeros(1, dtype=torch.int32)
    handle(y)
    y.fill_(10)
    assert [int(handle.watch("left", block=(at,)).array[0]) for at in range(4)] == [10, 10, 11, 13]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "acx"}, "TK640.*acx is no tensor or scalar.*has acc, .*did you mean acc?"),
        ({"name": "x_ptr"}, "TK640.*x_ptr is a pointer: watch a view of it"),
        ({"name": "positive", "text": "row = i"}, "TK642.*positive does not exist yet at line"),
        ({"name": "acc", "text": "self.attrs.warps = 2"}, "TK641.*Sums does nothing at line .*lines that do: "),
        ({"name": "acc", "text": "acc = acc + x", "step": 3}, r"TK641.*ran 3 times in block \(0, 0, 0\), so its last"),
        ({"name": "acc", "text": "acc = acc + x", "step": -1}, "TK641.*step counts from 0"),
        ({"name": "acc", "line": "12"}, "TK641.*line is a whole number, not '12'"),
        ({"name": "acc", "step": 1.5}, "TK641.*step is a whole number, not 1.5"),
        ({"name": "acc", "text": "acc = acc * 3.0"}, "TK642.*line .* does not run in block"),
        ({"name": "acc", "block": (0, 1)}, r"TK641.*Sums has no block \(0, 1\): its grid is \(2, 1, 1\)"),
        ({"name": "acc", "block": (0, 0, 0, 0)}, r"TK641.*block is up to three whole numbers, not \(0, 0, 0, 0\)"),
        ({"name": "acc", "block": "a"}, "TK641.*three whole numbers, not .a."),
    ],
)
def test_what_cannot_be_watched_is_said(sums, options, says):
    options = dict(options)
    if text := options.pop("text", ""):
        options["line"] = line_of(Sums, text)
    with pytest.raises(ArgumentError, match=f"(?s){says}"):
        sums.watch(**options)


def test_a_handle_that_never_ran_says_so():
    class Fresh(Copied):
        pass

    with pytest.raises(ArgumentError, match="TK631"):
        Fresh().watch("held")


def test_a_value_of_an_edited_kernel_says_that_it_is_of_the_program():
    handle, x, y = Copied(), torch.randn(32).half(), torch.empty(32).half()
    handle(1, x, y)
    kernel = handle.last
    kernel.recompile(kernel.source.replace("1.0f", "2.0f", 1) + "\n")
    found = kernel.watch("held", step=0)
    assert found.edited and "an edit of source.cu runs in its place" in repr(found)
    np.testing.assert_array_equal(found.array, (x + 1).numpy())
    kernel.revert()
    assert not kernel.watch("held", step=0).edited


def test_the_example_of_the_docstring_runs():
    (example,) = doctest.DocTestFinder().find(InstantiatedScript.watch, "watch", globs={})
    assert example.examples and doctest.DocTestRunner().run(example).failed == 0


def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "watch.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "page_of_watch.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("page_of_watch")
    x = module.x[2:3]
    np.testing.assert_allclose(module.acc.array, x[:, :32] + x[:, 32:64], rtol=1e-6)
    assert module.acc.where.text == "acc += x"


# ------------------------------------------------------------------------------------------------------- how it looks


def watched(array, dtype=float32, defined=None) -> Watched:
    array = np.asarray(array)
    mask = np.ones(array.shape, bool) if defined is None else np.asarray(defined)
    return Watched("t", dtype, array, mask, Place(3, "t = <u>", "Cell In[1]", 0, (0, 0, 0)), 1)


def test_the_table_marks_what_stands_out():
    array = np.array([[1.5, np.nan, 3.0], [-np.inf, -2.25, 0.0]], np.float32)
    text = repr(watched(array, defined=[[True, True, True], [True, True, False]]))
    assert text.splitlines() == [
        "t: float32[2, 3] after line 3 of Cell In[1], step 0, block (0, 0, 0)",
        "    t = <u>",
        "min -2.25 at [1, 1], max 3 at [0, 2], mean 0.75, 1 NaN, 1 inf, 1 undefined (·)",
        "      0      1  2",
        "0   1.5    nan  3▴",
        "1  -inf  -2.25▾ ·",
    ]


def test_the_html_needs_no_script_and_takes_the_colors_of_the_theme():
    html = watched(np.array([[np.nan, 1.0], [2.0, 3.0]], np.float32))._repr_html_()
    assert "<script" not in html and "t = &lt;u&gt;" in html
    assert 'font-weight:600">nan</td>' in html and ">1▾</td>" in html and ">3▴</td>" in html
    assert html.count("var(--jp-") == html.count("var(--jp-error-color1,#d32f2f)") + html.count(
        "var(--jp-code-font-family,ui-monospace"
    ) + html.count("var(--jp-ui-font-color2,#757575)") + html.count("var(--jp-border-color2,#e0e0e0)")


def test_a_large_tensor_shows_its_corners():
    array = np.arange(40 * 30, dtype=np.int32).reshape(40, 30)
    text = repr(watched(array, int32))
    assert "min 0 at [0, 0], max 1199 at [39, 29], mean 599.5" in text
    rows = text.splitlines()[4:]
    assert len(rows) == 8 + 1 + 8 and rows[8].split() == ["…", *["⋮"] * 5, "…", *["⋮"] * 5]
    assert rows[0].split() == ["0", "0▾", "1", "2", "3", "4", "…", "25", "26", "27", "28", "29"]
    assert rows[-1].split()[-1] == "1199▴"


def test_of_many_matrices_the_first_and_the_last_are_shown():
    text = repr(watched(np.zeros((2, 3, 2, 2), np.float32)))
    assert "t[0, 0]" in text and "t[1, 2]" in text and "t[0, 1]" not in text and "4 more matrices" in text


@pytest.mark.parametrize("dtype", [bfloat16, int4b, boolean, float16])
def test_every_type_can_be_shown(dtype):
    array = np.array([0, 1, 0], np.int8).astype(numpy_dtype(dtype))
    text = repr(watched(array, dtype))
    assert ("1 true" if dtype == boolean else "min 0 at [0], max 1 at [1]") in text
    assert watched(array[:0], dtype)._repr_html_() and watched(array[1], dtype)._repr_html_()
    assert "undefined" in repr(watched(array, dtype, defined=[False] * 3))
