# SPDX-License-Identifier: Apache-2.0
"""The text of a function is found through its code object, wherever it was written."""

import argparse
import ast
import dataclasses
import doctest
import functools
import http.server
import inspect
import linecache
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilekit
from tests.lang.cells import cell, function_of
from tilekit import Script, float32, int32
from tilekit.diag import LanguageError
from tilekit.ir.inst import Instruction
from tilekit.ir.text import printer
from tilekit.ir.tools.instruction_collector import collect
from tilekit.lang import source


def text_of(function) -> str:
    return ast.unparse(source.read(function).node)


def register(function):
    return function


def test_lines_are_those_of_the_file():
    def plain(a, b):
        return a + b

    read = source.read(plain)
    lines = linecache.getlines(__file__)
    assert lines[read.node.lineno - 1].strip() == "def plain(a, b):"
    assert read.span(read.node.body[0]).line == 1
    assert read.header.line == 0 and read.name == "plain"


def test_decorated_functions():
    @register
    @functools.wraps(print)  # names and wraps another function
    def wrapped():
        pass

    class Kernel:
        @register
        @register
        def method(self, a=(1, 2)):
            return a

        @staticmethod
        def static(a):
            return -a

        @property
        def attribute(self):
            return 3

    read = source.read(Kernel.method)
    assert read.name == "Kernel.method"
    assert linecache.getline(__file__, read.node.lineno).strip() == "def method(self, a=(1, 2)):"
    assert source.read(Kernel.static).name == "Kernel.static"
    assert source.read(Kernel.attribute.fget).name == "Kernel.attribute"
    with pytest.raises(LanguageError, match="is not a Python function"):
        source.read(wrapped)


def test_a_wrapper_that_says_what_it_wraps_is_looked_through():
    def twice(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args) * 2

        return wrapper

    @twice
    def inner(a):
        return a

    assert source.read(inner).name == "inner"


def test_functions_in_functions():
    def outer():
        def middle():
            def inner(x):
                return x * 3

            return inner

        return middle()

    assert source.read(outer()).name == "inner"
    assert text_of(outer()) == "def inner(x):\n    return x * 3"


def test_one_line_functions():
    assert text_of(cell("def short(a): return a + 1\n")["short"]) == "def short(a):\n    return a + 1"


CELL = '''
import sys
%matplotlib inline
!pip install something
files = !ls -l | grep "x
class Kernel:
    """A class."""

    def method(self, a):
        """A docstring.

that comes back to column 0
        """
        text = """
first
  second"""
        b = (a +
1)
        return b, text
    x = 3

    def last(self): return 4
!echo "it's" $HOME
?last
'''


def test_cells_with_shell_escapes_and_strings_at_column_0():
    plain = (
        "\n".join("pass" if line.startswith(("%", "!", "?")) or "= !" in line else line for line in CELL.splitlines())
        + "\n"
    )
    namespace = cell(plain, "Cell In[7]")
    # what the notebook remembers is the cell as it was typed
    linecache.cache["Cell In[7]"] = (len(CELL), None, CELL.lstrip("\n").splitlines(keepends=True), "Cell In[7]")
    method = source.read(namespace["Kernel"].method)
    assert ast.unparse(method.node.body[-1]) == "return (b, text)"
    assert ast.literal_eval(method.node.body[1].value) == "\nfirst\n  second"
    assert text_of(namespace["Kernel"].last) == "def last(self):\n    return 4"


def test_two_classes_of_one_name():
    """Python calls code objects equal that differ in annotations, or in the cell they come from."""
    text = """
    class Kernel(tilus.Script):
        def __call__(self, n: int32):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            k: {} = n
            self.register_tensor(dtype=int64, shape=[2], init=k)
    """
    first, second = (cell(text.format(dtype))["Kernel"] for dtype in ("int32", "int64"))
    assert first.__call__.__code__ == second.__call__.__code__
    assert "k: i32 = n" in printer.print_function(function_of(first(), 3))
    assert "k: i64 = i64(n)" in printer.print_function(function_of(second(), 3))
    files = {source.read(kernel.__call__).code.co_filename for kernel in (first, second)}
    assert len(files) == 2


def test_a_class_and_its_base_may_have_one_name():
    kernel = cell(
        """
        class Kernel(tilus.Script):
            def step(self, tile):
                return tile + 1

        class Kernel(Kernel):
            def step(self, tile):
                tile = super().step(tile)
                return tile * 2

            def __call__(self, n: int32):
                self.attrs.blocks = [1]
                self.attrs.warps = 1
                x = self.register_tensor(dtype=int32, shape=[4], init=n)
                x = self.step(x)
                self.step(x * 3)
        """
    )["Kernel"]()
    func = function_of(kernel, 3)
    shown = [kernel.sources.locate(inst.span) for inst in collect(func, Instruction) if inst.opcode in ("add", "mul")]
    lines = [place.text_line[place.col : place.end_col] for place in shown]
    assert lines == ["tile + 1", "tile * 2", "x * 3", "tile + 1", "tile * 2"]


