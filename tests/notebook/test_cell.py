# SPDX-License-Identifier: Apache-2.0
"""The rewriting of a cell, as text and as a tree."""

import ast

import pytest

from tilekit.notebook import cell


def rewritten(text: str) -> str:
    return "".join(cell.rewrite_lines(text.splitlines(keepends=True)))


def tree_of(text: str, **options) -> str:
    return ast.unparse(cell.rewrite_tree(ast.parse(rewritten(text)), **options))


@pytest.mark.parametrize("text", ["", "x = 1\n", "\n\nx\n", "%%time\nx\n", "%%tilusx\n", "# %%tilus\n", "%time\n"])
def test_other_cells_stay_as_they_are(text):
    assert rewritten(text) == text
    assert cell.first_line(ast.parse("")) is None


def test_the_line_becomes_a_string_that_says_the_same():
    assert rewritten("%%tilus --target sm_80\nx\n") == "'%%tilus --target sm_80'\nx\n"
    assert rewritten("%%tilus --args 'a b'  \nx\n") == "\"%%tilus --args 'a b'\"\nx\n"


def test_every_other_line_keeps_its_number():
    text = "\n  \n%%tilus\nx\ny\n"
    before, after = text.splitlines(), rewritten(text).splitlines()
    assert len(before) == len(after)
    assert after[3:] == before[3:]
    assert cell.first_line(ast.parse(rewritten(text))) == "%%tilus"


def test_an_indented_cell_stays_indented_alike():
    assert rewritten("  %%tilus\n  x\n") == "  '%%tilus'\n  x\n"


def test_a_tilus_line_further_down_is_refused_with_its_line():
    with pytest.raises(cell.Misplaced) as caught:
        rewritten("\nx = 1\n%%tilus --target sm_80\ny\n")
    assert caught.value == cell.Misplaced(3, "%%tilus --target sm_80\n")


@pytest.mark.parametrize("quote", ['"""', "'''", 'f"""', 'r"""'])
def test_a_tilus_line_inside_a_string_is_text(quote):
    text = f"x = {quote}\n%%tilus\ny\n{quote[-3:]}\n!ls\n"
    assert rewritten(text) == text


def test_lines_below_another_magic_are_that_magics():
    text = "%%writefile cell.py\nx\n%%tilus\n"
    assert rewritten(text) == text


def test_a_cell_begins_with_one_call_and_ends_with_another():
    assert tree_of("%%tilus\nimport tilus\nclass A: pass\nx = 1\nx\n") == (
        "get_ipython().tilekit.begin('%%tilus')\n"
        "import tilekit as tilus\n\n"
        "class A:\n    pass\n"
        "x = 1\n"
        "get_ipython().tilekit.end(('A',), x)"
    )
    assert tree_of("%%tilus\n") == "get_ipython().tilekit.begin('%%tilus')\nget_ipython().tilekit.end((), None)"


@pytest.mark.parametrize(
    "body, told",
    [
        ("against = {}\nflops = 1\nx", "('against', 'flops')"),
        ("a = against = {}\nx", "('against',)"),
        ("flops: float = 2.0\nx", "('flops',)"),
        ("def flops(n):\n    return n\nx", "('flops',)"),
    ],
)
def test_what_a_cell_says_to_its_measurement_is_named_at_its_end(body, told):
    assert tree_of(f"%%tilus --bench\n{body}\n").endswith(f"end((), x, {told})")


@pytest.mark.parametrize(
    "body", ["if y:\n    against = {}\nx", "flops: float\nx", "against['a'] = 1\nx", "bytes = 1\nx"]
)
def test_other_statements_say_nothing_to_it(body):
    assert tree_of(f"%%tilus --bench\n{body}\n").endswith("end((), x)")


def test_a_future_import_stays_first():
    first, second, *_ = tree_of("%%tilus\nfrom __future__ import annotations\nx\n").splitlines()
    assert first == "from __future__ import annotations"
    assert second == "get_ipython().tilekit.begin('%%tilus')"


@pytest.mark.parametrize("last, name", [("x = 1", "x"), ("x = y = 1", "y"), ("x: int = 1", "x"), ("x += 1", "x")])
def test_the_value_of_a_last_assignment_is_there_for_shells_that_show_it(last, name):
    assert tree_of(f"%%tilus\n{last}\n", show_assignment=True).endswith(
        f"{last}\nget_ipython().tilekit.end((), {name})"
    )
    assert tree_of(f"%%tilus\n{last}\n").endswith("end((), None)")


def test_the_last_expression_keeps_its_place():
    tree = cell.rewrite_tree(ast.parse(rewritten("%%tilus\n\n(a +\n b)\n")))
    end = tree.body[-1].value
    assert (end.lineno, end.args[1].lineno, end.args[1].end_lineno) == (3, 3, 4)


@pytest.mark.parametrize(
    "outer, body, above",
    [
        ("%%time\n%%tilus --help\nx\n", "x\n", 1),
        ("%%time\n\n%%capture c\n%%tilus\nx\ny", "x\ny\n", 3),
        ("%%time\n%%tilus\n", "", 1),
        ("%%tilus\nx", "x", 0),
        ("%%time\n%%tilus\nx\ny", "y", None),
        ("x\n%%tilus\ny", "y", None),
        ("f()", "y", None),
        ("", "y", None),
    ],
)
def test_what_lies_above_an_inner_cell_is_counted(outer, body, above):
    assert cell.lines_above(outer, body) == above
