# SPDX-License-Identifier: Apache-2.0
"""Bad kernels, and exactly what a person reads: `bad_kernels.txt` holds most of them."""

import functools
import pickle
from pathlib import Path

import pytest
import torch

import tilekit as tilus
from tests.lang.cells import ANNOTATIONS_AS_STRINGS, cell, error_text, function_of
from tilekit.diag import LanguageError
from tilekit.lang import methods

_ABOUT, *_CASES = (Path(__file__).parent / "bad_kernels.txt").read_text().split("====\n")
_HEAD = "\n".join(line.removeprefix("    ") for line in _ABOUT.splitlines() if line.startswith("    ")) + "\n"


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.splitlines()[-3].strip()[:40])
def test_the_message_is_exact(case):
    source, message = case.split("----\n")
    if "class Kernel(" in source:
        text, arguments = source, [3] * ("n: int32" in source or "(self, n" in source)
    else:
        text = _HEAD + "".join(f"        {line}\n" for line in source.splitlines())
        arguments = [8, torch.zeros(8)]
    assert error_text(text, *arguments) + "\n" == message


def test_postponed_annotations_are_named():
    text = "class Kernel(tilus.Script):\n    def __call__(self, n: int32):\n        pass\n"
    with pytest.raises(LanguageError) as caught:
        cell(text, "Cell In[1]", ANNOTATIONS_AS_STRINGS)["Kernel"]()
    assert caught.value.to_text() == (
        "LanguageError TK107 in Kernel.__call__, Cell In[1], line 2: "
        "the type of parameter n is the string 'int32', not a type\n"
        "    def __call__(self, n: int32):\n"
        "                       ^^^^^^^^\n"
        "  help: remove the quotes, and `from __future__ import annotations`, which turns every type into a string"
    )


def test_a_host_function_that_raises_is_named():
    def check(size):
        raise ValueError("no such size")

    text = "class Kernel(tilus.Script):\n    def __call__(self, n: int32):\n        self.attrs.blocks = [check(n)]\n"
    assert error_text(text, 3, check=check) == (
        "LanguageError TK109 in Kernel.__call__, Cell In[1], line 3: check raised ValueError: no such size\n"
        "    self.attrs.blocks = [check(n)]\n"
        "                         ^^^^^^^^"
    )


def test_a_host_function_cannot_take_tiles():
    def add(tile):
        return tile + 1

    text = """
    class Kernel(tilus.Script):
        def __call__(self, n: int32):
            add(self.register_tensor(dtype=int32, shape=[8], init=n))
    """
    assert error_text(text, 3, add=add) == (
        "LanguageError TK109 in Kernel.__call__, Cell In[1], line 3: "
        "add raised TypeError: unsupported operand type(s) for +: 'RegisterTensor' and 'int'\n"
        "    add(self.register_tensor(dtype=int32, shape=[8], init=n))\n"
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  help: make it a method of the class: methods are compiled, functions run while compiling"
    )


def test_a_host_function_cannot_decide_by_a_run_time_scalar():
    def clumsy(size):
        return 1 if size == 0 else 2

    text = "class Kernel(tilus.Script):\n    def __call__(self, n: int32):\n        self.attrs.blocks = [clumsy(n)]\n"
    assert error_text(text, 3, clumsy=clumsy) == (
        "LanguageError TK106 in Kernel.__call__, Cell In[1], line 3: "
        "clumsy asks for a value that exists only at run time\n"
        "    self.attrs.blocks = [clumsy(n)]\n"
        "                         ^^^^^^^^^\n"
        "  help: make it a method of the class: methods are compiled, functions run while compiling"
    )


@pytest.mark.parametrize("method, line", [("__call__", 6), ("helper", 3)])
def test_a_decorator_that_replaces_a_method_is_named(method, line):
    def timed(function):
        @functools.wraps(function)
        def wrapper(*args):
            return function(*args)

        return wrapper

    text = """
    class Kernel(tilus.Script):
        def helper(self, k):
            return k + 1

        def __call__(self, n: int32):
            self.attrs.blocks = [self.helper(n)]
    """
    text = text.replace(f"    def {method}", f"    @timed\n        def {method}")
    message = error_text(text, 3, timed=timed)
    assert f"Kernel.{method}, Cell In[1], line {line}: a decorator replaces this method" in message


def test_errors_keep_their_lines_in_another_process():
    case = _CASES[-1].split("----\n")[0]
    text = _HEAD + "".join(f"        {line}\n" for line in case.splitlines())
    with pytest.raises(LanguageError) as caught:
        function_of(cell(text, "Cell In[1]")["Kernel"](), 8, torch.zeros(8))
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.to_text() == caught.value.to_text()


def _message(make) -> str:
    with pytest.raises(LanguageError) as caught:
        make()
    return caught.value.to_text()


def test_autotune_errors():
    assert _message(lambda: tilus.autotune("a b", [1])) == (
        "LanguageError TK113: autotune needs argument names separated by commas, got 'a b'"
    )
    assert _message(lambda: tilus.autotune("a, a", [(1, 2)])) == (
        "LanguageError TK113: autotune('a, a') names 'a' twice"
    )
    assert _message(lambda: tilus.autotune("a", 3)) == (
        "LanguageError TK113: autotune('a') needs a list of choices, got 3"
    )
    assert _message(lambda: tilus.autotune("a", "xyz")) == (
        "LanguageError TK113: autotune('a') needs a list of choices, got 'xyz'"
    )
    assert _message(lambda: tilus.autotune("a", [])) == "LanguageError TK113: autotune('a') has no choices"
    assert _message(lambda: tilus.autotune("a, b", [(1, 2), (3,)])) == (
        "LanguageError TK113: autotune('a, b'): each choice needs 2 values, got (3,)"
    )


def test_autotune_errors_of_a_class():
    text = """
    @tilus.autotune("tile", [1, 2])
    @tilus.autotune("tile", [4])
    class Kernel(tilus.Script):
        def __init__(self, tile):
            super().__init__()
    """
    assert error_text(text) == "LanguageError TK113: Kernel: autotune names 'tile' twice"

    text = """
    @tilus.autotune("tile", [1, 2])
    class Kernel(tilus.Script):
        def __init__(self, tile, other):
            super().__init__()

        def __call__(self, n: int32):
            pass
    """
    kernel = cell(text)["Kernel"]
    assert _message(lambda: kernel(tile=4)) == (
        "LanguageError TK113: Kernel: tile is given in the call and also by autotune\n  help: remove one of them"
    )
    assert _message(kernel) == (
        "LanguageError TK104: Kernel.__init__(self, tile, other) cannot be called with (tile=1): "
        "missing a required argument: 'other'"
    )


def test_what_only_tilus_has_is_told_apart_from_a_typing_error():
    assert not methods.MISSING & set(methods.names())
    text = _HEAD + "        self.wgmma.fence()\n"
    assert (
        error_text(text, 8, torch.zeros(8))
        .split("\n")[0]
        .endswith("self.wgmma of tilus is not available in this version of tilekit")
    )