def test_without_text_there_is_an_error():
    namespace: dict = {}
    exec("def hidden(a):\n    return a", namespace)
    with pytest.raises(LanguageError, match="the source of hidden is not available"):
        source.read(namespace["hidden"])
    with pytest.raises(LanguageError, match="is not a Python function"):
        source.read(len)


@pytest.mark.parametrize(
    "now",
    [
        "def other(a):\n    return a\n",
        "def moved(a, b):\n    return a\n",
        "x = 3\ndef moved(a):\n    return a\n",
        "def moved(a):\n    # grown\n    return a\n",
        "def moved(a:\n",
        "moved = 3\n",
    ],
)
def test_a_file_that_changed_is_noticed(now):
    function = cell("def moved(a):\n    return a\n", "Cell In[8]")["moved"]
    linecache.cache["Cell In[8]"] = (len(now), None, now.splitlines(keepends=True), "Cell In[8]")
    with pytest.raises(LanguageError, match="the file of moved changed since it was loaded"):
        source.read(function)


@pytest.mark.parametrize(
    "text", ["x = lambda a: a\n", "y = 1\nx = max(\n    1, key=lambda a: a) if 0 else (\n    lambda a: a)\n"]
)
def test_a_lambda_is_called_one(text):
    line = len(text.splitlines())
    with pytest.raises(LanguageError, match=f"this method is a lambda, of line {line} of its file"):
        source.read(cell(text, "Cell In[9]")["x"])


def test_a_file_is_read_anew_when_it_changed_on_disk(tmp_path):
    path = tmp_path / "kernels.py"

    def load(text: str):
        path.write_text(text)
        namespace: dict = {}
        exec(compile(text, str(path), "exec"), namespace)
        return namespace["scaled"]

    assert text_of(load("def scaled(a):\n    return a * 2\n")) == "def scaled(a):\n    return a * 2"
    assert text_of(load("\n\ndef scaled(a):\n    return a * 33\n")) == "def scaled(a):\n    return a * 33"


def test_local_names_are_those_that_python_calls_local():
    function = cell(
        """
        def function(a, *rest, b=1, **named):
            c = [d for d in rest]
            for e, (f, *g) in named.items():
                h: int = e
            if (i := f):
                j = lambda k: k + (l := 1)
            return c, g, h, i, j
        """
    )["function"]
    assert source.read(function).local_names == set("abcefghij") | {"rest", "named"}
    assert source.read(function).local_names == set(function.__code__.co_varnames)


def _functions(code: types.CodeType) -> Iterator[types.FunctionType]:
    """Every plain function that is defined in a piece of code, at any depth."""
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            is_function = part.co_flags & inspect.CO_NEWLOCALS and not part.co_name.startswith("<")
            if is_function and not part.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
                yield types.FunctionType(part, {}, closure=tuple(types.CellType() for _ in part.co_freevars))
            yield from _functions(part)


@pytest.mark.parametrize("module", [inspect, dataclasses, argparse, doctest, http.server], ids=lambda m: m.__name__)
def test_every_function_of_a_module_is_found(module):
    path = module.__file__
    found = list(_functions(compile(Path(path).read_text(), path, "exec")))
    assert len(found) > 30
    for function in found:
        read = source.read(function)
        assert read.node.name == function.__name__
        assert linecache.getline(path, read.node.lineno).strip().startswith("def ")


def test_every_schedule_finds_what_the_text_of_a_function_says(monkeypatch):
    walked = []
    walk = ast.walk
    monkeypatch.setattr(ast, "walk", lambda node: walked.append(node) or walk(node))

    @tilekit.autotune("block", [32, 64])
    class Doubling(Script):
        def __init__(self, block: int):
            super().__init__()
            self.block = block

        def __call__(self, n: int32, out: ~float32):
            self.attrs.blocks = [1]
            self.attrs.warps = 1
            total = self.register_tensor(dtype=float32, shape=[self.block], init=1.0)
            for i in self.range(n):
                if i % 2 == 0:
                    total = total + total
            view = self.global_view(out, dtype=float32, shape=[self.block])
            self.store_global(view, total, offsets=[0])

    instance = Doubling()._jit_instance_for(3, tilekit.spec(float32, [64]))
    counts = []
    for number in range(2):
        walked.clear()
        assert "total" in instance.transpile(number).text
        counts.append(len(walked))
    assert counts[0] > 0 and counts[1] == 0
